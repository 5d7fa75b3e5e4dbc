"""Incoming parcels: chunks are fetched from the broker, checked, and saved on the disk.

A message that names parcels is put off until they are here; the broker delivers it again meanwhile, and each delivery
continues the fetch, also after a daemon was killed. Chunks that the broker does not have are requested from the sender.
A member can have a few parcels under way at one time, and one that never sends promised chunks delays its own messages
only. Content that comes damaged, and again after it was sent again, is refused.
"""

import asyncio
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
from synapsed.shared.outside_json import NotJson, read_object
from synapsed_fleet import streams
from synapsed_fleet.envelope import BadEnvelope, Envelope
from synapsed_fleet.names import chunk
from synapsed_fleet.parcel import BODY, CHUNK, WHOLE_MAX, ParcelRef, Progress, files_of
from synapsed_fleet.parcel_spool import Coming, InSpool
from synapsed_fleet.ports import Broker, BrokerRefused, NoBroker, Stored

AT_ONCE: Final = 8
"""Most chunks that are requested at one time."""
FETCHES_MAX: Final = 16
PER_HOST_MAX: Final = 4
QUICK: Final = 2 << 20
"""Bytes of a parcel that is waited for, so that its message is taken at once."""
QUICK_S: Final = 3.0
TELL_EVERY: Final = 64
"""Chunks after which the sender gets a report of the progress."""
LONG: Final = 16 * 1024
"""Bytes above which a body is parsed in a thread."""
LOOK_S: Final = 0.2
"""Seconds until the next look for a chunk that is not there."""
MISSED_FIRST_S: Final = 1.0
"""Seconds that a chunk may be on its way; then it is requested."""
MISSED_AGAIN_S: Final = 5.0
STALLED_S: Final = 60.0
"""Seconds without progress after which a parcel gives way to others."""
TRIES: Final = 2
"""Number of failures after which a parcel counts as false: complete content has another hash than its reference, or a
chunk does not belong to its parcel. After the first one, the saved part may have been damaged here, or at the
sender."""
NAMED_MAX: Final = 1024
"""Most messages whose parcels are remembered."""
KEPT_S: Final = 7 * 86_400.0
"""Seconds for which received content is kept, as files are in an agent's inbox, which has a copy from the agent's turn
on."""

type Say = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a document to a host, which does not confirm it."""

log = structlog.stdlib.get_logger("synapsed.fleet")


@dataclass(slots=True)
class Arrival:
    """A parcel that is being fetched."""

    src: str
    ref: ParcelRef
    named: str
    """The sender's name of the message that it belongs to."""
    sealed: bool
    """True for a message, False for a file."""
    since: float
    """Seconds since the epoch."""
    have: int = 0
    """Number of bytes that have come."""
    why: str | None = None
    """The reason why it is delayed."""
    tries: int = 0
    """Times that the content was not the one in the reference."""
    damaged: set[int] = field(default_factory=set)
    """Places at the broker of wrong chunks under the subject of the next chunk."""


@dataclass(slots=True)
class Named:
    """Parcels that a message names: its own body, if that is a parcel, and files."""

    body: str | None = None
    files: set[str] = field(default_factory=set)


class NotHere(Exception):
    """Signals that a parcel of the message is not complete: the message is put off."""


class FalseParcel(BadEnvelope):
    """Error for content that twice did not match its message: the sender has lost the right content."""


class Fetching:
    """Fetches parcels. `say` reports the progress to a sender; `quick_s`: seconds to wait for a small parcel;
    `missed_s`: seconds that a chunk may be on its way."""

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
        """Returns the content of `src`'s message, once all parcels that the message names are here. `dst` is this host,
        or `any:CLASS`. Raises NotHere, BadEnvelope, StoreError."""
        document = await document_of(envelope)
        if BODY in document:
            ref = ParcelRef.read(document[BODY], size_max=WHOLE_MAX)
            self._names(src, envelope.id).body = ref.id
            await self._require(src, dst, ref, envelope.id, sealed=True)
            document = await self._body(src, ref)
        refs = files_of(document)
        if refs:
            self._names(src, envelope.id).files |= {ref.id for ref in refs}
        for ref in refs:
            await self._require(src, dst, ref, envelope.id, sealed=False)
        return document

    def _names(self, src: str, named: str) -> Named:
        while len(self._named) >= NAMED_MAX:
            del self._named[next(iter(self._named))]
        return self._named.setdefault((src, named), Named())

    async def taken(self, src: str, named: str) -> None:
        """Notes that the message of `src` with that id was taken: its body is not needed any more, but its files
        are."""
        if (known := self._named.pop((src, named), None)) is None:
            return
        if known.body is not None:
            self._arrivals.pop((src, known.body), None)
            await asyncio.to_thread(self._spool.drop, src, known.body)

    async def refused(self, src: str, envelope: Envelope) -> None:
        """Removes the received parts of a message that will never be taken, unless another message waits for the same
        parcel."""
        known = self._names(src, envelope.id)
        document = await document_of(envelope)
        with suppress(BadEnvelope):  # the files of a message that is a parcel are known only if it came
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
            return await asyncio.to_thread(read_object, body)
        except NotJson:
            raise BadEnvelope("its body is no object of JSON") from None

    async def _require(self, src: str, dst: str, ref: ParcelRef, named: str, *, sealed: bool) -> None:
        """Returns if the parcel is here, else has it fetched and raises NotHere. Raises BadEnvelope, StoreError."""
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
        """Fetches chunks until the parcel is complete, false, or stalled."""
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
        """Handles a parcel with all its chunks: returns True if it is in its place, or false for good; False if it is
        fetched again from the beginning."""
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
        with suppress(BrokerRefused):  # its mail is full; a later report follows
            await self._say(src, progress.told())


async def document_of(envelope: Envelope) -> dict[str, Any]:
    """Returns the body as JSON; parses a long one in a thread. Raises BadEnvelope."""
    return await asyncio.to_thread(envelope.document) if len(envelope.body) > LONG else envelope.document()


async def _close(coming: Coming) -> None:
    await asyncio.to_thread(coming.close)


def _without_path(error: StoreError) -> str:
    """Returns the error without a path, since it goes to another host."""
    path = str(error.details.get("file") or "")
    return error.message.replace(f"{path} cannot be written", "it cannot be written there") if path else error.message
