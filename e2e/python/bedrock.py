# SPDX-License-Identifier: Apache-2.0
"""Asks Amazon Bedrock by boto3, and prints what came of it as one JSON object.

The one argument is a JSON object: base, operation, model, task, results, and key, id or
bearer, by which the requests are signed.
"""

import json
import sys

import boto3
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, EventStreamError
from urllib3.exceptions import HTTPError

TOOLS = [
    {"name": "send_money", "description": "Pays.", "schema": {"type": "object", "properties": {"recipient": {"type": "string"}, "amount": {"type": "number"}}}},
    {"name": "read_mail", "description": "Reads.", "schema": {"type": "object"}},
]


def converse(task, results):
    messages = [{"role": "user", "content": [{"text": task}]}]
    for i, text in enumerate(results):
        messages.append({"role": "assistant", "content": [{"toolUse": {"toolUseId": f"c{i}", "name": "read_mail", "input": {}}}]})
        content = {"json": {"mail": text}} if i % 2 else {"text": text}
        messages.append({"role": "user", "content": [{"toolResult": {"toolUseId": f"c{i}", "content": [content], "status": "success"}}]})
    tools = [{"toolSpec": {"name": t["name"], "description": t["description"], "inputSchema": {"json": t["schema"]}}} for t in TOOLS]
    return {"messages": messages, "system": [{"text": "Be useful."}], "inferenceConfig": {"maxTokens": 500, "temperature": 0},
            "toolConfig": {"tools": tools}}


def anthropic(task, results):
    messages = [{"role": "user", "content": task}]
    for i, text in enumerate(results):
        messages.append({"role": "assistant", "content": [{"type": "tool_use", "id": f"c{i}", "name": "read_mail", "input": {}}]})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{i}", "content": text}]})
    tools = [{"name": t["name"], "description": t["description"], "input_schema": t["schema"]} for t in TOOLS]
    return {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 500, "system": "Be useful.", "messages": messages, "tools": tools}


def pieces(events, out):
    """Puts the events of converse_stream together as their consumers do."""
    calls = {}
    for event in events:
        (kind, value), = event.items()
        out["events"].append(kind)
        if kind == "contentBlockStart" and "toolUse" in value["start"]:
            calls[value["contentBlockIndex"]] = {"name": value["start"]["toolUse"]["name"], "args": ""}
        elif kind == "contentBlockDelta" and "text" in value["delta"]:
            out["text"] += value["delta"]["text"]
        elif kind == "contentBlockDelta" and "toolUse" in value["delta"]:
            calls[value["contentBlockIndex"]]["args"] += value["delta"]["toolUse"]["input"]
        elif kind == "messageStop":
            out["stop"] = value["stopReason"]
        elif kind == "metadata":
            out["usage"] = value["usage"]
    out["calls"] = [{"name": c["name"], "args": json.loads(c["args"] or "{}")} for c in calls.values()]


def chunks(events, out):
    """Does the same for invoke_model_with_response_stream."""
    calls = {}
    for event in events:
        value = json.loads(event["chunk"]["bytes"])
        kind = value["type"]
        out["events"].append(kind)
        if kind == "content_block_start" and value["content_block"]["type"] == "tool_use":
            calls[value["index"]] = {"name": value["content_block"]["name"], "args": ""}
        elif kind == "content_block_delta" and value["delta"]["type"] == "text_delta":
            out["text"] += value["delta"]["text"]
        elif kind == "content_block_delta" and value["delta"]["type"] == "input_json_delta":
            calls[value["index"]]["args"] += value["delta"]["partial_json"]
        elif kind == "message_delta":
            out["stop"] = value["delta"]["stop_reason"]
    out["calls"] = [{"name": c["name"], "args": json.loads(c["args"] or "{}")} for c in calls.values()]


def ask(client, arg, out):
    operation, task, results = arg["operation"], arg["task"], arg["results"]
    if operation.startswith("converse"):
        body = converse(task, results)
    else:
        body = {"body": json.dumps(arg.get("body") or anthropic(task, results)), "contentType": "application/json", "accept": "application/json"}
    answer = getattr(client, operation)(modelId=arg["model"], **body)
    if operation == "converse":
        out["stop"] = answer["stopReason"]
        for block in answer["output"]["message"]["content"]:
            out["text"] += block.get("text", "")
            if "toolUse" in block:
                out["calls"].append({"name": block["toolUse"]["name"], "args": block["toolUse"]["input"]})
    elif operation == "converse_stream":
        pieces(answer["stream"], out)
    elif operation == "invoke_model":
        said = json.loads(answer["body"].read())
        out["stop"] = said["stop_reason"]
        for block in said["content"]:
            out["text"] += block.get("text", "")
            if block["type"] == "tool_use":
                out["calls"].append({"name": block["name"], "args": block["input"]})
    else:
        chunks(answer["body"], out)


def main():
    arg = json.loads(sys.argv[1])
    out = {"text": "", "calls": [], "events": [], "stop": "", "error": "", "message": ""}
    config = Config(retries={"max_attempts": 0, "mode": "standard"}, read_timeout=120)
    if "bearer" in arg:
        config = config.merge(Config(signature_version=UNSIGNED))
    client = boto3.client("bedrock-runtime", region_name="eu-west-1", endpoint_url=arg["base"],
                          aws_access_key_id=arg.get("id"), aws_secret_access_key=arg.get("key"), config=config)
    if "bearer" in arg:  # by itself boto3 sends an API key over https alone
        def bearer(request, **_):
            request.headers["Authorization"] = "Bearer " + arg["bearer"]
        client.meta.events.register("before-send.bedrock-runtime.*", bearer)
    try:
        ask(client, arg, out)
    except (ClientError, EventStreamError) as e:
        out["error"], out["message"] = e.response["Error"]["Code"], e.response["Error"]["Message"]
    except (BotoCoreError, HTTPError) as e:  # of a stream that breaks off
        out["error"], out["message"] = type(e).__name__, str(e)
    print(json.dumps(out))


main()
