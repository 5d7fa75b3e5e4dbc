"""Incoming parcels: chunks are fetched from the broker, checked, and kept on the disk.

A message that names parcels is put off until they are here; it comes again meanwhile, and that it does drives the
whole: what a daemon that was killed had fetched is gone on with when the message comes next. What the broker does not
have is asked of the sender. A member can have a few of these under way at a time, and one that promises what it never
sends holds up its own messages only. What comes damaged, and does again when it was sent again, is refused.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog

from synapsed import aio
from synapsed.aio import TaskSet
from synapsed.clock import Clock
from synapsed.errors import StoreError
from synapsed_fleet import streams
from synapsed_fleet.envelope import BadEnvelope, Envelope
from synapsed_fleet.names import chunk
from synapsed_fleet.parcel import BODY, CHUNK, WHOLE_MAX, ParcelRef, Progress, files_of
from synapsed_fleet.parcel_spool import Coming, InSpool
from synapsed_fleet.ports import Broker, BrokerRefused, NoBroker, Stored

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
"""So often a whole may have another hash than was said, or a chunk not be its parcel's: what was kept of it may have
been damaged here, or there."""
NAMED_MAX: Final = 1024
"""Messages of which it is known what goes with them."""
KEPT_S: Final = 7 * 86_400.0
"""So long what has come is kept, as files are in an agent's inbox, which has a copy from its turn on."""

