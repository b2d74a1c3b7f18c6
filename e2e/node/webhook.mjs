// SPDX-License-Identifier: Apache-2.0

// A receiver of webhooks, which the library of Standard Webhooks verifies. GET / lists what has
// arrived; the arguments are the folder node_modules, the secret and the port.
import { createServer } from "node:http";
import { createRequire } from "node:module";

const [modules, secret, port] = process.argv.slice(2);
const { Webhook } = createRequire(modules + "/")("standardwebhooks");
const hook = new Webhook(secret);
const got = [];

const server = createServer(async (req, res) => {
  if (req.method === "GET") {
    res.end(JSON.stringify(got));
    return;
  }
  const parts = [];
  for await (const part of req) parts.push(part);
  const body = Buffer.concat(parts).toString();
  try {
    hook.verify(body, req.headers);
    got.push({ id: req.headers["webhook-id"], body: JSON.parse(body) });
    res.statusCode = 204;
  } catch {
    res.statusCode = 400;
  }
  res.end();
});
server.listen(Number(port), "127.0.0.1", () => console.log("e2e-port", server.address().port));
