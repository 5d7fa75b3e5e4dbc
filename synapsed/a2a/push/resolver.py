"""Names to addresses, each look-up in a thread of its own: a name server that does not answer holds up nobody else's
look-up, and no thread that the daemon needs for something else, nor its end."""

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

LOOKUPS_MAX = 64
"""Look-ups at a time; those for the same name are one."""

type _Question = tuple[str, int, int]
type _Found = list[tuple[Any, ...]]


class ThreadedResolver(AbstractResolver):
    """The system's resolver."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(LOOKUPS_MAX)
        self._asked: dict[_Question, asyncio.Future[_Found]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        question = (host, port, int(family))
        while question not in self._asked:
            await self._slots.acquire()
            if question in self._asked:
                self._slots.release()
                break
            self._ask(question)
        infos = await asyncio.shield(self._asked[question])
        return [
            ResolveResult(
                hostname=host,
                host=_numeric(address),
                port=address[1],
                family=found,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for found, _, protocol, _, address in infos
        ]

    async def close(self) -> None:
        self._asked.clear()

    def _ask(self, question: _Question) -> None:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[_Found] = loop.create_future()
        self._asked[question] = answer

        def told(found: _Found, error: Exception | None) -> None:
            self._slots.release()
            self._asked.pop(question, None)
            if error is None:
                answer.set_result(found)
            else:
                answer.set_exception(error)
                answer.exception()  # it may be that nobody waits any more

        def look() -> None:
            found: _Found = []
            failure: Exception | None = None
            try:
                found = list(socket.getaddrinfo(question[0], question[1], question[2], socket.SOCK_STREAM))
            except OSError as error:
                failure = error
            except UnicodeError as error:
                failure = OSError(f"no such name: {error}")
            with suppress(RuntimeError):  # the daemon has ended meanwhile
                loop.call_soon_threadsafe(told, found, failure)

        threading.Thread(target=look, name="push-resolver", daemon=True).start()


def _numeric(address: tuple[Any, ...]) -> str:
    """With the scope of a link-local address, which it means nothing without."""
    if len(address) == 4 and address[3]:
        return f"{str(address[0]).partition('%')[0]}%{address[3]}"
    return str(address[0])
