# SPDX-License-Identifier: Apache-2.0

# client.py COMMAND ARG...: the official client starts the server COMMAND, lists its tools, calls
# the one named echo and prints the answer.
import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        answer = await session.call_tool("echo", {"message": "hello\u200b there"})
        print(answer.content[0].text)


asyncio.run(main())
