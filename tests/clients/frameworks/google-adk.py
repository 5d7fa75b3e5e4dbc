"""Google's ADK as a client. It takes the last piece of an artifact for the whole of it where it is told as a stream
(`partial` is false then): what is said is in all of a run's events together."""

import asyncio
import json
import sys

from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import InMemoryRunner
from google.genai import types


def text_of(event):
    parts = event.content.parts if event.content and event.content.parts else []
    return "".join(part.text or "" for part in parts if not part.thought)


def question_of(event):
    """It makes a call of a function that takes long of it."""
    return " ".join(str(call.args) for call in event.get_function_calls())


async def main(url, send, stream, ask, answer):
    agent = RemoteA2aAgent(name="far", agent_card=f"{url}/.well-known/agent-card.json")
    runner = InMemoryRunner(agent=agent, app_name="app")

    async def run(text, session, *, streaming=False):
        message = types.Content(role="user", parts=[types.Part(text=text)])
        config = RunConfig(streaming_mode=StreamingMode.SSE if streaming else StreamingMode.NONE)
        events = runner.run_async(user_id="u", session_id=session.id, new_message=message, run_config=config)
        return [event async for event in events]

    async def session():
        return await runner.session_service.create_session(app_name="app", user_id="u")

    told = {}
    told["sent"] = "".join(text_of(event) for event in await run(send, await session()))
    events = await run(stream, await session(), streaming=True)
    told["streamed"] = "".join(text_of(event) for event in events)
    asking = await session()
    told["asked"] = "".join(question_of(event) for event in await run(ask, asking))
    told["answered"] = "".join(text_of(event) for event in await run(answer, asking))
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
