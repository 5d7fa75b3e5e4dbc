"""AG2 as a client: the agent elsewhere is the model of one here."""

import asyncio
import json
import sys

from ag2 import Agent
from ag2.a2a import A2AConfig


async def main(url, send, stream, ask, answer):
    told = {}
    asked = []

    async def person(*event):
        asked.append(str(getattr(event[0], "content", event[0])) if event else "")
        return answer

    agent = Agent("far", config=A2AConfig(card_url=url, streaming=True), hitl_hook=person)
    told["sent"] = (await agent.ask(send)).body
    told["streamed"] = (await agent.ask(stream)).body
    told["answered"] = (await agent.ask(ask)).body
    told["asked"] = asked[0] if asked else None
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