type Say = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Says something to a host, which it does not confirm."""

log = structlog.stdlib.get_logger("synapsed.fleet")


@dataclass(slots=True)
class Arrival:
    """A parcel that comes, `sealed` where it is a message, with what is called `named` there. `have`: bytes; `since`:
    in seconds since the epoch; `why`: what holds it up."""

    src: str
    ref: ParcelRef
    named: str
    sealed: bool
    since: float
    have: int = 0
    why: str | None = None
    tries: int = 0
    """So often it was not what its sender says."""
    damaged: set[int] = field(default_factory=set)
    """Places at the broker of what stands there for its next chunk, and is not."""


@dataclass(slots=True)
class Named:
    """Parcels that a message names: its own body, if that is a parcel, and files."""

    body: str | None = None
    files: set[str] = field(default_factory=set)


class NotHere(Exception):
    """A parcel of the message has not come whole: it is put off."""


class FalseParcel(BadEnvelope):
    """Error for content that twice did not match its message: its sender has lost it."""


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
        self._named: dict[tuple[str, str], Named] = {}
        self._arrivals: dict[tuple[str, str], Arrival] = {}

    def under_way(self) -> list[Arrival]:
        """Returns the parcels that are on their way, or wait to be fetched."""
        return list(self._arrivals.values())

    async def close(self) -> None:
        await self._tasks.cancel()

    async def sweep(self) -> None:
        if (now := self._clock.settled()) is not None:
            await asyncio.to_thread(self._spool.sweep, now - KEPT_S)

    async def document(self, envelope: Envelope, src: str, dst: str) -> dict[str, Any]:
        """Returns the content of `src`'s message, once all parcels that it names are here. `dst` is this host, or
        `any:CLASS`. Raises NotHere, BadEnvelope, StoreError."""
        document = envelope.document()
        if BODY in document:
            ref = ParcelRef.read(document[BODY], size_max=WHOLE_MAX)
            self._names(src, envelope.id).body = ref.id
            await self._here(src, dst, ref, envelope.id, sealed=True)
            document = await self._body(src, ref)
        refs = files_of(document)
        if refs:
            self._names(src, envelope.id).files |= {ref.id for ref in refs}
        for ref in refs:
            await self._here(src, dst, ref, envelope.id, sealed=False)
        return document

    def _names(self, src: str, named: str) -> Named:
        while len(self._named) >= NAMED_MAX:
            del self._named[next(iter(self._named))]
        return self._named.setdefault((src, named), Named())

    async def taken(self, src: str, named: str) -> None:
        """Notes that the message of `src` with that id was taken: its body is needed no more, its files are."""
        if (known := self._named.pop((src, named), None)) is None:
            return
        if known.body is not None:
            self._arrivals.pop((src, known.body), None)
            await asyncio.to_thread(self._spool.drop, src, known.body)

    async def refused(self, src: str, envelope: Envelope) -> None:
        """It never will be taken: what has come of it so far is removed, unless another message waits for the same."""
        known = self._names(src, envelope.id)
        document = envelope.document()
        with suppress(BadEnvelope):  # where its message is a parcel, its files are known if that had come
            known.files |= {ref.id for ref in files_of(document)}
            known.body = ParcelRef.read(document[BODY]).id if BODY in document else known.body
        await self.taken(src, envelope.id)
        others = {file for (host, _), one in self._named.items() if host == src for file in one.files}
        for named in (known.files | ({known.body} if known.body is not None else set())) - others:
            if (task := self._under_way.get((src, named))) is not None:
                task.cancel()
                await asyncio.wait([task])
            self._arrivals.pop((src, named), None)
            self._refused.pop((src, named), None)
            await asyncio.to_thread(self._spool.drop_part, src, named)

    async def _body(self, src: str, ref: ParcelRef) -> dict[str, Any]:
        body = await asyncio.to_thread(self._spool.body, src, ref)
        if body is None:
            await asyncio.to_thread(self._spool.drop, src, ref.id)
            raise NotHere
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
            self._arrivals.pop(key, None)
            return
        if (why := self._refused.pop(key, None)) is not None:
            raise StoreError(why, reason="disk")
        if key in self._false:
            self._false.discard(key)
            self._arrivals.pop(key, None)
            raise FalseParcel("a file that goes with it is not the one that it names")
        task = self._under_way.get(key)
        if task is None:
            full = len(self._under_way) >= FETCHES_MAX or self._of(src) >= PER_HOST_MAX
            arrival = self._arrivals.get(key)
            if arrival is None and len(self._arrivals) < NAMED_MAX:
                arrival = Arrival(src, ref, named, sealed, self._clock.wall())
                self._arrivals[key] = arrival
            if full:
                if arrival is not None:
                    arrival.why = "others come before it"
                raise NotHere
            arrival = arrival or Arrival(src, ref, named, sealed, self._clock.wall())
            task = self._under_way[key] = self._tasks.spawn(self._fetch(arrival, dst))
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
            if ref.size <= QUICK:
                await asyncio.wait([task], timeout=self._quick_s)
        if not await asyncio.to_thread(self._spool.path(src, ref.id).is_file):
            raise NotHere

    def _of(self, src: str) -> int:
        return sum(1 for host, _ in self._under_way if host == src)

    async def _fetch(self, arrival: Arrival, dst: str) -> None:
        src, ref = arrival.src, arrival.ref
        try:
            opening = asyncio.to_thread(self._spool.coming, src, ref, sealed=arrival.sealed)
            coming = await aio.whole(opening, undo=_close)
            try:
                await self._all_chunks(coming, arrival, dst)
            finally:
                await aio.whole(_close(coming))
        except NoBroker as error:
            arrival.why = f"no broker: {error}"
            log.debug("a file waits for the broker", host=src, why=str(error))
        except BrokerRefused as error:
            arrival.why = f"the broker refuses it: {error}"
            log.warning("the broker refuses a file", host=src, why=str(error))
        except StoreError as error:
            arrival.why = self._refused[src, ref.id] = error.message
            log.warning("a file that comes cannot be kept", host=src, why=error.message)
            have = arrival.have // CHUNK
            with suppress(NoBroker):
                await self._tell(src, Progress(ref.id, arrival.named, have, missing=False, why=_without_path(error)))

    async def _all_chunks(self, coming: Coming, arrival: Arrival, dst: str) -> None:
        """Returns when it is whole, false, or has stalled."""
        now, src, ref, named = self._clock.monotonic, arrival.src, arrival.ref, arrival.named
        moved_at, tell_at, told = now(), now() + self._missed_s, coming.have
        while True:
            arrival.have = min(coming.have * CHUNK, ref.size)
            if coming.have == ref.chunks and await self._ended(coming, arrival):
                return None
            if await self._next_chunks(coming, dst, arrival):
                moved_at, tell_at = now(), now() + self._missed_s
                if coming.have - told >= TELL_EVERY:
                    told = coming.have
                    await self._tell(src, Progress(ref.id, named, told, missing=False))
                continue
            if len(arrival.damaged) >= TRIES:
                return self._false.add((src, ref.id))
            if now() - moved_at > STALLED_S:
                return None
            if now() >= tell_at:
                tell_at = now() + MISSED_AGAIN_S
                arrival.why = f"{src} has been asked for the next part of it"
                await self._tell(src, Progress(ref.id, named, coming.have, missing=True))
            await asyncio.sleep(LOOK_S)

    async def _ended(self, coming: Coming, arrival: Arrival) -> bool:
        """All of it has come: whether it is in its place, or false; else it is begun again."""
        src, ref = arrival.src, arrival.ref
        if await asyncio.to_thread(coming.end):
            self._arrivals.pop((src, ref.id), None)
            await self._tell(src, Progress(ref.id, arrival.named, ref.chunks, missing=False))
            return True
        arrival.tries += 1
        if arrival.tries >= TRIES:
            self._false.add((src, ref.id))
            return True
        await self._tell(src, Progress(ref.id, arrival.named, 0, missing=True))
        return False

    async def _next_chunks(self, coming: Coming, dst: str, arrival: Arrival) -> int:
        """Fetches the next chunks; returns how many came."""
        some = range(coming.have, min(coming.have + AT_ONCE, arrival.ref.chunks))
        asked = (self._broker.last(streams.FILES, chunk(dst, arrival.src, arrival.ref.id, n)) for n in some)
        stored = await asyncio.gather(*asked, return_exceptions=True)
        found: list[Stored] = []
        for one in stored:
            if isinstance(one, BaseException) and not found:
                raise one
            if one is None or isinstance(one, BaseException) or not one.body:  # an empty one was released
                break
            found.append(one)
        if not found:
            return 0
        added = await asyncio.to_thread(coming.add, [one.body for one in found])
        if added:
            arrival.damaged.clear()
            arrival.why = None
        else:
            arrival.damaged.add(found[0].seq)
        return added

    async def _tell(self, src: str, progress: Progress) -> None:
        with suppress(BrokerRefused):  # its mail is full; it is told again
            await self._say(src, progress.told())


async def _close(coming: Coming) -> None:
    await asyncio.to_thread(coming.close)


def _without_path(error: StoreError) -> str:
    """For another host, which a path of this one does not concern."""
    path = str(error.details.get("file") or "")
    return error.message.replace(f"{path} cannot be written", "it cannot be written there") if path else error.message
