"""Actions of NeMo Guardrails that send the result of a tool through Pellucid.

Run as a program, this reads a tool's result from standard input and prints what may
go to a model: python3 actions.py SERVER TOOL < result.json
"""

import json
import os
import sys
import urllib.request

try:
    from nemoguardrails.actions import action
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
    body = {"server": server, "tool": tool, "result": result}
    if output_schema is not None:
        body["outputSchema"] = output_schema
    headers = {"Content-Type": "application/json"}
    token = os.environ.get("PELLUCID_TOKEN")  # where the gateway has auth: scope plug
    if token:
        headers["Authorization"] = "Bearer " + token
    url = os.environ.get("PELLUCID_URL", "http://127.0.0.1:7420") + "/v1/result"
    try:
        request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
        with urllib.request.urlopen(request, timeout=timeout) as response:
            answer = json.loads(response.read(MAX_ANSWER))
        return {
            "result": answer["result"],
            "withheld": answer["verdict"] == "withheld",
            "evidence": answer["evidence"],
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {"result": WITHHELD, "withheld": True, "evidence": None}


@action(name="pellucid_result", is_system_action=True)
async def pellucid_result(server, tool, result, output_schema=None):
    import asyncio

    return await asyncio.to_thread(inspect, server, tool, result, output_schema)


if __name__ == "__main__":
    print(json.dumps(inspect(sys.argv[1], sys.argv[2], json.load(sys.stdin))))
