"""CrewAI as a client: how an agent of a crew gives a task to one elsewhere (without the model that would decide it).
It puts a blank between the pieces that it joins."""

import asyncio
import json
import sys

from crewai.a2a.updates import StreamingConfig
from crewai.a2a.utils.delegation import aexecute_a2a_delegation


async def main(url, send, stream, ask, answer):
    card = f"{url}/.well-known/agent-card.json"

    async def delegate(text, **more):
        return await aexecute_a2a_delegation(card, None, 120, text, **more)

    told = {"spaced": True}
    told["sent"] = (await delegate(send))["result"]
    told["streamed"] = (await delegate(stream, updates=StreamingConfig()))["result"]
    asked = await delegate(ask)
    told["asked"] = asked.get("error") or asked.get("result")
    last = asked["history"][-1]
    done = await delegate(
        answer, task_id=last.task_id, context_id=last.context_id, conversation_history=asked["history"]
    )
    told["answered"] = done["result"]
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
