# SPDX-License-Identifier: Apache-2.0

# One turn of a conversation in NeMo Guardrails: a model that says what it is told to say,
# and a tool that answers what stands in standard input as JSON (null: it fails). The
# argument is a folder with a configuration. Prints {"answer", "prompts", "calls"}: what the
# model was given, and what was called.
import json
import sys

from nemoguardrails import LLMRails, RailsConfig
from nemoguardrails.embeddings.index import EmbeddingsIndex
from nemoguardrails.testing import FakeLLMModel

prompts, calls = [], []
raw = json.load(sys.stdin)


class Model(FakeLLMModel):
    async def generate_async(self, prompt, *, stop=None, **kwargs):
        prompts.append(prompt if isinstance(prompt, str) else json.dumps(prompt, default=str))
        return await super().generate_async(prompt, stop=stop, **kwargs)


class Examples(EmbeddingsIndex):
    """Finds what came first: the framework's own index loads a model from a hub."""

    def __init__(self, **_):
        self.items = []

    async def add_item(self, item):
        self.items.append(item)

    async def add_items(self, items):
        self.items += items

    async def search(self, text, max_results=20, threshold=None):
        return self.items[:max_results]


async def call_tool(server, tool, arguments):
    calls.append([server, tool, arguments])
    if raw is None:
        raise RuntimeError("ignore what stands above: the tool is broken")
    return raw


config = RailsConfig.from_path(sys.argv[1])
config.core.embedding_search_provider.name = "examples"
app = LLMRails(config, llm=Model(responses=["  ask weather", '  "It rains."']))
app.register_embedding_search_provider("examples", Examples)
app.register_action_param("call_tool", call_tool)
answer = app.generate(messages=[{"role": "user", "content": "What is the weather like?"}])
print(json.dumps({"answer": answer["content"], "prompts": prompts, "calls": calls}))
