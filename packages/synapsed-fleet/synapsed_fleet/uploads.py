"""Files that a client gives in pieces, to be sent; each piece has its offset, so that an interrupted upload can go
on."""

import asyncio
from typing import Final

from synapsed.clock import Clock
from synapsed.errors import Busy, InvalidRequest, SynapsedError, TaskNotFound
from synapsed.interfaces import KeptFile
from synapsed_fleet.fleet_answers import FleetFile
from synapsed_fleet.parcel_sending import Parcels
from synapsed_fleet.parcel_spool import Parcel, Upload

OPEN_MAX: Final = 8
IDLE_S: Final = 600.0
"""Seconds without a piece after which a file is given up, if another one needs its place."""


class Begun:
    """A file that is not complete yet."""

    def __init__(self, name: str, upload: Upload, at: float) -> None:
        self.name = name
        self.upload = upload
        self.at = at
        self.lock = asyncio.Lock()


class Uploads:
    def __init__(self, parcels: Parcels, clock: Clock) -> None:
        self._parcels = parcels
        self._clock = clock
        self._begun: dict[str, Begun] = {}
        self._done: dict[str, FleetFile] = {}

    async def begin(self, name: str) -> FleetFile:
        """Begins a file. Raises Busy, InvalidRequest, StoreError."""
        now = self._clock.monotonic()
        idle = min(self._begun.values(), key=lambda begun: begun.at, default=None)
        if len(self._begun) >= OPEN_MAX and idle is not None:
            if now - idle.at < IDLE_S:
                raise Busy(f"{OPEN_MAX} files are being given already: wait until one is whole")
            await self._let_go(idle)
        upload = await self._parcels.upload()
        begun = self._begun[upload.id] = Begun(name, upload, now)
        return _shown(begun)

    async def add(self, file_id: str, offset: int, piece: bytes, *, last: bool) -> FleetFile:
        """Adds the next piece; one that is there already changes nothing. Raises TaskNotFound, InvalidRequest with the
        present `size`; TooLarge and StoreError, after which the file is to be begun again."""
        if (begun := self._begun.get(file_id)) is None:
            return self._completed(file_id)
        async with begun.lock:
            if self._begun.get(file_id) is not begun:  # it became whole, or was given up, while this piece waited
                return self._completed(file_id)
            begun.at = self._clock.monotonic()
            size = begun.upload.size
            if offset > size or offset + len(piece) < size:
                raise InvalidRequest(f"offset: {size} bytes are here", field="offset", size=size)
            try:
                await asyncio.to_thread(begun.upload.write, piece[size - offset :])
                if not last:
                    return _shown(begun)
                parcel = await self._parcels.uploaded(begun.upload, begun.name)
            except SynapsedError:  # a part of the piece may be in the file, or the file closed
                await self._let_go(begun)
                raise
            self._begun.pop(file_id, None)
            while len(self._done) >= OPEN_MAX:
                del self._done[next(iter(self._done))]
            self._done[file_id] = told = told_of(parcel)
            return told

    def _completed(self, file_id: str) -> FleetFile:
        """Returns a file that is whole. Raises TaskNotFound."""
        if (done := self._done.get(file_id)) is None:
            raise TaskNotFound(f"no file {file_id[:40]!r} is being given: begin again", id=file_id[:40])
        return done

    async def close(self) -> None:
        for begun in list(self._begun.values()):
            await self._let_go(begun)

    async def _let_go(self, begun: Begun) -> None:
        self._begun.pop(begun.upload.id, None)
        await asyncio.to_thread(begun.upload.abandon)


def _shown(begun: Begun) -> FleetFile:
    uri = KeptFile(None, begun.upload.id).uri
    return FleetFile(id=begun.upload.id, uri=uri, name=begun.name, size=begun.upload.size, whole=False)


def told_of(parcel: Parcel) -> FleetFile:
    return FleetFile(
        id=parcel.id,
        uri=KeptFile(None, parcel.id).uri,
        name=parcel.name,
        size=parcel.size,
        whole=True,
        sha256=parcel.sha256,
    )
