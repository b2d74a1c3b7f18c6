# SPDX-License-Identifier: Apache-2.0
"""A receiver of webhooks, which the library of Standard Webhooks verifies. GET / lists what has
arrived; the argument is the secret."""

import http.server
import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

hook, got = Webhook(sys.argv[1]), []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            hook.verify(body, dict(self.headers))
            got.append({"id": self.headers["webhook-id"], "body": json.loads(body)})
            self.send_response(204)
        except WebhookVerificationError:
            self.send_response(400)
        self.end_headers()

    def do_GET(self):
        body = json.dumps(got).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
print("e2e-port", server.server_port, flush=True)
server.serve_forever()
