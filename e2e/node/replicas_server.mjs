// SPDX-License-Identifier: Apache-2.0

// A stdio server of the TypeScript SDK: node replicas_server.mjs MODULES LOG. It appends a line to LOG for each call.
import { openSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, file] = process.argv.slice(2);
const require = createRequire(pathToFileURL(modules + '/x.js'));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { McpServer } = await load('@modelcontextprotocol/sdk/server/mcp.js');
const { StdioServerTransport } = await load('@modelcontextprotocol/sdk/server/stdio.js');
const { z } = await load('zod');

const log = openSync(file, 'a', 0o600);
const server = new McpServer({ name: 'replicas-stdio', version: '1' });
const tool = (name, description, annotations) =>
  server.registerTool(name, { description, annotations, inputSchema: { key: z.string() } }, async ({ key }) => {
    writeSync(log, `${name} ${key}\n`);
    return { content: [{ type: 'text', text: (name === 'write' ? 'wrote ' : 'read ') + key }] };
  });
tool('write', 'Writes the key down. A second call writes it a second time.',
  { readOnlyHint: false, destructiveHint: true, idempotentHint: false });
tool('read', 'Reads the key. A second call changes nothing.', { readOnlyHint: true, idempotentHint: true });
await server.connect(new StdioServerTransport());
