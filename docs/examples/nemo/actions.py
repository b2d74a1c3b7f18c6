# SPDX-License-Identifier: Apache-2.0

"""An action of NeMo Guardrails that calls a tool and lets its result out through Pellucid only.

Your program says how a tool is called, by a function that may be asynchronous:

    app = LLMRails(config)
    app.register_action_param("call_tool", call)  # call(server, tool, arguments) -> result of tools/call

Run as a program, this reads a tool's result from standard input and prints what may
go to a model: python3 actions.py SERVER TOOL < result.json
"""

import asyncio
import inspect as introspection
import json
import os
import sys
import urllib.request

try:
    from nemoguardrails.actions import action
    from nemoguardrails.actions.actions import ActionResult
except ImportError:  # as a program

    def action(*_, **__):
        return lambda f: f


MAX_ANSWER = 64 << 20
WITHHELD = {
    "content": [{"type": "text", "text": "[pellucid could not inspect this result]"}],
    "isError": True,
}


def inspect(server, tool, result, output_schema=None, timeout=30.0):
    """Returns what may go to a model. Whatever goes wrong, that is never the result itself."""
    try:
        body = {"server": server, "tool": tool, "result": result}
        if output_schema is not None:
            body["outputSchema"] = output_schema
        headers = {"Content-Type": "application/json"}
        token = os.environ.get("PELLUCID_TOKEN")  # where the gateway has auth: scope plug
        if token:
            headers["Authorization"] = "Bearer " + token
        url = os.environ.get("PELLUCID_URL", "http://127.0.0.1:7420") + "/v1/result"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
        with urllib.request.urlopen(request, timeout=timeout) as response:
            answer = json.loads(response.read(MAX_ANSWER))
        return {
            "result": answer["result"],
            "withheld": answer["verdict"] == "withheld",
            "evidence": answer["evidence"],
        }
    except Exception:  # also what cannot be written as JSON; the cause may quote the result
        return {"result": WITHHELD, "withheld": True, "evidence": None}


def text_of(result):
    """The text of a result that has passed, which is framed; the rest of it is not for a prompt."""
    blocks = result.get("content") or []
    return "\n".join(b["text"] for b in blocks if isinstance(b.get("text"), str))


# The action calls the tool itself: the result of an action that is no system action stands in
# the next prompt, so that a raw result must never be one.
@action(name="call_tool_through_pellucid", is_system_action=False)
async def call_tool_through_pellucid(server, tool, arguments=None, call_tool=None):
    try:
        # A variable that no flow has set comes as its own name.
        raw = call_tool(server, tool, arguments if isinstance(arguments, dict) else {})
        if introspection.isawaitable(raw):
            raw = await raw
    except Exception:  # its words are a stranger's too
        raw = {"content": [{"type": "text", "text": "the tool failed"}], "isError": True}
    checked = await asyncio.to_thread(inspect, server, tool, raw)
    return ActionResult(
        return_value=text_of(checked["result"]),
        context_updates={
            "tool_result": checked["result"],
            "tool_withheld": checked["withheld"],
            "tool_evidence": checked["evidence"],
        },
    )


if __name__ == "__main__":
    print(json.dumps(inspect(sys.argv[1], sys.argv[2], json.load(sys.stdin))))
