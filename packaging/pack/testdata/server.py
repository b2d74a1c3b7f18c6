# SPDX-License-Identifier: Apache-2.0

# A server of the official SDK with one tool, over stdio.
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("echo")


@mcp.tool()
def echo(message: str) -> str:
    """Returns the message."""
    return message


mcp.run()
