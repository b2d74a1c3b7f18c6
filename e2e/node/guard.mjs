// SPDX-License-Identifier: Apache-2.0

// Asks once through an official SDK and prints what the program behind it gets:
// {"text", "calls", "first", "done", "label"}, times in ms; label is the member pellucid. The argument is JSON:
// {modules, base, key, kind, stream, task, results}.
import { createRequire } from "node:module";

const o = JSON.parse(process.argv[2]);
const require = createRequire(o.modules + "/x.js");
const start = performance.now();
const out = { text: "", calls: [], first: 0, done: 0, label: null };
const saw = () => { out.first ||= performance.now() - start; };
const schema = { type: "object", properties: { recipient: { type: "string" }, amount: { type: "number" } } };
const call = (name, args) => out.calls.push({ name, args });
const results = o.results.map((text, i) => ({ id: "c" + i, text }));

async function chat(client) {
  const tools = ["send_money", "read_mail"].map((name) => ({ type: "function", function: { name, parameters: schema } }));
  const messages = [{ role: "system", content: "Be useful." }, { role: "user", content: o.task }];
  for (const r of results) {
    messages.push({ role: "assistant", content: null, tool_calls: [{ id: r.id, type: "function", function: { name: "read_mail", arguments: "{}" } }] });
    messages.push({ role: "tool", tool_call_id: r.id, content: r.text });
  }
  const req = { model: "m", messages, tools };
  let message;
  if (o.stream) {
    const s = client.chat.completions.stream(req);
    s.on("content", saw);
    const all = await s.finalChatCompletion();
    out.label = all.pellucid ?? null;
    message = all.choices[0].message;
  } else {
    const all = await client.chat.completions.create(req);
    out.label = all.pellucid ?? null;
    message = all.choices[0].message;
  }
  out.text = message.content ?? "";
  for (const c of message.tool_calls ?? []) call(c.function.name, JSON.parse(c.function.arguments));
}

async function responses(client) {
  const tools = ["send_money", "read_mail"].map((name) => ({ type: "function", name, parameters: schema, strict: false }));
  const input = [{ role: "user", content: o.task }];
  for (const r of results) {
    input.push({ type: "function_call", call_id: r.id, name: "read_mail", arguments: "{}" });
    input.push({ type: "function_call_output", call_id: r.id, output: r.text });
  }
  const req = { model: "m", instructions: "Be useful.", input, tools };
  let answer;
  if (o.stream) {
    for await (const e of await client.responses.create({ ...req, stream: true })) {
      if (e.type === "response.output_text.delta") saw();
      if (e.type === "response.completed") answer = e.response;
    }
  } else {
    answer = await client.responses.create(req);
  }
  out.label = answer.pellucid ?? null;
  for (const item of answer.output) {
    if (item.type === "function_call") call(item.name, JSON.parse(item.arguments));
    for (const c of item.content ?? []) out.text += c.text ?? "";
  }
}

async function messages(client) {
  const tools = ["send_money", "read_mail"].map((name) => ({ name, input_schema: schema }));
  const list = [{ role: "user", content: o.task }];
  for (const r of results) {
    list.push({ role: "assistant", content: [{ type: "tool_use", id: r.id, name: "read_mail", input: {} }] });
    list.push({ role: "user", content: [{ type: "tool_result", tool_use_id: r.id, content: r.text }] });
  }
  const req = { model: "m", max_tokens: 1000, system: "Be useful.", messages: list, tools };
  let message;
  if (o.stream) {
    const s = client.messages.stream(req);
    s.on("text", saw);
    s.on("streamEvent", (e) => { out.label = e.pellucid ?? out.label; });
    message = await s.finalMessage();
  } else {
    message = await client.messages.create(req);
  }
  out.label = message.pellucid ?? out.label;
  for (const b of message.content) {
    if (b.type === "text") out.text += b.text;
    if (b.type === "tool_use") call(b.name, b.input);
  }
}

const options = { apiKey: o.key, maxRetries: 0 };
if (o.kind === "messages") {
  const Anthropic = require("@anthropic-ai/sdk");
  await messages(new (Anthropic.default ?? Anthropic)({ ...options, baseURL: o.base }));
} else {
  const OpenAI = require("openai");
  const client = new (OpenAI.default ?? OpenAI)({ ...options, baseURL: o.base + "/v1" });
  await (o.kind === "chat" ? chat(client) : responses(client));
}
out.done = performance.now() - start;
console.log(JSON.stringify(out));
