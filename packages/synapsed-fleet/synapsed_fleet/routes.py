"""`/fleet`: this host in its fleet, the other hosts, and the messages under way to them."""

import asyncio
import base64
import binascii
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from aiohttp import hdrs, web
from pydantic import BaseModel, ConfigDict, Field

from synapsed.api import Query, SseFrame, is_upgrade, one_of, push, serve, some_of, text_like, to_the_end
from synapsed.api.operation import Streamed, operation, person
from synapsed.errors import Busy, InvalidRequest, NotInFleet, NotReady, TaskNotFound, TooLarge
from synapsed.interfaces import SCHEME, KeptFile
from synapsed.model.events import TYPES
from synapsed_fleet.fleet_answers import (
    FleetEvent,
    FleetFile,
    FleetHeld,
    FleetHost,
    FleetKept,
    FleetOut,
    FleetRow,
    FleetStatus,
)
from synapsed_fleet.fleet_control import Membership

SEE = person("see how the fleet is reached")
REMOVE = person("remove files of others")

HostToken = Annotated[str | None, text_like(r"^[a-z0-9][a-z0-9-]{0,30}$", "the name of a host")]


class FleetQuery(Query):
    host: HostToken = Field(default=None, description="only what is for that host")


FleetCursor = Annotated[
    str | None, text_like(r"^(?:[0-9a-f]{8}-)?[0-9]{1,18}$", "the id of an event of the fleet, or 0 for the first")
]
_Sse = Literal["", "sse"]
_Newest = Literal["", "newest"]


class FleetEventsQuery(Query):
    after: FleetCursor = Field(None, description="go on after this id; `0`: from the first that is kept")
    lastEventId: FleetCursor = Field(None, description="the same, for those who cannot send the header")  # noqa: N815
    stream: Annotated[_Sse, one_of(_Sse)] = Field(
        "", description="`sse` has the same effect as `Accept: text/event-stream`"
    )
    until: Annotated[_Newest, one_of(_Newest)] = Field(
        "", description="`newest`: the stream ends with the newest event that there is"
    )
    types: Annotated[list[str] | None, some_of((*TYPES, "gap"))] = Field(None, description="only these types")
    host: HostToken = Field(default=None, description="only that host's")


class FileBegun(BaseModel):
    """A file that is to be given."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=255)


_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


class FilePiece(BaseModel):
    """The bytes from `offset` on, in base64; `last`: with these it is whole."""

    model_config = ConfigDict(extra="forbid")

    offset: int = Field(ge=0)
    bytes: str = Field(json_schema_extra={"pattern": _BASE64, "contentEncoding": "base64"})
    last: bool = False


@operation("This host in its fleet", "how it stands", allowed=SEE, errors=(NotInFleet,))
async def status(request: web.Request, membership: Membership) -> FleetStatus:
    return await membership.fleet.status()


@operation("The hosts of the fleet", "the hosts, with this one", errors=(NotInFleet,))
async def list_fleet_hosts(request: web.Request, membership: Membership) -> list[FleetHost]:
    return list(await membership.fleet.hosts())


@operation(
    "The events of all hosts of the fleet",
    Streamed("events, from now on or after the cursor", websocket=True),
    allowed=person("read the events of all hosts"),
    errors=(NotInFleet, NotReady),
)
async def fleet_events(request: web.Request, query: FleetEventsQuery, membership: Membership) -> web.StreamResponse:
    """Streams events as `/events` does, with `host` and `number`, which is the event's id at its host; `id` is a place
    in the broker's stream. They have texts only from hosts that publish these (`[fleet.events]`)."""
    after = request.headers.get("Last-Event-ID") or query.lastEventId or query.after
    types = None if query.types is None else frozenset(query.types)
    found = membership.fleet.events(after, newest=query.until == "newest", host=query.host, types=types)
    if query.stream == "sse" or "text/event-stream" in request.headers.get(hdrs.ACCEPT, ""):
        return await serve(request, _frames(await _begun(found)))
    if not is_upgrade(request):
        raise InvalidRequest("ask for text/event-stream (Accept, or ?stream=sse) or upgrade to a WebSocket")
    return await push(request, _documents(await _begun(found)))


@operation("What is under way to other hosts", "the oldest first", allowed=SEE, errors=(NotInFleet,))
async def outbox(request: web.Request, query: FleetQuery, membership: Membership) -> list[FleetOut]:
    """Returns the messages that no host has confirmed."""
    return list(await membership.fleet.outbox(query.host))


@operation("Send it again now", "it is", allowed=person("send for others"), errors=(NotInFleet, TaskNotFound))
async def retry(request: web.Request, membership: Membership) -> FleetRow:
    row = request.match_info["row"]
    if not await to_the_end(membership.fleet.outbox_retry(row)):
        raise _no_such(row)
    return FleetRow(status="retried", id=row)


