"""What is too large for a message, on its way in: chunks are fetched from the broker, checked, and kept on the disk.

A message that names parcels is put off until they are here; it comes again meanwhile, and that it does drives the
whole: what a daemon that was killed had fetched is gone on with when the message comes next. What the broker does not
have is asked of the sender. A member can have a few of these under way at a time, and one that promises what it never
sends holds up its own messages only.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import structlog

from synapsed.aio import TaskSet
from synapsed.clock import Clock
from synapsed.errors import StoreError
from synapsed.fleet import streams
from synapsed.fleet.envelope import BadEnvelope, Envelope
from synapsed.fleet.names import chunk
from synapsed.fleet.parcel import BODY, WHOLE_MAX, ParcelRef, Progress, files_of
from synapsed.fleet.ports import Broker, BrokerRefused, NoBroker
from synapsed.fleet.spool import Coming, InSpool

AT_ONCE: Final = 8
"""Chunks asked for at a time."""
FETCHES_MAX: Final = 16
PER_HOST_MAX: Final = 4
QUICK: Final = 2 << 20
"""Bytes; so little is waited for, and the message taken at once."""
QUICK_S: Final = 3.0
TELL_EVERY: Final = 64
"""Chunks: so often its sender is told how far it has come."""
LOOK_S: Final = 0.2
"""Until it is looked again for a chunk that is not there."""
MISSED_FIRST_S: Final = 1.0
"""So long a chunk may be on its way; then it is asked for."""
MISSED_AGAIN_S: Final = 5.0
STALLED_S: Final = 60.0
"""Without progress for so long, it gives way to others."""
TRIES: Final = 2
"""So often a whole may have another hash than was said: what was kept of it may have been damaged here."""
KEPT_S: Final = 7 * 86_400.0
"""So long what has come is kept, as files are in an agent's inbox, which has a copy from its turn on."""

