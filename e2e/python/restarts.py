# SPDX-License-Identifier: Apache-2.0
"""A client that calls a tool without pause, for TestRestarts: restarts.py (sdk|fastmcp) URL SECONDS.

The last line of its output is JSON: how many calls were answered, what the errors of the others were,
how many sessions the SDK has ended because a connection broke, and why another one ended.
"""

import asyncio
import collections
import json
import sys
import time
import traceback


class Count:
    def __init__(self):
        self.answered = 0
        self.hung = 0
        self.slowest = 0.0
        self.cut = 0
        self.errors = collections.Counter()
        self.news = collections.Counter()
        self.ended = ""

    async def calls(self, call, seconds):
        """Calls until the time is over. An error of the protocol is that of one call."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = f"call {self.answered}"
            start = time.monotonic()
            try:
                got = await asyncio.wait_for(call(text), 60)
                if text in got:
                    self.answered += 1
                else:
                    self.errors["wrong answer: " + got[:100]] += 1
            except asyncio.TimeoutError:
                self.hung += 1
            except Exception as e:
                if type(e).__name__ not in ("McpError", "MCPError", "ToolError"):
                    raise
                self.errors[str(e)] += 1
                await asyncio.sleep(0.1)
            self.slowest = max(self.slowest, time.monotonic() - start)

    def note(self, message):
        root = getattr(message, "root", message)
        method = getattr(root, "method", None)
        if method:
            self.news[method] += 1

    def show(self):
        print(json.dumps({"answered": self.answered, "hung": self.hung, "slowest": self.slowest, "cut": self.cut,
                          "errors": self.errors, "news": self.news, "ended": self.ended}))


async def sdk(url, seconds, count):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async def handle(message):
        count.note(message)

    async with streamable_http_client(url) as (read, write, _):
        async with ClientSession(read, write, message_handler=handle) as session:
            await session.initialize()
            await session.set_logging_level("info")

            async def call(text):
                r = await session.call_tool("echo", {"message": text})
                return " ".join(getattr(c, "text", "") for c in r.content)

            await count.calls(call, seconds)


async def fastmcp(url, seconds, count):
    from fastmcp import Client

    async def handle(message):
        count.note(message)

    async with Client(url, message_handler=handle) as client:

        async def call(text):
            r = await client.call_tool("echo", {"message": text}, raise_on_error=False)
            return " ".join(getattr(c, "text", "") for c in r.content)

        await count.calls(call, seconds)


async def main():
    count = Count()
    client = {"sdk": sdk, "fastmcp": fastmcp}[sys.argv[1]]
    end = time.monotonic() + float(sys.argv[3])
    while time.monotonic() < end and not count.ended:
        try:
            await client(sys.argv[2], end - time.monotonic(), count)
        except BaseException:
            why = traceback.format_exc()
            if "httpx.ReadError" in why or "httpx.RemoteProtocolError" in why:
                count.cut += 1  # the SDK ends its session; the test says how often it may
            else:
                count.ended = why[-3000:]
    count.show()


asyncio.run(main())