@operation("Give it up", "it is", allowed=person("cancel for others"), errors=(NotInFleet, TaskNotFound))
async def give_up(request: web.Request, membership: Membership) -> FleetRow:
    """Gives the row up: its task fails with UNDELIVERED, and it stays unknown whether the other host has taken it."""
    row = request.match_info["row"]
    if not await to_the_end(membership.fleet.outbox_cancel(row)):
        raise _no_such(row)
    return FleetRow(status="canceled", id=row)


@operation("What came and was refused", "the newest first", allowed=SEE, errors=(NotInFleet,))
async def quarantine(request: web.Request, membership: Membership) -> list[FleetHeld]:
    """Returns messages that were unsigned, signed by another host than their subject names, or unreadable: none was
    believed."""
    return list(await membership.fleet.quarantine())


async def _begun(found: AsyncGenerator[FleetEvent | None]) -> AsyncGenerator[FleetEvent | None]:
    """Returns the stream once its first item, which is None, has come: an error before that can still be an answer."""
    await anext(found)
    return found


async def _frames(found: AsyncGenerator[FleetEvent | None]) -> AsyncGenerator[SseFrame]:
    async with aclosing(found):
        async for event in found:
            if event is not None:
                yield SseFrame(event.model_dump(mode="json"), event=event.event, event_id=event.id)


async def _documents(found: AsyncGenerator[FleetEvent | None]) -> AsyncGenerator[Any]:
    async with aclosing(found):
        async for event in found:
            if event is not None:
                yield event.model_dump(mode="json")


@operation("Give a file that is too large for a message", "it has begun", errors=(NotInFleet, Busy))
async def begin_file(request: web.Request, body: FileBegun, membership: Membership) -> FleetFile:
    """Begins a file of at most 1 GiB. Once it is complete, a part of a message to a host of the fleet names it by its
    `uri`. It is kept for a day, and for as long as it is under way."""
    return await membership.fleet.files.begin(body.name)


@operation("The next piece of the file", "what is here of it", errors=(NotInFleet, TaskNotFound, TooLarge))
async def add_to_file(request: web.Request, body: FilePiece, membership: Membership) -> FleetFile:
    """Adds a piece. A piece that is here already changes nothing; one that would leave a gap is refused, with the
    `size` so far."""
    try:
        piece = await asyncio.to_thread(base64.b64decode, body.bytes, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest("bytes: must be base64", field="bytes") from None
    file_id = request.match_info["file"]
    return await to_the_end(membership.fleet.files.add(file_id, body.offset, piece, last=body.last))


@operation("A file that came with a task", "its content", allowed=SEE, errors=(NotInFleet, TaskNotFound))
async def read_file(request: web.Request, membership: Membership) -> web.FileResponse:
    host, file_id = request.match_info["host"], request.match_info["file"]
    fleet = membership.fleet
    known = KeptFile.of(f"{SCHEME}{host}/{file_id}")
    path = await fleet.files.path(host, file_id) if known is not None else None
    if path is None:
        raise TaskNotFound(f"no file {file_id[:40]!r} of {host[:40]!r} is kept here", id=file_id[:40])
    return web.FileResponse(path, headers={hdrs.CONTENT_TYPE: "application/octet-stream"})


@operation("The files of this host in the fleet", "what is under way first", allowed=SEE, errors=(NotInFleet,))
async def list_files(request: web.Request, membership: Membership) -> list[FleetKept]:
    """Returns the files that were given here, go to other hosts, come from them, and have come; also messages that go
    as files because they are too large."""
    return list(await membership.fleet.files.listed())


@operation("Remove a file that came from a host", "it is", allowed=REMOVE, errors=(NotInFleet, TaskNotFound, Busy))
async def remove_file(request: web.Request, membership: Membership) -> FleetRow:
    """Removes a file that has come; refuses one that is still coming."""
    return await _remove(membership, request.match_info["host"], request.match_info["file"])


@operation("Remove a file that was given here", "it is", allowed=REMOVE, errors=(NotInFleet, TaskNotFound, Busy))
async def remove_given_file(request: web.Request, membership: Membership) -> FleetRow:
    """Removes a file that was given here and is not under way."""
    return await _remove(membership, None, request.match_info["file"])


async def _remove(membership: Membership, host: str | None, file_id: str) -> FleetRow:
    fleet = membership.fleet
    where = file_id if host is None else f"{host}/{file_id}"
    if KeptFile.of(f"{SCHEME}{where}") is None:
        raise TaskNotFound(f"{where[:80]!r} is no file: 'synapsectl fleet files' lists them", id=where[:80])
    await to_the_end(fleet.files.remove(host, file_id))
    return FleetRow(status="removed", id=where)


def _no_such(row: str) -> TaskNotFound:
    return TaskNotFound(f"{row!r} is not under way: 'synapsectl fleet outbox' lists what is", id=row)
