// SPDX-License-Identifier: Apache-2.0
// Written by "pellucid protect --hooks"; "pellucid protect --undo" removes it.
// What a tool of opencode returns passes "pellucid hook opencode" before the model sees it.
import { spawn } from "node:child_process"

const [program, ...args] = ["pellucid-hook", "opencode"]

const ask = (event) => new Promise((resolve) => {
  let out = ""
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"], timeout: 10000 })
  child.on("error", () => resolve({}))
  child.stdin.on("error", () => {})
  child.stdout.setEncoding("utf8")
  child.stdout.on("data", (text) => { out += text })
  child.on("close", () => { try { resolve(JSON.parse(out)) } catch { resolve({}) } })
  child.stdin.end(JSON.stringify(event))
})

export const Pellucid = async () => ({
  "tool.execute.before": async (input, output) => {
    const answer = await ask({ hook_event_name: "tool.execute.before", session_id: input.sessionID, tool_name: input.tool, tool_input: output.args })
    if (answer.args) Object.assign(output.args, answer.args)
  },
  "tool.execute.after": async (input, output) => {
    const of = output.output === undefined ? "content" : "output" // the blocks of an MCP tool
    const answer = await ask({ hook_event_name: "tool.execute.after", session_id: input.sessionID, tool_name: input.tool, tool_response: output[of] })
    if (answer.output !== undefined) output[of] = answer.output
  },
})
