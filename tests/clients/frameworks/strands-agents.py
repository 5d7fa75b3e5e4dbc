"""Strands Agents as a client; it has no way to answer a question."""

import asyncio
import json
import sys

from strands.agent.a2a_agent import A2AAgent


async def main(url, send, stream, ask, answer):
    agent = A2AAgent(endpoint=url)
    sent = await agent.invoke_async(send)
    chunks = []
    async for event in agent.stream_async(stream):
        update = event["event"][1] if event.get("type") == "a2a_stream" and isinstance(event["event"], tuple) else None
        if getattr(update, "kind", None) == "artifact-update":
            chunks += [part.root.text for part in update.artifact.parts]
    print(
        json.dumps({"sent": "".join(block["text"] for block in sent.message["content"]), "streamed": "".join(chunks)})
    )


asyncio.run(main(*sys.argv[1:]))
