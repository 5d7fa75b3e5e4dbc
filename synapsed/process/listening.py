"""How a listener ends without dropping who has just come.

`asyncio.Server.close` forgets the connections that were accepted in the same turn of the loop: each is left without an
owner, and told of with tracebacks when it is collected (python/cpython#109564).
"""

import asyncio


async def stop_listening(server: asyncio.Server) -> None:
    """Close `server`, once what it has accepted are connections."""
    loop = asyncio.get_running_loop()
    for sock in server.sockets:
        loop.remove_reader(sock)
    for _ in ("its transport is made", "its protocol is told"):
        await asyncio.sleep(0)
    server.close()
