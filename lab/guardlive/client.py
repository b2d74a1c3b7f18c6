# SPDX-License-Identifier: Apache-2.0

"""Asks through LangChain. A line of standard input is {base, key, model, kind, stream, temperature, case};
the line that answers it is {text, calls: [{tool, args}], error}."""

import json
import sys

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI


def model(o):
    options = dict(model=o["model"], api_key=o["key"], temperature=o["temperature"], max_retries=0, timeout=900)
    if o["kind"] == "messages":
        return ChatAnthropic(base_url=o["base"], max_tokens=300, **options)
    return ChatOpenAI(base_url=o["base"] + "/v1", use_responses_api=o["kind"] == "responses", **options)


def conversation(case):
    messages = [SystemMessage(case["system"])]
    for i, t in enumerate(case["turns"]):
        if t["role"] == "user":
            messages.append(HumanMessage(t["text"]))
        elif t["role"] == "assistant":
            messages.append(AIMessage(t["text"]))
        else:
            id = f"call_{i}"
            messages.append(AIMessage("", tool_calls=[dict(id=id, name=t["call"]["tool"], args=t["call"]["args"])]))
            messages.append(ToolMessage(t["result"], tool_call_id=id))
    return messages


def tools(case):
    for t in case["tools"]:
        properties = {p: {"type": "string"} for p in t["parameters"]}
        schema = {"type": "object", "properties": properties, "required": t["parameters"]}
        yield {"type": "function", "function": {"name": t["name"], "description": t["description"], "parameters": schema}}


def ask(o):
    bound = model(o).bind_tools(list(tools(o["case"])))
    if o["stream"]:
        whole = None
        for chunk in bound.stream(conversation(o["case"])):
            whole = chunk if whole is None else whole + chunk
    else:
        whole = bound.invoke(conversation(o["case"]))
    return {"text": str(whole.text), "calls": [{"tool": c["name"], "args": c["args"]} for c in whole.tool_calls]}


for line in sys.stdin:
    try:
        out = ask(json.loads(line))
    except Exception as e:  # every failure of an SDK is an answer here, and is counted
        out = {"error": f"{type(e).__name__}: {e}"[:300]}
    print(json.dumps(out), flush=True)
