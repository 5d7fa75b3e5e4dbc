"""Copies a JetStream stream of the broker to a file, and back. Consumers are not copied: they would keep their old
number of replicas. A work-queue stream still has every message that was not acknowledged."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from synapsed.errors import RemoteRefused, StoreError, Unreachable
from synapsed.shared.outside_json import NotJson, read_object
from synapsed_fleet.streams import Document

INBOX: Final = "_INBOX__admin.copy"
PART_S: Final = 30.0
"""Seconds to wait for the next part."""
AT_ONCE: Final = 8
"""Parts whose ack may be missing at one time."""


async def copy_out(client: Client, name: str, path: Path, *, chunk: int) -> dict[str, Any]:
    """Writes the stream `name` to a new file, which is synced; returns `config` and `state` as the broker gives them.
    Raises RemoteRefused, Unreachable, StoreError."""
    inbox = f"{INBOX}.{name}"
    parts: asyncio.Queue[Msg] = asyncio.Queue()
    subscription = await client.subscribe(inbox, cb=parts.put)
    try:
        asked = {"deliver_subject": inbox, "no_consumers": True, "jsck": False, "chunk_size": chunk}
        answer = await _asked(client, f"$JS.API.STREAM.SNAPSHOT.{name}", asked)
        file = await asyncio.to_thread(_new, path)
        try:
            await _receive(client, name, parts, file)
        finally:
            await asyncio.to_thread(file.close)
    finally:
        await subscription.unsubscribe()
    return {"config": answer["config"], "state": answer["state"]}


async def _receive(client: Client, name: str, parts: "asyncio.Queue[Msg]", file: BinaryIO) -> None:
    while True:
        try:
            part = await asyncio.wait_for(parts.get(), PART_S)
        except TimeoutError:
            raise Unreachable(f"the broker does not go on with the copy of {name}", sent=True) from None
        if not part.data:
            status = (part.headers or {}).get("Status", "204")
            if status not in ("", "204", "200"):
                raise RemoteRefused(f"the broker ends the copy of {name}: {(part.headers or {}).get('Description')}")
            await asyncio.to_thread(_synced, file)
            return
        await asyncio.to_thread(file.write, part.data)
        if part.reply:
            await client.publish(part.reply, b"")


async def copy_in(client: Client, wanted: Document, copied: Mapping[str, Any], path: Path, *, chunk: int) -> None:
    """Makes the stream with the configuration `wanted`, from a file that `copy_out` has written. Raises RemoteRefused,
    Unreachable, StoreError."""
    name = wanted["name"]
    config = {key: value for key, value in copied["config"].items() if key != "persist_mode"} | wanted
    answer = await _asked(client, f"$JS.API.STREAM.RESTORE.{name}", {"config": config, "state": copied["state"]})
    to = str(answer["deliver_subject"])
    try:
        file = await asyncio.to_thread(path.open, "rb")
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", file=str(path)) from None
    with file:
        while some := [part for _ in range(AT_ONCE) if (part := await asyncio.to_thread(file.read, chunk))]:
            await asyncio.gather(*(_part(client, name, to, part) for part in some))
    await _part(client, name, to, b"")


async def _part(client: Client, name: str, to: str, part: bytes) -> None:
    try:
        message = await client.request(to, part, timeout=PART_S)
        answer = read_object(message.data or b"{}")
    except (nats.errors.Error, NotJson) as error:
        raise Unreachable(f"the broker does not take the copy of {name}: {error}", sent=True) from None
    if failed := answer.get("error"):
        raise RemoteRefused(f"the broker refuses the copy of {name}: {failed.get('description')}")


async def _asked(client: Client, subject: str, body: Document) -> dict[str, Any]:
    try:
        message = await client.request(subject, json.dumps(body).encode(), timeout=PART_S)
        answer = read_object(message.data)
    except (nats.errors.Error, NotJson) as error:
        raise Unreachable(f"the broker does not answer {subject}: {error}", sent=True) from None
    if failed := answer.get("error"):
        raise RemoteRefused(f"the broker refuses {subject}: {failed.get('description')}")
    return answer


def _new(path: Path) -> BinaryIO:
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}", file=str(path)) from None


def _synced(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
