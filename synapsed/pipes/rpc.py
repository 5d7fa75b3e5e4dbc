"""Reads and writes JSON-RPC, one message a line; a stream of bytes with offsets is the input. Pure."""

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

METHOD_NOT_FOUND = -32601
"""The error code of JSON-RPC 2.0 for an unknown method."""

LINE_MAX = 16 * 1024 * 1024
"""Largest number of bytes of a line; a longer one is skipped."""

DEPTH_MAX = 64
"""Largest depth of nested lists and objects: messages are encoded again when passed on, also by other programs."""

INNER_MAX = 50_000
PARTS_MAX = 500_000
"""Largest numbers of opening brackets and of commas in a line, also counted within its texts: 16 MB of only those would
block the daemon for two seconds. No program's messages have nearly so many."""

SHOWN_MAX = 4096
"""Largest number of bytes shown of a line that is no message."""

COUNT_MAX = (1 << 63) - 1
"""The largest number that the database can hold."""


@dataclass(frozen=True, slots=True)
class RpcLine:
    """One line of the output."""

    begin: int
    """Spool offset of its first byte."""
    end: int
    """Spool offset after it."""
    message: dict[str, Any] | None
    """None for anything but JSON-RPC, such as plain text on the program's stdout."""
    text: str = ""
    """Beginning of a line that is not JSON-RPC."""


def size_of(value: Any) -> int:
    """Returns roughly the number of characters of the value's JSON. No recursion: others decide the depth."""
    size, rest = 0, [value]
    while rest:
        one = rest.pop()
        if isinstance(one, dict):
            rest += [*one, *one.values()]
        elif isinstance(one, list):
            rest += one
        size += len(one) + 4 if isinstance(one, str) else 8
    return size


class LineReader:
    """Reads lines from output that is fed with its offsets. With `begins`, the output begins in the middle of a line,
    and this line is skipped."""

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
        """Notes that output is missing here: drops the incomplete line before it, and the line's rest after it."""
        self._held, self._size, self._passing = [], 0, True

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > LINE_MAX:
            self._passing = True
            self._held.clear()
        elif piece:
            self._held.append(piece)


def _read(end: int, line: bytes) -> RpcLine:
    told, begin = None, end - len(line) - 1
    if line.count(b"[") + line.count(b"{") <= INNER_MAX and line.count(b",") <= PARTS_MAX:
        with suppress(ValueError, RecursionError):
            told = json.loads(line)
    if isinstance(told, dict) and told.get("jsonrpc") == "2.0" and _is_sound(told, line):
        return RpcLine(begin, end, _encodable(told, line))
    return RpcLine(begin, end, None, line[:SHOWN_MAX].decode("utf-8", "replace"))


def _is_sound(message: dict[str, Any], line: bytes) -> bool:
    """Returns True if the message's id is valid and the message is not deeper than DEPTH_MAX."""
    if not isinstance(message.get("id"), str | int | float | None):
        return False
    if line.count(b"[") + line.count(b"{") <= DEPTH_MAX:
        return True
    level: list[Any] = [message]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return True
    return False


def _encodable(message: dict[str, Any], line: bytes) -> dict[str, Any]:
    """Returns `message` with halves of surrogate pairs replaced (escaped or not), so that its text can be encoded."""
    if b"\\u" not in line and b"\xed" not in line:
        return message
    text = json.dumps(message, ensure_ascii=False)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return message if whole == text else dict(json.loads(whole))


def objects(value: Any) -> list[dict[str, Any]]:
    """Returns the objects in a list from the program; empty if it is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def count(value: Any) -> int | None:
    """Returns `value` if it is an integer from 0 to COUNT_MAX, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX else None


def encode(message: dict[str, Any]) -> bytes:
    """Returns the line of a message, in ASCII: a lone half of a surrogate pair cannot be encoded as UTF-8."""
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
