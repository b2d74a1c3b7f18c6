# SPDX-License-Identifier: Apache-2.0
"""A server of the Python SDK with one tool, over the transport that its argument names."""

import socket
import sys

import uvicorn
from mcp.server.fastmcp import FastMCP

server = FastMCP("python")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


app = server.sse_app() if sys.argv[1] == "sse" else server.streamable_http_app()
listener = socket.create_server(("127.0.0.1", 0))
print("e2e-port", listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
