"""BeeAI Framework as a client."""

import asyncio
import json
import sys

from beeai_framework.adapters.a2a.agents import A2AAgent
from beeai_framework.memory import UnconstrainedMemory


async def main(url, send, stream, ask, answer):
    told = {}
    for name, text in (("sent", send), ("streamed", stream)):
        agent = A2AAgent(url=url, memory=UnconstrainedMemory())
        told[name] = (await agent.run(text)).last_message.text
    agent = A2AAgent(url=url, memory=UnconstrainedMemory())
    told["asked"] = (await agent.run(ask)).last_message.text
    told["answered"] = (await agent.run(answer)).last_message.text
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
