"""A web application of a test's own on loopback, which may end while somebody comes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web

from synapsed.aio import stop_listening

__all__ = ["listening"]


@asynccontextmanager
async def listening(app: web.Application, port: int = 0) -> AsyncGenerator[int]:
    """Its port: `port`, or any."""
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        assert runner.server is not None
        server = await asyncio.get_running_loop().create_server(runner.server, "127.0.0.1", port)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            await stop_listening(server)
    finally:
        await runner.cleanup()
