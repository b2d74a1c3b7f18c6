// SPDX-License-Identifier: Apache-2.0

// Holds a conversation with the official SDK of OpenAI, each request of which names the response
// before it, and prints {"turns": [{"id", "text", "calls", "error"}]}. The argument is JSON:
// {modules, bases, key, stream, inputs, previous}: inputs are what each request adds, {"user"} or
// {"result"} of the last call. Request i goes to bases[i], or to the last of them.
import { createRequire } from "node:module";

const o = JSON.parse(process.argv[2]);
const OpenAI = createRequire(o.modules + "/x.js")("openai");
const schema = { type: "object", properties: { recipient: { type: "string" }, amount: { type: "number" } } };
const tools = ["send_money", "read_mail"].map((name) => ({ type: "function", name, parameters: schema, strict: false }));
const turns = [];
let previous = o.previous || undefined, last;
for (const [i, add] of o.inputs.entries()) {
  const base = o.bases[Math.min(i, o.bases.length - 1)];
  const client = new (OpenAI.default ?? OpenAI)({ apiKey: o.key, maxRetries: 0, baseURL: base + "/v1" });
  const input = "user" in add ? add.user : [{ type: "function_call_output", call_id: last ?? "c", output: add.result }];
  const req = { model: "m", instructions: "Be useful.", input, tools, previous_response_id: previous };
  const turn = { id: "", text: "", calls: [], error: 0 };
  turns.push(turn);
  try {
    const r = o.stream ? await client.responses.stream(req).finalResponse() : await client.responses.create(req);
    previous = turn.id = r.id;
    turn.text = r.output_text;
    for (const item of r.output) {
      if (item.type !== "function_call") continue;
      last = item.call_id;
      turn.calls.push(item.name + " " + (JSON.parse(item.arguments).recipient ?? ""));
    }
  } catch (e) {
    if (!e.status) throw e;
    turn.error = e.status;
    turn.text = String(e.message);
  }
}
console.log(JSON.stringify({ turns }));
