"""The running part: the endpoints for A2A's requests, and the sender of notifications to receivers elsewhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from synapsed.kernel import Kernel, Running
from synapsed.parts.a2a.a2a_loading import A2aSdk
from synapsed.parts.a2a.push.sender import push_sender


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[Running]:
    """Opens the part where the last daemon left it; notifications end after the agents."""
    config = kernel.config.a2a
    pushes = push_sender(kernel) if config.push.enabled else None
    try:
        if pushes is not None:
            await pushes.start()
        yield A2aPart(A2aSdk(kernel.control.tasks, kernel.control.events, pushes, repeats=config.repeats))
    finally:
        if pushes is not None:
            await pushes.close()


class A2aPart(Running):
    def __init__(self, sdk: A2aSdk) -> None:
        self.provides = {A2aSdk: sdk}
