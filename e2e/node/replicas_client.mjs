// SPDX-License-Identifier: Apache-2.0

// Sessions of the TypeScript SDK that call without pause: node replicas_client.mjs MODULES SESSIONS URL... until
// standard input ends. Each line of standard output is a JSON object: a session that began or ended, or a call.
// Times are seconds since 1970.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, sessions, ...urls] = process.argv.slice(2);
const require = createRequire(pathToFileURL(modules + '/x.js'));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');

const patience = 20_000;
const now = () => Date.now() / 1000;
const say = (what) => console.log(JSON.stringify(what));
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
let stopped = false;
process.stdin.on('end', () => { stopped = true; setTimeout(() => process.exit(0), 30_000).unref(); }).resume();

const over = (error) => error?.code === 404 || /session (not found|terminated)|not connected|connection closed/i.test(String(error?.message));

async function calls(client, name, count) {
  while (!stopped) {
    count.n++;
    const key = `${name}-${count.n}`, tool = count.n % 4 === 0 ? 'read' : 'write';
    const said = { session: name, call: key, tool, start: now() };
    try {
      const result = await client.callTool({ name: tool, arguments: { key } }, undefined, { timeout: patience });
      const text = result.content.filter((c) => c.type === 'text').map((c) => c.text).join('\n');
      said.end = now();
      said.evidence = result._meta?.['dev.pellucid/provenance']?.evidence ?? '';
      if (result.isError || !text.includes(key)) said.error = 'isError: ' + text.slice(0, 200);
      say(said);
    } catch (error) {
      said.end = now();
      said.error = `${error.name}: ${error.message}` + (error.cause ? `: ${error.cause.code ?? error.cause.message}` : '');
      say(said);
      if (over(error)) return said.error;
    }
  }
  return null;
}

async function one(name, url) {
  const count = { n: 0 };
  while (!stopped) {
    let opened = false, why = null;
    const client = new Client({ name: 'replicas', version: '1' });
    client.onerror = () => {};
    try {
      await client.connect(new StreamableHTTPClientTransport(new URL(url)), { timeout: patience });
      opened = true;
      say({ session: name, opened: now() });
      why = await calls(client, name, count);
    } catch (error) {
      why = `${error.name}: ${error.message}`;
    }
    await client.close().catch(() => {});
    if (stopped) return;
    say({ session: name, ended: now(), opened_before: opened, error: why ?? 'over' });
    await pause(200);
  }
}

await Promise.all(Array.from({ length: Number(sessions) }, (_, i) => one(`ts${i}`, urls[i % urls.length])));
process.exit(0);
