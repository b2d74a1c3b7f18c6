# SPDX-License-Identifier: Apache-2.0
"""Sessions of the Python SDK that call without pause: replicas_client.py SESSIONS URL... until standard input ends.

Each line of standard output is a JSON object: a session that began or ended, or a call. Times are seconds since 1970.
"""

import asyncio
import datetime
import json
import logging
import sys
import time
import traceback

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

logging.disable(logging.CRITICAL)
PATIENCE = datetime.timedelta(seconds=20)
stop = asyncio.Event()


def say(**what):
    print(json.dumps(what), flush=True)


def root(error):
    """The first cause of an exception that task groups may have wrapped."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def calls(session, name, count):
    """Calls until the end; returns why the session is over, or None."""
    while not stop.is_set():
        count[0] += 1
        key, tool = f"{name}-{count[0]}", "read" if count[0] % 4 == 0 else "write"
        said = {"session": name, "call": key, "tool": tool, "start": time.time()}
        try:
            result = await session.call_tool(tool, {"key": key}, read_timeout_seconds=PATIENCE)
        except Exception as error:
            said.update(end=time.time(), error=root(error))
            say(**said)
            if "Session terminated" in str(error) or "onnection closed" in str(error) or "ClosedResource" in root(error):
                return root(error)
            continue
        except asyncio.CancelledError:  # the transport failed, and takes its session along
            said.update(end=time.time(), error="the transport failed")
            say(**said)
            raise
        text = "\n".join(c.text for c in result.content if c.type == "text")
        provenance = (result.meta or {}).get("dev.pellucid/provenance", {})
        said.update(end=time.time(), evidence=provenance.get("evidence", ""))
        if result.isError or key not in text:
            said["error"] = "isError: " + text[:200]
        say(**said)
    return None


async def one(name, url):
    """One session after the other, for as long as the measurement lasts."""
    count = [0]
    while not stop.is_set():
        opened = False
        try:
            async with streamablehttp_client(url, timeout=30, sse_read_timeout=120) as (read, write, _):
                async with ClientSession(read, write, read_timeout_seconds=PATIENCE) as session:
                    await session.initialize()
                    opened = True
                    say(session=name, opened=time.time())
                    why = await calls(session, name, count)
        except BaseException as error:
            if stop.is_set():
                return
            why = root(error)
        if why is not None:
            say(session=name, ended=time.time(), opened_before=opened, error=why)
            await asyncio.sleep(0.2)


async def main():
    sessions, urls = int(sys.argv[1]), sys.argv[2:]
    tasks = [asyncio.create_task(one(f"py{i}", urls[i % len(urls)])) for i in range(sessions)]
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    stop.set()
    await asyncio.wait(tasks, timeout=30)


try:
    asyncio.run(main())
except Exception:
    traceback.print_exc()
    sys.exit(1)
