"""A daemon that has this on its path notes each byte that it has the keepers write, a line of JSON for each write."""

import json
import os
from typing import Any

from synapsed.keepers.client import KeeperClient

_write, _write_now = KeeperClient._write, KeeperClient.write_now


def _note(client: KeeperClient, data: bytes, input_id: str | None) -> None:
    if (path := os.environ.get("KEYS_WRITTEN")) is not None:
        line = json.dumps([client.hello.launch_id, input_id, data.decode("latin-1")]) + "\n"
        with open(path, "a") as file:
            file.write(line)


async def _noted_write(self: KeeperClient, data: bytes, input_id: str | None) -> Any:
    _note(self, data, input_id)
    return await _write(self, data, input_id)


def _noted_write_now(self: KeeperClient, data: bytes) -> None:
    _note(self, data, None)
    _write_now(self, data)


KeeperClient._write = _noted_write  # type: ignore[method-assign]  # the one door through which keys go
KeeperClient.write_now = _noted_write_now  # type: ignore[method-assign]
