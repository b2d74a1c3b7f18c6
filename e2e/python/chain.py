# SPDX-License-Identifier: Apache-2.0
"""Does what e2e/node/guard_chain.mjs does, with OpenAI's Python SDK."""

import json
import sys

from openai import APIStatusError, OpenAI

SCHEMA = {"type": "object", "properties": {"recipient": {"type": "string"}, "amount": {"type": "number"}}}
TOOLS = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in ("send_money", "read_mail")]


def ask(client, stream, **request):
    if not stream:
        return client.responses.create(**request)
    with client.responses.stream(**request) as events:
        return events.get_final_response()


def main():
    arg = json.loads(sys.argv[1])
    turns, previous, last = [], arg.get("previous"), "c"
    for i, add in enumerate(arg["inputs"]):
        base = arg["bases"][min(i, len(arg["bases"]) - 1)]
        client = OpenAI(api_key=arg["key"], max_retries=0, base_url=base + "/v1")
        said = add["user"] if "user" in add else [{"type": "function_call_output", "call_id": last, "output": add["result"]}]
        turn = {"id": "", "text": "", "calls": [], "error": 0}
        turns.append(turn)
        more = {"previous_response_id": previous} if previous else {}
        try:
            r = ask(client, arg["stream"], model="m", instructions="Be useful.", input=said, tools=TOOLS, **more)
        except APIStatusError as e:
            turn["error"], turn["text"] = e.status_code, str(e)
            continue
        previous = turn["id"] = r.id
        turn["text"] = r.output_text
        for item in r.output:
            if item.type == "function_call":
                last = item.call_id
                turn["calls"].append(item.name + " " + json.loads(item.arguments).get("recipient", ""))
    print(json.dumps({"turns": turns}))


main()
