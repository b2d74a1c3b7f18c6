// SPDX-License-Identifier: Apache-2.0

// client.mjs MODULES COMMAND ARG…: the official client starts the server COMMAND, calls its tool
// echo and prints the answer. MODULES is the folder with the client's packages.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [modules, command, ...args] = process.argv.slice(2)
const sdk = (file) => import(pathToFileURL(join(modules, '@modelcontextprotocol/sdk/dist/esm/client', file)))
const { Client } = await sdk('index.js')
const { StdioClientTransport } = await sdk('stdio.js')

const client = new Client({ name: 'pack', version: '1' })
await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit', env: process.env }))
const answer = await client.callTool({ name: 'echo', arguments: { message: 'hello\u200b there' } })
await client.close()
console.log(JSON.stringify(answer.content))