type Say = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Says something to a host, which it does not confirm."""

log = structlog.stdlib.get_logger("synapsed.fleet")


class NotHere(Exception):
    """A parcel of the message has not come whole: it is put off."""


class FalseParcel(BadEnvelope):
    """What has come is not what the message says, twice: its sender has lost it."""


class Fetching:
    """`say` tells a sender how far it has come; so long (`quick_s`) little is waited for, and a chunk may be on its way
    (`missed_s`)."""

    def __init__(
        self,
        *,
        broker: Broker,
        clock: Clock,
        folder: Path,
        say: Say,
        quick_s: float = QUICK_S,
        missed_s: float = MISSED_FIRST_S,
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._spool = InSpool(folder)
        self._say = say
        self._quick_s = quick_s
        self._missed_s = missed_s
        self._tasks = TaskSet()
        self._under_way: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._refused: dict[tuple[str, str], str] = {}
        self._false: set[tuple[str, str]] = set()
        self._bodies: dict[tuple[str, str], str] = {}

    async def close(self) -> None:
        await self._tasks.cancel()

    async def sweep(self) -> None:
        await asyncio.to_thread(self._spool.sweep, self._clock.wall() - KEPT_S)

    async def document(self, envelope: Envelope, src: str, dst: str) -> dict[str, Any]:
        """What `src` says, once all that it names is here. `dst` is this host, or `any:CLASS`. Raises NotHere,
        BadEnvelope, StoreError."""
        document = envelope.document()
        if BODY in document:
            ref = ParcelRef.read(document[BODY], size_max=WHOLE_MAX)
            await self._here(src, dst, ref, envelope.id, sealed=True)
            document = await self._body(src, ref, envelope.id)
        for ref in files_of(document):
            await self._here(src, dst, ref, envelope.id, sealed=False)
        return document

    async def taken(self, src: str, named: str) -> None:
        """What `src` has said under that id was taken, or refused: its message is needed no more."""
        if (parcel := self._bodies.pop((src, named), None)) is not None:
            await asyncio.to_thread(self._spool.drop, src, parcel)

    async def _body(self, src: str, ref: ParcelRef, named: str) -> dict[str, Any]:
        body = await asyncio.to_thread(self._spool.body, src, ref)
        if body is None:
            await asyncio.to_thread(self._spool.drop, src, ref.id)
            raise NotHere
        self._bodies[src, named] = ref.id
        try:
            read = await asyncio.to_thread(json.loads, body)
        except (ValueError, RecursionError):
            raise BadEnvelope("its body is no JSON") from None
        if not isinstance(read, dict):
            raise BadEnvelope("its body is no object")
        return read

    async def _here(self, src: str, dst: str, ref: ParcelRef, named: str, *, sealed: bool) -> None:
        """Returns if it is here. Raises NotHere, and has it fetched; BadEnvelope, StoreError."""
        key = (src, ref.id)
        if await asyncio.to_thread(self._spool.path(src, ref.id).is_file):
            return
        if (why := self._refused.pop(key, None)) is not None:
            raise StoreError(why, reason="disk")
        if key in self._false:
            self._false.discard(key)
            raise FalseParcel("a file that goes with it is not the one that it names")
        task = self._under_way.get(key)
        if task is None:
            if len(self._under_way) >= FETCHES_MAX or self._of(src) >= PER_HOST_MAX:
                raise NotHere
            task = self._under_way[key] = self._tasks.spawn(self._fetch(src, dst, ref, named, sealed=sealed))
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
            if ref.size <= QUICK:
                await asyncio.wait([task], timeout=self._quick_s)
        if not await asyncio.to_thread(self._spool.path(src, ref.id).is_file):
            raise NotHere

    def _of(self, src: str) -> int:
        return sum(1 for host, _ in self._under_way if host == src)

    async def _fetch(self, src: str, dst: str, ref: ParcelRef, named: str, *, sealed: bool) -> None:
        try:
            coming = await asyncio.to_thread(self._spool.coming, src, ref, sealed=sealed)
            try:
                await self._all_chunks(coming, src, dst, ref, named)
            finally:
                await asyncio.to_thread(coming.close)
        except NoBroker as error:
            log.debug("a file waits for the broker", host=src, why=str(error))
        except BrokerRefused as error:
            log.warning("the broker refuses a file", host=src, why=str(error))
        except StoreError as error:
            log.warning("a file that comes cannot be kept", host=src, why=error.message)
            self._refused[src, ref.id] = error.message

    async def _all_chunks(self, coming: Coming, src: str, dst: str, ref: ParcelRef, named: str) -> None:
        """Returns when it is whole, or has stalled."""
        now = self._clock.monotonic
        moved_at, tell_at, told = now(), now() + self._missed_s, coming.have
        tries = 0
        while True:
            if coming.have == ref.chunks:
                if await asyncio.to_thread(coming.end):
                    return await self._tell(src, Progress(ref.id, named, ref.chunks, missing=False))
                if (tries := tries + 1) >= TRIES:
                    return self._false.add((src, ref.id))
                await self._tell(src, Progress(ref.id, named, 0, missing=True))
            if await self._next_chunks(coming, src, dst, ref):
                moved_at, tell_at = now(), now() + self._missed_s
                if coming.have - told >= TELL_EVERY:
                    told = coming.have
                    await self._tell(src, Progress(ref.id, named, told, missing=False))
                continue
            if now() - moved_at > STALLED_S:
                return None
            if now() >= tell_at:
                tell_at = now() + MISSED_AGAIN_S
                await self._tell(src, Progress(ref.id, named, coming.have, missing=True))
            await asyncio.sleep(LOOK_S)

    async def _next_chunks(self, coming: Coming, src: str, dst: str, ref: ParcelRef) -> int:
        """How many of the next came."""
        some = range(coming.have, min(coming.have + AT_ONCE, ref.chunks))
        asked = (self._broker.last(streams.FILES, chunk(dst, src, ref.id, n)) for n in some)
        stored = await asyncio.gather(*asked, return_exceptions=True)
        raws: list[bytes] = []
        for one in stored:
            if isinstance(one, BaseException) and not raws:
                raise one
            if one is None or isinstance(one, BaseException):
                break
            raws.append(one.body)
        return await asyncio.to_thread(coming.add, raws) if raws else 0

    async def _tell(self, src: str, progress: Progress) -> None:
        with suppress(BrokerRefused):  # its mail is full; it is told again
            await self._say(src, progress.told())
