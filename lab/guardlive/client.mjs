// SPDX-License-Identifier: Apache-2.0

// Asks through the SDKs of OpenAI and Anthropic and through Vercel's AI SDK. The argument is the folder of
// the packages. A line of standard input is {sdk, base, key, model, kind, stream, temperature, case}; the line that
// answers it is {text, calls: [{tool, args}], error}.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(process.argv[2] + "/x.js");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { default: OpenAI } = await load("openai");
const { default: Anthropic } = await load("@anthropic-ai/sdk");
const ai = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createAnthropic } = await load("@ai-sdk/anthropic");

const schema = (t) => ({
  type: "object",
  properties: Object.fromEntries(t.parameters.map((p) => [p, { type: "string" }])),
  required: t.parameters,
});
const parse = (name, args) => ({ tool: name, args: JSON.parse(args) });

// Chat Completions, by OpenAI's SDK.
async function chat(o) {
  const client = new OpenAI({ apiKey: o.key, baseURL: o.base + "/v1", maxRetries: 0, timeout: 900_000 });
  const messages = [{ role: "system", content: o.case.system }];
  o.case.turns.forEach((t, i) => {
    if (t.role !== "call") return messages.push({ role: t.role, content: t.text });
    const fn = { name: t.call.tool, arguments: JSON.stringify(t.call.args) };
    messages.push({ role: "assistant", content: null, tool_calls: [{ id: "call_" + i, type: "function", function: fn }] });
    messages.push({ role: "tool", tool_call_id: "call_" + i, content: t.result });
  });
  const tools = o.case.tools.map((t) => ({
    type: "function",
    function: { name: t.name, description: t.description, parameters: schema(t) },
  }));
  const req = { model: o.model, temperature: o.temperature, messages, tools };
  const done = o.stream
    ? await client.chat.completions.stream(req).finalChatCompletion()
    : await client.chat.completions.create(req);
  const m = done.choices[0].message;
  return { text: m.content ?? "", calls: (m.tool_calls ?? []).map((c) => parse(c.function.name, c.function.arguments)) };
}

// Responses, by OpenAI's SDK.
async function responses(o) {
  const client = new OpenAI({ apiKey: o.key, baseURL: o.base + "/v1", maxRetries: 0, timeout: 900_000 });
  const input = [];
  o.case.turns.forEach((t, i) => {
    if (t.role !== "call") return input.push({ role: t.role, content: t.text });
    input.push({ type: "function_call", call_id: "call_" + i, name: t.call.tool, arguments: JSON.stringify(t.call.args) });
    input.push({ type: "function_call_output", call_id: "call_" + i, output: t.result });
  });
  const tools = o.case.tools.map((t) => ({
    type: "function", name: t.name, description: t.description, parameters: schema(t), strict: false,
  }));
  const req = { model: o.model, temperature: o.temperature, instructions: o.case.system, input, tools };
  let done;
  if (o.stream) {
    for await (const e of await client.responses.create({ ...req, stream: true })) {
      if (e.type === "response.completed") done = e.response;
    }
  } else {
    done = await client.responses.create(req);
  }
  const out = { text: "", calls: [] };
  for (const item of done.output) {
    if (item.type === "function_call") out.calls.push(parse(item.name, item.arguments));
    for (const part of item.content ?? []) out.text += part.text ?? "";
  }
  return out;
}

// Messages, by Anthropic's SDK.
async function messages(o) {
  const client = new Anthropic({ apiKey: o.key, baseURL: o.base, maxRetries: 0, timeout: 900_000 });
  const list = [];
  o.case.turns.forEach((t, i) => {
    if (t.role !== "call") return list.push({ role: t.role, content: t.text });
    list.push({ role: "assistant", content: [{ type: "tool_use", id: "toolu_" + i, name: t.call.tool, input: t.call.args }] });
    list.push({ role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_" + i, content: t.result }] });
  });
  const tools = o.case.tools.map((t) => ({ name: t.name, description: t.description, input_schema: schema(t) }));
  const req = { model: o.model, temperature: o.temperature, max_tokens: 300, system: o.case.system, messages: list, tools };
  const m = o.stream ? await client.messages.stream(req).finalMessage() : await client.messages.create(req);
  const out = { text: "", calls: [] };
  for (const b of m.content) {
    if (b.type === "text") out.text += b.text;
    if (b.type === "tool_use") out.calls.push({ tool: b.name, args: b.input });
  }
  return out;
}

// Each of the three formats, by Vercel's SDK.
async function vercel(o) {
  const options = { apiKey: o.key, baseURL: o.base + "/v1" };
  const model =
    o.kind === "messages" ? createAnthropic(options)(o.model)
    : o.kind === "chat" ? createOpenAI(options).chat(o.model)
    : createOpenAI(options).responses(o.model);
  const list = [];
  o.case.turns.forEach((t, i) => {
    if (t.role !== "call") return list.push({ role: t.role, content: t.text });
    const id = { toolCallId: "call_" + i, toolName: t.call.tool };
    list.push({ role: "assistant", content: [{ type: "tool-call", ...id, input: t.call.args }] });
    list.push({ role: "tool", content: [{ type: "tool-result", ...id, output: { type: "text", value: t.result } }] });
  });
  const tools = Object.fromEntries(o.case.tools.map((t) => [
    t.name, ai.tool({ description: t.description, inputSchema: ai.jsonSchema(schema(t)) }),
  ]));
  const req = {
    model, temperature: o.temperature, maxOutputTokens: 300, maxRetries: 0, tools, messages: list,
    instructions: o.case.system,
    providerOptions: { openai: { store: false } },
  };
  let text, calls;
  if (o.stream) {
    let failed;
    const s = ai.streamText({ ...req, onError: ({ error }) => { failed = error; } });
    await s.consumeStream();
    if (failed) throw failed;
    [text, calls] = [await s.text, await s.toolCalls];
  } else {
    ({ text, toolCalls: calls } = await ai.generateText(req));
  }
  return { text, calls: calls.map((c) => ({ tool: c.toolName, args: c.input })) };
}

const formats = { chat, responses, messages };
for await (const line of createInterface({ input: process.stdin })) {
  let out;
  try {
    const o = JSON.parse(line);
    out = await (o.sdk === "vercel" ? vercel(o) : formats[o.kind](o));
  } catch (e) { // every failure of an SDK is an answer here, and is counted
    out = { error: `${e.name}: ${e.message}`.slice(0, 300) };
  }
  console.log(JSON.stringify(out));
}
