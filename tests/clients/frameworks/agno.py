"""agno as a client: its own JSON-RPC of 0.3, which posts to the endpoint itself and reads no card. The text of a task
that it sent without a stream it looks for in the task's history, where answers are not (they are artifacts); a question
it can neither tell nor answer."""

import asyncio
import json
import sys

from agno.client.a2a import A2AClient


async def main(url, send, stream, ask, answer):
    client = A2AClient(f"{url}/a2a", protocol="json-rpc")
    sent = await client.send_message(send)
    chunks = [event.content async for event in client.stream_message(stream) if event.content]
    print(json.dumps({"state": sent.status, "streamed": "".join(chunks)}))


asyncio.run(main(*sys.argv[1:]))
