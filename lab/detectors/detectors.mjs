// SPDX-License-Identifier: Apache-2.0

// Asks one detector of prompt injections from npm: the arguments are the folder node_modules
// and a package's name; without a name it lists the names. It is spoken to as detectors.py is.
import { readFileSync, readdirSync, statSync } from "node:fs";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const makers = {
  "@andersmyrmel/vard": (m) => (text) => [!m.vard.safe(text).safe, null],
  "@claude-flow/aidefence": (m) => {
    const defence = m.createAIDefence();
    return async (text) => [!(await defence.detect(text)).safe, null];
  },
  llm_guardrail: (m) => async (text) => {
    const r = await m.checkInjection(text);
    return [r.detected, r.probabilities?.threat ?? null];
  },
  llmverify: (m) => (text) => [!m.isInputSafe(text), m.getInjectionRiskScore(text)],
};

const [modules, name] = process.argv.slice(2);
if (!name) {
  console.log(Object.keys(makers).join("\n"));
  process.exit(0);
}

// What a detector prints is no answer.
const answer = (value) => process.stdout.write(JSON.stringify(value) + "\n");
console.log = console.info = console.debug = console.error;

const sizeOf = (folder) =>
  readdirSync(folder, { withFileTypes: true }).reduce((sum, f) => {
    const path = join(folder, f.name);
    return sum + (f.isDirectory() ? sizeOf(path) : f.isFile() ? statSync(path).size : 0);
  }, 0);

const folder = join(modules, name);
const { version, main, license } = JSON.parse(readFileSync(join(folder, "package.json")));
const loaded = await import(pathToFileURL(join(folder, main)));
const ask = makers[name](loaded.default?.isInputSafe ? loaded.default : loaded);
answer({ name, version, licence: license, bytes: sizeOf(folder) });

for await (const line of createInterface({ input: process.stdin })) {
  const text = JSON.parse(line);
  const start = process.cpuUsage();
  const [flagged, score] = await ask(text);
  const { user, system } = process.cpuUsage(start);
  answer({ flagged: Boolean(flagged), score, ms: (user + system) / 1000 });
}
