"""Microsoft's Agent Framework as a client."""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver
from agent_framework import AgentSession
from agent_framework_a2a import A2AAgent


async def main(url, send, stream, ask, answer):
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, url).get_agent_card()
    told = {}
    async with A2AAgent(agent_card=card) as agent:
        told["sent"] = (await agent.run(send)).text
        told["streamed"] = "".join([update.text async for update in agent.run(stream, stream=True)])
        session = AgentSession()
        told["asked"] = (await agent.run(ask, session=session)).text
        told["answered"] = (await agent.run(answer, session=session)).text
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
