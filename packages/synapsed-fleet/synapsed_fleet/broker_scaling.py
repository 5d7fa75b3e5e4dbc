"""Moves the content of the streams when one broker becomes three, or three become one.

A server that becomes one of a cluster begins with an empty store, and so does one that is single again. Mail would be
sent again by its senders; but claims would be lost, and work of which a host has reported nothing yet might be done
twice. So every stream is copied into files, and put at the following brokers before anything else makes it there. In
the meantime no work can be claimed: claims have another subject at the old broker from the first step on. Messages that
come after the copy are sent again by their senders, which have no receipt.

The steps are `pack`, then another server, then `unpack`; a step that was killed is done again.
"""

import contextlib
import fcntl
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from synapsed.errors import ConfigError, StoreError, Unreachable
from synapsed.shared.files import write_private
from synapsed_fleet.admin import Admin
from synapsed_fleet.streams import CLAIM, STREAMS, stream

FENCED: Final = "syn.claimed.>"
"""The claims' subject while they are copied."""
CHUNK: Final = 128 * 1024
WHOLE: Final = "whole.json"
"""File with the names of the streams that are copied; it is written last."""
ROOM: Final = 1 << 30
"""Bytes that stay free on the disk."""


class Moving:
    """The copies of the streams, in one directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def is_packed(self) -> bool:
        return (self._folder / WHOLE).exists()

    async def pack(self, admin: Admin) -> list[str]:
        """Copies what the broker has; returns the names of the streams. The old broker refuses claims from then on,
        until `Admin.ensure` restores their subject. Raises RemoteRefused, Unreachable, StoreError, and ConfigError if
        the disk has no room."""
        with self._held():
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir(mode=0o700, parents=True)
            state = {one["name"]: int(one["bytes"]) for one in await admin.state()}
            if (needed := 3 * sum(state.values()) + ROOM) > shutil.disk_usage(self._folder).free:
                raise ConfigError(f"the streams are copied for it, and that needs {needed >> 20} MiB of free disk here")
            names = [kept.name for kept in STREAMS if kept.name in state]
            if CLAIM in names:
                await admin.change_stream(CLAIM, {"subjects": [FENCED]})
            for name in sorted(names, key=lambda name: name != CLAIM):
                told = await admin.copy_stream(name, self._folder / f"{name}.copy", chunk=CHUNK)
                self._write(f"{name}.json", told)
            self._write(WHOLE, names)
            return names

    async def unpack(self, admin: Admin, *, replicas: int, store: int) -> list[str]:
        """Puts the copies at the broker and deletes them; returns, in sentences, what was done. Raises RemoteRefused,
        Unreachable, StoreError."""
        if not self._folder.exists():
            return []
        with self._held():  # not while another process packs
            done = []
            names = self._read(WHOLE) if self.is_packed() else []
            for kept in STREAMS:
                if kept.name in names and not await admin.has_stream(kept.name):
                    wanted = stream(kept, replicas=replicas, store=store)
                    told = self._read(f"{kept.name}.json")
                    await admin.put_stream(wanted, told, self._folder / f"{kept.name}.copy", chunk=CHUNK)
                    done.append(f"the stream {kept.name} was moved, with {told['state']['messages']} messages")
            shutil.rmtree(self._folder, ignore_errors=True)
            return done

    def forget(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Holds the lock against other moves: the fleet's registrar and a person's verb may both move. Raises
        Unreachable."""
        path = self._folder.with_suffix(".lock")
        with path.open("ab") as lock:
            path.chmod(0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Unreachable("the streams are being moved", sent=False) from None
            yield

    def _write(self, name: str, what: Any) -> None:
        write_private(self._folder / name, json.dumps(what).encode())

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self._folder / name).read_bytes())
        except (OSError, ValueError) as error:
            raise StoreError(f"{self._folder / name} cannot be read: {error}", file=str(self._folder / name)) from None
