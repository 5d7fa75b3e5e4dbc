"""AgentScope as a client. It takes no data in a message, so that a question with options ends in an error there."""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver
from agentscope.agent import A2AAgent
from agentscope.message import UserMsg


async def main(url, send, stream, ask, answer):
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, url).get_agent_card()
    told = {}
    async with A2AAgent(card) as agent:

        def said(text):
            return UserMsg(name="user", content=text)

        told["sent"] = (await agent.reply(said(send))).get_text_content()
        chunks = [event.delta async for event in agent.reply_stream(said(stream)) if hasattr(event, "delta")]
        told["streamed"] = "".join(chunks)
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
