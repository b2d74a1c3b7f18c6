# SPDX-License-Identifier: Apache-2.0
"""Asks by the official Python SDKs, and prints what the programs behind them get.

The one argument is a JSON array of objects: base, key, kind (chat, responses, messages, gemini or
vertex), stream, task, results. What is printed is an array of {"text", "calls", "label", "error",
"message"}; label is the member pellucid, as far as the SDK shows it.
"""

import json
import sys

SCHEMA = {"type": "object", "properties": {"recipient": {"type": "string"}, "amount": {"type": "number"}}}
NAMES = ("send_money", "read_mail")


def label(value):
    """The label of an answer that the SDK has read."""
    return (getattr(value, "model_extra", None) or {}).get("pellucid")


def chat(arg, out):
    import openai
    client = openai.OpenAI(api_key=arg["key"], max_retries=0, base_url=arg["base"] + "/v1")
    messages = [{"role": "system", "content": "Be useful."}, {"role": "user", "content": arg["task"]}]
    for i, text in enumerate(arg["results"]):
        messages.append({"role": "assistant", "content": None, "tool_calls": [
            {"id": f"c{i}", "type": "function", "function": {"name": "read_mail", "arguments": "{}"}}]})
        messages.append({"role": "tool", "tool_call_id": f"c{i}", "content": text})
    tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]
    request = {"model": "m", "messages": messages, "tools": tools}
    if arg["stream"]:
        with client.chat.completions.stream(**request) as events:
            answer = events.get_final_completion()
    else:
        answer = client.chat.completions.create(**request)
    out["label"] = label(answer)
    message = answer.choices[0].message
    out["text"] = message.content or ""
    for c in message.tool_calls or []:
        out["calls"].append({"name": c.function.name, "args": json.loads(c.function.arguments)})


def responses(arg, out):
    import openai
    client = openai.OpenAI(api_key=arg["key"], max_retries=0, base_url=arg["base"] + "/v1")
    said = [{"role": "user", "content": arg["task"]}]
    for i, text in enumerate(arg["results"]):
        said.append({"type": "function_call", "call_id": f"c{i}", "name": "read_mail", "arguments": "{}"})
        said.append({"type": "function_call_output", "call_id": f"c{i}", "output": text})
    tools = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in NAMES]
    request = {"model": "m", "instructions": "Be useful.", "input": said, "tools": tools}
    if arg["stream"]:
        with client.responses.stream(**request) as events:
            answer = events.get_final_response()
    else:
        answer = client.responses.create(**request)
    out["label"], out["text"] = label(answer), answer.output_text
    for item in answer.output:
        if item.type == "function_call":
            out["calls"].append({"name": item.name, "args": json.loads(item.arguments)})


def messages(arg, out):
    import anthropic
    client = anthropic.Anthropic(api_key=arg["key"], max_retries=0, base_url=arg["base"])
    said = [{"role": "user", "content": arg["task"]}]
    for i, text in enumerate(arg["results"]):
        said.append({"role": "assistant", "content": [{"type": "tool_use", "id": f"c{i}", "name": "read_mail", "input": {}}]})
        said.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{i}", "content": text}]})
    request = {"model": "m", "max_tokens": 1000, "system": "Be useful.", "messages": said,
               "tools": [{"name": name, "input_schema": SCHEMA} for name in NAMES]}
    if arg["stream"]:
        with client.messages.stream(**request) as events:
            for event in events:
                out["label"] = label(event) or out["label"]
            answer = events.get_final_message()
    else:
        answer = client.messages.create(**request)
    out["label"] = label(answer) or out["label"]
    for block in answer.content:
        if block.type == "text":
            out["text"] += block.text
        if block.type == "tool_use":
            out["calls"].append({"name": block.name, "args": block.input})


def google(arg, out):
    from google import genai
    from google.auth.credentials import Credentials
    from google.genai import types

    class Token(Credentials):
        """Credentials of Google Cloud that need no refresh."""

        def __init__(self):
            super().__init__()
            self.token = arg["key"]

        def refresh(self, request):
            pass

    options = types.HttpOptions(base_url=arg["base"])
    if arg["kind"] == "vertex":
        client = genai.Client(vertexai=True, project="p-1", location="europe-west1", credentials=Token(), http_options=options)
    else:
        client = genai.Client(api_key=arg["key"], http_options=options)
    said = [types.Content(role="user", parts=[types.Part(text=arg["task"])])]
    for text in arg["results"]:
        said.append(types.Content(role="model", parts=[types.Part(function_call=types.FunctionCall(name="read_mail", args={}))]))
        said.append(types.Content(role="user", parts=[types.Part(function_response=types.FunctionResponse(name="read_mail", response={"result": text}))]))
    tools = [types.Tool(function_declarations=[types.FunctionDeclaration(name=name, parameters_json_schema=SCHEMA) for name in NAMES])]
    config = types.GenerateContentConfig(system_instruction="Be useful.", tools=tools)
    request = {"model": "gemini-2.5-flash", "contents": said, "config": config}
    models = client.models
    for answer in models.generate_content_stream(**request) if arg["stream"] else [models.generate_content(**request)]:
        out["label"] = label(answer) or out["label"]
        for part in (answer.candidates[0].content.parts or []) if answer.candidates else []:
            out["text"] += part.text or ""
            if part.function_call:
                out["calls"].append({"name": part.function_call.name, "args": part.function_call.args})


def main():
    kinds = {"chat": chat, "responses": responses, "messages": messages, "gemini": google, "vertex": google}
    all_answers = []
    for arg in json.loads(sys.argv[1]):
        out = {"text": "", "calls": [], "label": None, "error": "", "message": ""}
        all_answers.append(out)
        try:
            kinds[arg["kind"]](arg, out)
        except Exception as e:  # each SDK has its own
            out["error"], out["message"] = type(e).__name__, str(e)
    print(json.dumps(all_answers))


main()
