"""LiteLLM as a client: the agent elsewhere as a model. It has no way to answer a question."""

import asyncio
import json
import sys

import litellm


async def main(url, send, stream, ask, answer):
    async def ask_for(text, **more):
        messages = [{"role": "user", "content": text}]
        return await litellm.acompletion(model="a2a/far", api_base=f"{url}/a2a", messages=messages, **more)

    told = {"sent": (await ask_for(send)).choices[0].message.content}
    chunks = await ask_for(stream, stream=True)
    told["streamed"] = "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
