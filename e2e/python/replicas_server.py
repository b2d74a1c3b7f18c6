# SPDX-License-Identifier: Apache-2.0
"""A stateful HTTP server of the Python SDK: replicas_server.py LOG. It appends a line to LOG for each call."""

import os
import socket
import sys

import uvicorn
from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

server = FastMCP("replicas-http", log_level="ERROR")
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


@server.tool(annotations=ToolAnnotations(readOnlyHint=False, destructiveHint=True, idempotentHint=False))
async def write(key: str) -> str:
    """Writes the key down. A second call writes it a second time."""
    os.write(log, f"write {key}\n".encode())
    return "wrote " + key


@server.tool(annotations=ToolAnnotations(readOnlyHint=True, idempotentHint=True))
async def read(key: str) -> str:
    """Reads the key. A second call changes nothing."""
    os.write(log, f"read {key}\n".encode())
    return "read " + key


listener = socket.create_server(("127.0.0.1", 0))
# uvicorn does not set it on a socket that it is given, and each answer would wait 40 ms for an acknowledgement.
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print("e2e-port", listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listener])
