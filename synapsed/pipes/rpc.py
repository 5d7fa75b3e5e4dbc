"""JSON-RPC in lines, read out of a stream of bytes with offsets. Pure."""

import json
from dataclasses import dataclass
from typing import Any

LINE_MAX = 16 * 1024 * 1024
"""Bytes of a line; a longer one is passed over."""


@dataclass(frozen=True, slots=True)
class RpcLine:
    """One line: its message, or None for anything else, such as a word of the program's own on its stdout. `end` is the
    offset behind it."""

    end: int
    message: dict[str, Any] | None
    text: str = ""


class LineReader:
    """Feed it output at its offsets; `begins`: the output begins in the middle of a line, which is passed over."""

    def __init__(self, *, begins: bool = False) -> None:
        self._held: list[bytes] = []
        self._size = 0
        self._passing = begins

    def feed(self, offset: int, data: bytes) -> list[RpcLine]:
        found, at = [], 0
        while (end := data.find(b"\n", at)) >= 0:
            self._hold(data[at:end])
            at = end + 1
            if not self._passing and (line := b"".join(self._held)).strip():
                found.append(_read(offset + at, line))
            self._held, self._size, self._passing = [], 0, False
        self._hold(data[at:])
        return found

    def skip(self) -> None:
        """Output is missing here: what was held is no line, and neither is the rest of the next."""
        self._held, self._size, self._passing = [], 0, True

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > LINE_MAX:
            self._passing = True
            self._held.clear()
        elif piece:
            self._held.append(piece)


def _read(end: int, line: bytes) -> RpcLine:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, dict) and told.get("jsonrpc") == "2.0":
        return RpcLine(end, told)
    return RpcLine(end, None, line.decode("utf-8", "replace"))


def encode(message: dict[str, Any]) -> bytes:
    """The line of a message, in ASCII: half of a surrogate pair has no UTF-8."""
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
