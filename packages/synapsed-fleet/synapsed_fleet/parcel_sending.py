"""Outgoing parcels: they are saved on the disk, and their chunks are put at the broker.

A parcel goes with a row of the outbox, and is kept until that row is closed. A window limits how much of it is at the
broker at one time, so that a store smaller than the file is enough: the receiver reports its progress, and the chunks
that it has are released. Chunks that it misses, because the broker has lost them or let them expire, are put there
again. So the broker may lose any of it, at any time.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import structlog

from synapsed.clock import Ages, Clock
from synapsed.errors import InvalidRequest
from synapsed.interfaces import given_here, is_kept
from synapsed.model.task import FilePart, Part
from synapsed_fleet import streams
from synapsed_fleet.envelope import encoded
from synapsed_fleet.fleet_rows import FleetOrigin, OutRow, update_row
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.names import chunk, parse_update
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.parcel import BODY, CHUNK, ParcelRef, Progress, id_of_body
from synapsed_fleet.parcel_spool import Leg, OutSpool, Parcel, Upload
from synapsed_fleet.ports import Broker, BrokerRefused
from synapsed_fleet.wakeup import Bell

AT_ONCE: Final = 8
"""Chunks that are sent to the broker at one time: 1 MiB."""
WINDOW_SHARE: Final = 0.25
"""Largest share of the broker's room for files that one parcel takes."""
WINDOW_MIN: Final = 64
FULL_SHARE: Final = 0.85
"""Share of the broker's room for files beyond which no chunk is put there."""
REST_S: Final = 2.0
"""Seconds until the next look for room."""
LOOK_S: Final = 30.0
SETTLE_S: Final = 1.0
"""Seconds between two looks for closed rows."""
KEEP_EVERY: Final = 64
"""Chunks after which the number of published ones is saved."""
UNUSED_S: Final = 24 * 3600.0
"""Seconds for which a file is kept that was given to be sent, and is not sent."""
SENT_S: Final = 3600.0
"""Seconds for which a file is kept after it has arrived."""
DOUBTED_AGAIN_S: Final = 60.0
"""Seconds between two checks of a parcel whose receiver asks for chunks again."""
UPLOADS_MAX: Final = 64
"""Most files that are here and not sent yet."""

log = structlog.stdlib.get_logger("synapsed.fleet")


