# SPDX-License-Identifier: Apache-2.0

"""Decides on calls with the package causal-armor, one a line of JSON on standard input.

    armor.py URL

The package scores by its own provider for vLLM, at URL. What it would rewrite and generate anew is counted
and not done: the first answer here is the decision.
"""

import asyncio
import json
import sys
from importlib.metadata import version

from causal_armor import CausalArmorConfig, CausalArmorMiddleware, Message, MessageRole, ToolCall
from causal_armor.providers.vllm import VLLMProxyProvider

ROLES = {"system": MessageRole.SYSTEM, "user": MessageRole.USER, "assistant": MessageRole.ASSISTANT, "tool": MessageRole.TOOL}


class Counted:
    """The agent and the sanitizer: they say nothing, and are counted."""

    calls = 0

    async def generate(self, messages):
        Counted.calls += 1
        return "", []

    async def sanitize(self, user_request, tool_name, untrusted_content, proposed_action=""):
        Counted.calls += 1
        return ""


async def main():
    print(json.dumps({"version": version("causal-armor")}), flush=True)
    guard = CausalArmorMiddleware(Counted(), VLLMProxyProvider(sys.argv[1], "simulated"), Counted(), CausalArmorConfig(log_attributions=False))
    for line in sys.stdin:
        ask = json.loads(line)
        messages = [Message(ROLES[m["role"]], m["text"], m["tool"] or None, m["id"] or None) for m in ask["messages"]]
        Counted.calls = 0
        call = ToolCall(ask["name"], ask["arguments"], json.dumps({"name": ask["name"], "arguments": ask["arguments"]}))
        tools = frozenset(m["tool"] for m in ask["messages"] if m["tool"])
        out = await guard.guard(messages, call, untrusted_tool_names=tools)
        flagged = out.detection.flagged_spans if out.detection else ()
        print(json.dumps({"flagged": sorted(int(s.rpartition(":")[2]) for s in flagged), "calls": Counted.calls}), flush=True)


asyncio.run(main())
