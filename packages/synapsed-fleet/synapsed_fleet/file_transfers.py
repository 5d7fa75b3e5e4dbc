"""The files of this host in its fleet, as people see them: given to be sent, under way, and received."""

import asyncio
from pathlib import Path
from typing import Final

from synapsed.clock import Clock, iso
from synapsed.errors import Busy, TaskNotFound
from synapsed.interfaces import KeptFile
from synapsed_fleet.fleet_answers import FleetFile, FleetKept
from synapsed_fleet.parcel import CHUNK
from synapsed_fleet.parcel_fetching import Arrival, Fetching
from synapsed_fleet.parcel_sending import Parcels
from synapsed_fleet.parcel_spool import InSpool, Leg, Parcel
from synapsed_fleet.uploads import Uploads

UNDER_WAY_MAX: Final = 50
"""Most transfers that are shown in the status of a host."""


class Files:
    """Lists, takes and removes files. `folder` holds the received ones."""

    def __init__(self, *, parcels: Parcels, fetching: Fetching, clock: Clock, folder: Path) -> None:
        self._parcels = parcels
        self._fetching = fetching
        self._spool = InSpool(folder)
        self._uploads = Uploads(parcels, clock)

    async def close(self) -> None:
        await self._uploads.close()

    async def begin(self, name: str) -> FleetFile:
        return await self._uploads.begin(name)

    async def add(self, file_id: str, offset: int, piece: bytes, *, last: bool) -> FleetFile:
        return await self._uploads.add(file_id, offset, piece, last=last)

    async def path(self, host: str, file_id: str) -> Path | None:
        path = self._spool.path(host, file_id)
        return path if await asyncio.to_thread(path.is_file) else None

    async def listed(self) -> list[FleetKept]:
        whole = await asyncio.to_thread(self._spool.whole)
        coming = {(arrival.src, arrival.ref.id) for arrival in self._fetching.under_way()}
        return [
            *self.under_way(),
            *(_waiting(parcel) for parcel in self._parcels.kept() if not parcel.legs),
            *(
                FleetKept(id=named, host=src, state="here", size=size, have=size, since=iso(at))
                for src, named, size, at in whole
                if (src, named) not in coming
            ),
        ]

    def under_way(self) -> list[FleetKept]:
        """Returns the outgoing and incoming transfers."""
        going = [self._going(parcel, leg) for parcel in self._parcels.kept() for leg in parcel.legs]
        return [*going, *(_coming(arrival) for arrival in self._fetching.under_way())]

    def _going(self, parcel: Parcel, leg: Leg) -> FleetKept:
        return FleetKept(
            id=parcel.id,
            host=leg.dst,
            state="going",
            name=parcel.name or None,
            message=parcel.sealed,
            size=parcel.size,
            have=min(leg.have * CHUNK, parcel.size),
            since=iso(parcel.at),
            row=leg.row,
            problem=self._parcels.why(parcel, leg),
        )

    async def remove(self, host: str | None, file_id: str) -> None:
        """Removes a file. Raises TaskNotFound for one that is not kept, Busy for one that is under way."""
        for kept in self.under_way():
            if kept.id == file_id and (kept.state == "going") == (host is None):
                how = (
                    f"'synapsectl fleet outbox cancel {kept.row}' gives it up" if kept.row else "cancel its task there"
                )
                raise Busy(f"{file_id} is under way: {how}", id=file_id)
        if host is None:
            removed = await self._parcels.remove(file_id)
        else:
            removed = await self.path(host, file_id) is not None
            await asyncio.to_thread(self._spool.drop, host, file_id)
        if not removed:
            raise TaskNotFound(
                f"no file {KeptFile(host, file_id).uri!r} is kept: 'synapsectl fleet files' lists them", id=file_id
            )


def _waiting(parcel: Parcel) -> FleetKept:
    return FleetKept(
        id=parcel.id,
        state="sent" if parcel.sent else "given",
        name=parcel.name or None,
        message=parcel.sealed,
        size=parcel.size,
        have=parcel.size,
        since=iso(parcel.at),
    )


def _coming(arrival: Arrival) -> FleetKept:
    return FleetKept(
        id=arrival.ref.id,
        host=arrival.src,
        state="coming",
        message=arrival.sealed,
        size=arrival.ref.size,
        have=arrival.have,
        since=iso(arrival.since),
        problem=arrival.why,
    )
