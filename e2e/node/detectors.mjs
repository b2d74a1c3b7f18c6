// SPDX-License-Identifier: Apache-2.0

// What detectors of prompt injections from npm, which run without a network, say of texts:
// a JSON string per line in, {"package version": flagged, …} per line out. The argument is
// the folder node_modules. Each is used as its own documentation begins with.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const modules = process.argv[2];
const load = async (name, make) => {
  const at = join(modules, name);
  const { version, main } = JSON.parse(readFileSync(join(at, "package.json")));
  return [`${name} ${version}`, make(await import(pathToFileURL(join(at, main))))];
};

const detectors = await Promise.all([
  load("llm_guardrail", (m) => async (text) => (await m.checkInjection(text)).detected),
  load("@andersmyrmel/vard", (m) => async (text) => !m.vard.safe(text).safe),
  load("@claude-flow/aidefence", (m) => {
    const d = m.createAIDefence();
    return async (text) => !(await d.detect(text)).safe;
  }),
]);

for await (const line of createInterface({ input: process.stdin })) {
  const text = JSON.parse(line), says = {};
  for (const [name, flags] of detectors) says[name] = await flags(text);
  console.log(JSON.stringify(says));
}
