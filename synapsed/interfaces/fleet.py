"""The fleet, as the API sees it."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Protocol

from synapsed.interfaces.provided import WaitingSource
from synapsed.model.agent import AgentView
from synapsed.model.fleetviews import FleetEvent, FleetFile, FleetHeld, FleetHost, FleetKept, FleetOut, FleetStatus


class FleetFiles(Protocol):
    """What is given here, goes, comes, and has come."""

    async def begin(self, name: str) -> FleetFile:
        """A file is to be given here, which is sent later. Raises Busy, InvalidRequest, StoreError."""
        ...

    async def add(self, file_id: str, offset: int, piece: bytes, *, last: bool) -> FleetFile:
        """Its next piece. Raises TaskNotFound, InvalidRequest, TooLarge, StoreError."""
        ...

    async def path(self, host: str, file_id: str) -> Path | None:
        """Where a file is that came from another host."""
        ...

    async def listed(self) -> Sequence[FleetKept]:
        """What is under way first."""
        ...

    async def remove(self, host: str | None, file_id: str) -> None:
        """Remove one that has come from `host`, or was given here. Raises TaskNotFound, Busy for what is under way."""
        ...


class FleetControl(WaitingSource, Protocol):
    """Of a daemon whose host is a member."""

    async def status(self) -> FleetStatus: ...

    async def hosts(self) -> Sequence[FleetHost]:
        """With this one."""
        ...

    async def agents(self) -> list[AgentView]:
        """Those of the other hosts, under their addresses."""
        ...

    async def teams(self) -> dict[str, list[str]]:
        """The members of teams on the other hosts, as addresses."""
        ...

    def events(
        self, after: str | None, *, newest: bool, host: str | None = None, types: frozenset[str] | None = None
    ) -> AsyncGenerator[FleetEvent | None]:
        """Those of all hosts after the cursor, None: from now on; for ever, or with `newest` up to what there is. The
        first is None, once it can be read. Leave it by `aclosing`. Raises InvalidRequest for what is no cursor,
        NotReady where there is no broker to begin with."""
        ...

    async def outbox(self, host: str | None = None) -> Sequence[FleetOut]:
        """The oldest first."""
        ...

    async def outbox_retry(self, row: str) -> bool:
        """Send it again now; whether there is such a row."""
        ...

    async def outbox_cancel(self, row: str) -> bool:
        """Give it up: its task fails, UNDELIVERED; whether there is such a row."""
        ...

    @property
    def files(self) -> FleetFiles: ...

    async def quarantine(self) -> Sequence[FleetHeld]:
        """The newest first."""
        ...
