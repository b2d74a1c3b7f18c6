// SPDX-License-Identifier: Apache-2.0
// A client that calls a tool without pause, for TestRestarts: restarts.mjs MODULES URL SECONDS. Its last
// line is JSON, as that of python/restarts.py.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [modules, url, seconds] = process.argv.slice(2)
const require = createRequire(pathToFileURL(modules + '/'))
const { Client } = await import(pathToFileURL(require.resolve('@modelcontextprotocol/sdk/client/index.js')))
const { StreamableHTTPClientTransport } = await import(pathToFileURL(require.resolve('@modelcontextprotocol/sdk/client/streamableHttp.js')))
const { LoggingMessageNotificationSchema, ToolListChangedNotificationSchema } = await import(pathToFileURL(require.resolve('@modelcontextprotocol/sdk/types.js')))

const count = { answered: 0, hung: 0, slowest: 0, errors: {}, news: {}, strange: {}, ended: '' }
const add = (to, key) => { to[key] = (to[key] ?? 0) + 1 }
try {
  const client = new Client({ name: 'restarts', version: '1' })
  client.onerror = e => add(count.strange, String(e.message).slice(0, 200))
  client.onclose = () => { count.ended ||= 'closed' }
  client.setNotificationHandler(LoggingMessageNotificationSchema, n => add(count.news, n.method))
  client.setNotificationHandler(ToolListChangedNotificationSchema, n => add(count.news, n.method))
  for (let tries = 1; ; tries++) { // a restart may meet the first connection, of which nothing is lost
    try {
      await client.connect(new StreamableHTTPClientTransport(new URL(url)))
      break
    } catch (e) {
      if (tries === 10) throw e
      count.ended = ''
    }
  }
  await client.setLoggingLevel('info')
  const end = Date.now() + 1000 * Number(seconds)
  while (Date.now() < end && !count.ended) {
    const text = `call ${count.answered}`
    const start = Date.now()
    try {
      const r = await client.callTool({ name: 'echo', arguments: { message: text } }, undefined, { timeout: 60_000 })
      if (r.content.some(c => c.text?.includes(text))) count.answered++
      else add(count.errors, 'wrong answer')
    } catch (e) {
      if (e.code === -32001) count.hung++
      else add(count.errors, `${e.message}${e.cause ? ': ' + e.cause.message : ''}`)
      await new Promise(r => setTimeout(r, 100))
    }
    count.slowest = Math.max(count.slowest, (Date.now() - start) / 1000)
  }
  if (!count.ended) { client.onclose = undefined; await client.close() }
} catch (e) {
  count.ended = String(e.stack).slice(0, 3000)
}
console.log(JSON.stringify(count))
process.exit(0)