class Parcels:
    """Sends parcels: call `load` once, and `run` for as long as there is a fleet. `lost` is called with a row whose
    file is gone."""

    def __init__(
        self,
        *,
        name: str,
        pair: KeyPair,
        table: FleetTable,
        broker: Broker,
        clock: Clock,
        folder: Path,
        lost: Callable[[OutRow, str], Awaitable[None]],
    ) -> None:
        self._name = name
        self._pair = pair
        self._table = table
        self._broker = broker
        self._clock = clock
        self._ages = Ages(clock)
        self._spool = OutSpool(folder)
        self._lost = lost
        self._kept: dict[str, Parcel] = {}
        self._releases: list[tuple[str, str, int, int]] = []
        self._settled_at = -SETTLE_S
        self._looked_at = -SETTLE_S
        self._room = WINDOW_MIN
        self._doubted: dict[str, int] = {}
        """The chunk of each parcel that was requested again: it may be damaged here."""
        self._looked_through: dict[str, float] = {}
        self._whys: dict[tuple[str, str], str] = {}
        """Reasons why a parcel is delayed, as its receiver or the broker has given them."""
        self.bell = Bell()

    async def load(self) -> None:
        """Reads the parcels that the last daemon has left."""
        self._kept = {parcel.id: parcel for parcel in await asyncio.to_thread(self._spool.load)}

    def kept(self) -> list[Parcel]:
        """Returns all parcels that are to be sent, or were sent."""
        return list(self._kept.values())

    def why(self, parcel: Parcel, leg: Leg) -> str | None:
        """Returns the reason why a parcel is delayed, None if no reason is known."""
        if (why := self._whys.get((parcel.id, leg.row))) is not None:
            return why
        if not self._room:
            return "the broker's room for files is full"
        chunks = self._ref(parcel).chunks
        if leg.have < leg.published < chunks and leg.published - leg.have >= self._room:
            return f"{leg.dst} takes what the broker has of it before more is sent"
        return None

    def _say_why(self, parcel: Parcel, leg: Leg, why: str | None) -> None:
        if why is None:
            self._whys.pop((parcel.id, leg.row), None)
        else:
            self._whys[parcel.id, leg.row] = why

    # --- given to be sent ---

    async def refer(self, row: OutRow, body: bytes) -> bytes:
        """Saves a message's body as a parcel that goes with the row; returns a body that names it. Raises
        StoreError."""
        named = id_of_body(row.dst, row.wire, body)
        if named not in self._kept:
            self._kept[named] = await asyncio.to_thread(self._put, named, body)
        parcel = self._kept[named]
        await self._go(parcel, row)
        return encoded({BODY: self._ref(parcel).told()})

    def _put(self, named: str, body: bytes) -> Parcel:
        parcel = Parcel(named, len(body), hashlib.sha256(body).hexdigest(), sealed=True, at=self._clock.wall())
        self._spool.put_body(self._ref(parcel), body, parcel)
        return parcel

    def check(self, parts: Sequence[Part]) -> None:
        """Raises InvalidRequest if the parts name a file that this host was not given."""
        for part in parts:
            named = given_here([part])
            if is_kept(part) and (not named or named[0] not in self._kept or self._kept[named[0]].sealed):
                uri = part.file.uri if isinstance(part, FilePart) else ""
                raise InvalidRequest(
                    f"{(uri or '')[:80]}: there is no such file here: give it again, it is kept for a day",
                    field="message.parts",
                )

    async def attach(self, row: OutRow, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Returns references to files that go with the row. A file that is gone is left out, and `lost` is called for
        it, but not with an answer (`upd`). Raises StoreError."""
        told = []
        for named in ids:
            if (parcel := self._kept.get(named)) is None:
                if row.kind != "upd":  # an answer goes without the file
                    await self._lost(row, "a file that goes with it is not here any more")
                continue
            await self._go(parcel, row)
            told.append(self._ref(parcel).told())
        return told

    def goes_with(self, row: OutRow) -> bool:
        """Returns True if any parcel goes with the row."""
        return any(
            (leg.row, leg.n, leg.dst) == (row.id, row.n, row.dst)
            for parcel in self._kept.values()
            for leg in parcel.legs
        )

    async def upload(self) -> Upload:
        """Begins a file that is to be sent later. Raises StoreError, and InvalidRequest if too many files wait to be
        sent."""
        if sum(1 for parcel in self._kept.values() if not parcel.sent) >= UPLOADS_MAX:
            raise InvalidRequest(f"{UPLOADS_MAX} files were given and not sent yet: send them first")
        return await asyncio.to_thread(self._spool.upload)

    async def uploaded(self, upload: Upload, name: str) -> Parcel:
        parcel = await asyncio.to_thread(upload.end, name=name, at=self._clock.wall())
        self._kept[parcel.id] = parcel
        return parcel

    async def remove(self, parcel_id: str) -> bool:
        """Removes a file that was given here and is not under way; returns False if there is no such file."""
        parcel = self._kept.get(parcel_id)
        if parcel is None or parcel.legs:
            return False
        await self._drop(parcel)
        return True

    async def _go(self, parcel: Parcel, row: OutRow) -> None:
        leg = next((leg for leg in parcel.legs if (leg.dst, leg.row) == (row.dst, row.id)), None)
        if leg is None or leg.n != row.n:
            if leg is None:
                parcel.legs.append(Leg(row.dst, row.id, row.n))
            else:
                leg.n = row.n  # a later update has the same file
            parcel.sent = True
            await asyncio.to_thread(self._spool.keep, parcel)
        self.bell.set()

    def _ref(self, parcel: Parcel) -> ParcelRef:
        key = self._pair.secret(f"synapsed fleet parcel\n{parcel.id}")
        return ParcelRef(id=parcel.id, key=key, size=parcel.size, sha256=parcel.sha256)

    # --- told by receivers ---

    async def told(self, src: str, progress: Progress, has_it: Callable[[OutRow, str], Awaitable[bool]]) -> None:
        """Takes the progress of host `src` with a parcel of ours. `has_it` returns True if a row is that host's."""
        row = await self._table.row(_row_of(src, progress.of))
        if row is None or not await has_it(row, src):
            return
        parcel = self._kept.get(progress.parcel)
        legs = [leg for leg in parcel.legs if leg.row == row.id] if parcel is not None else []
        if parcel is None or not legs:
            await self._table.again([row])  # its content is gone: it is made again with its message
            return
        for leg in legs:
            have = min(progress.have, self._ref(parcel).chunks)
            self._say_why(parcel, leg, progress.why)
            if progress.missing:
                if have < leg.published:
                    self._doubted[parcel.id] = have
                leg.published = min(leg.published, have)
            elif have > leg.have:
                self._releases.append((leg.dst, parcel.id, leg.have, have))
            leg.have = have
        await asyncio.to_thread(self._spool.keep, parcel)
        self.bell.set()

    # --- the loop ---

    async def run(self) -> None:
        """Sends chunks without end. Raises NoBroker."""
        while True:
            if not await self.step():
                await self.bell.wait(LOOK_S if self._room else REST_S)

    async def step(self) -> bool:
        """Sends some chunks of each parcel that has any left; returns True if there were any. Raises NoBroker."""
        await self._settle()
        await self._release()
        await self._look_through()
        waiting = [
            (parcel, leg) for parcel in self._kept.values() for leg in parcel.legs if self._has_chunks_left(parcel, leg)
        ]
        room = await self._window() if waiting else self._room
        busy = False
        for parcel, leg in waiting:
            busy = await self._send(parcel, leg, room) or busy
        return busy

    async def _look_through(self) -> None:
        """Checks content whose chunks are requested again: either the broker lost them, or they are damaged here and
        would be requested without end."""
        now, doubted = self._clock.monotonic(), self._doubted
        self._doubted = {}
        for named, n in doubted.items():
            parcel = self._kept.get(named)
            if parcel is None or now - self._looked_through.get(named, -DOUBTED_AGAIN_S) < DOUBTED_AGAIN_S:
                continue
            self._looked_through[named] = now
            if not await asyncio.to_thread(self._spool.is_whole, parcel, self._ref(parcel), n):
                await self._gone(parcel, "is damaged on the disk here")

    def _has_chunks_left(self, parcel: Parcel, leg: Leg) -> bool:
        return max(leg.published, leg.have) < self._ref(parcel).chunks

    async def _window(self) -> int:
        """Returns the number of chunks that one parcel may have at the broker at one time; 0 if none may be put there
        now."""
        now = self._clock.monotonic()
        if now - self._looked_at >= SETTLE_S:
            facts = await self._broker.facts(streams.FILES, "syn.file._none")
            self._looked_at = now
            self._room = max(WINDOW_MIN, int(facts.size_max * WINDOW_SHARE) // CHUNK)
            if facts.size_max and facts.size > facts.size_max * FULL_SHARE:
                self._room = 0
        return self._room

    async def _send(self, parcel: Parcel, leg: Leg, room: int) -> bool:
        """Puts the next chunks at the broker; returns True if it took them, or if the parcel is gone."""
        ref, begin = self._ref(parcel), max(leg.published, leg.have)
        some = range(begin, min(begin + AT_ONCE, leg.have + room, ref.chunks))
        if not some:
            return False
        try:
            raws = await asyncio.to_thread(lambda: [self._spool.chunk(parcel, ref, n) for n in some])
        except OSError:
            await self._gone(parcel, "is not here any more")
            return True
        subjects = [chunk(leg.dst, self._name, parcel.id, n) for n in some]
        try:
            await together(self._broker.say(subject, raw) for subject, raw in zip(subjects, raws, strict=True))
        except BrokerRefused as error:
            log.info("the broker takes no more of a file", why=str(error))
            self._say_why(parcel, leg, f"the broker takes no more of it: {error}")
            return False
        self._say_why(parcel, leg, None)
        if max(leg.published, leg.have) == begin:  # it was not asked for again meanwhile
            leg.published = some.stop
            if some.stop == ref.chunks or some.stop // KEEP_EVERY != begin // KEEP_EVERY:
                await asyncio.to_thread(self._spool.keep, parcel)
        return True

    async def _gone(self, parcel: Parcel, how: str) -> None:
        """Handles content that is lost here: a message is made again; for a file, the task fails."""
        log.warning("what was to be sent is lost here", parcel=parcel.id, name=parcel.name, how=how)
        await self._drop(parcel)
        for leg in parcel.legs:
            if (row := await self._table.row(leg.row)) is None:
                continue
            if parcel.sealed or row.kind == "upd":
                await self._table.again([row])
            else:
                await self._lost(row, f"the file {parcel.name!r} {how}")

    async def _drop(self, parcel: Parcel) -> None:
        self._kept.pop(parcel.id, None)
        self._looked_through.pop(parcel.id, None)
        for leg in parcel.legs:
            self._say_why(parcel, leg, None)
        await asyncio.to_thread(self._spool.drop, parcel.id)

    async def _settle(self) -> None:
        """Releases and removes parcels whose rows are closed."""
        now = self._clock.monotonic()
        if now - self._settled_at < SETTLE_S:
            return
        self._settled_at = now
        for parcel in list(self._kept.values()):
            closed = [leg for leg in list(parcel.legs) if not await self._is_open(leg)]
            if closed:
                chunks = self._ref(parcel).chunks
                for leg in closed:
                    self._say_why(parcel, leg, None)
                self._releases += [(leg.dst, parcel.id, leg.have, chunks) for leg in closed]
                parcel.legs = [leg for leg in parcel.legs if not any(leg is one for one in closed)]
                if not parcel.sealed:
                    parcel.at = self._clock.wall()  # a later message may send the file again
            age = self._ages.of(f"{parcel.id} {parcel.at}", parcel.at)
            if not parcel.legs and (parcel.sealed or age > (SENT_S if parcel.sent else UNUSED_S)):
                await self._drop(parcel)
            elif closed:
                await asyncio.to_thread(self._spool.keep, parcel)

    async def _is_open(self, leg: Leg) -> bool:
        row = await self._table.row(leg.row)
        return row is not None and row.n == leg.n

    async def _release(self) -> None:
        while self._releases:
            dst, parcel, begin, end = self._releases[-1]
            for first in range(begin, end, AT_ONCE):
                some = range(first, min(first + AT_ONCE, end))
                try:
                    await together(self._broker.release(chunk(dst, self._name, parcel, n)) for n in some)
                except BrokerRefused as error:
                    log.debug("what is not needed stays until it expires", why=str(error))
            self._releases.pop()


async def together(calls: Iterable[Coroutine[Any, Any, Any]]) -> None:
    """Makes all the calls; once all are over, raises the first error."""
    for told in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(told, BaseException):
            raise told


def _row_of(src: str, named: str) -> str:
    """Returns the id of the outbox row that is called `named` on the way to `src`."""
    task_id, n = parse_update(named)
    return update_row(FleetOrigin(src, task_id)) if n >= 0 else named
