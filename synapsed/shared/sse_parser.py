"""Reads server-sent events incrementally (WHATWG HTML §9.2.6). The person's tool imports it too."""

from typing import NamedTuple

EVENT_MAX = 64 * 1024 * 1024
"""Bytes of one event: more than every answer that the daemon keeps, and still harmless for a person's machine."""


class SseEvent(NamedTuple):
    """One event. `id` is the last id seen, so that it is the cursor after this event."""

    event: str
    data: str
    id: str


class SseTooLarge(ValueError):
    """An event has more bytes than the limit."""


class SseParser:
    """Parses bytes in any chunking. Comments keep a connection alive and are not events."""

    def __init__(self, event_max: int = EVENT_MAX) -> None:
        """`event_max`: bytes of one event at most."""
        self._event_max = event_max
        self._pieces: list[bytes] = []
        """A line that is not whole yet; joined only when its end comes, so that a long one costs its length once."""
        self._held = 0
        self._event = ""
        self._data: list[str] = []
        self._size = 0
        self.last_id = ""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Returns the events that `chunk` completes. Raises SseTooLarge."""
        self._pieces.append(chunk)
        self._held += len(chunk)
        if self._held + self._size > self._event_max:
            raise SseTooLarge(f"an event of more than {self._event_max} bytes")
        if b"\n" not in chunk and b"\r" not in chunk and self._pieces[-2:-1] != [b"\r"]:
            return []
        buffer = b"".join(self._pieces)
        # A CR at the end may be half of a CRLF: it waits for the byte after it.
        held = b"\r" if buffer.endswith(b"\r") else b""
        *lines, rest = buffer.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._pieces = [piece for piece in (rest, held) if piece]
        self._held = len(rest) + len(held)
        return [event for line in lines if (event := self._line(line.decode("utf-8", "replace"))) is not None]

    def _line(self, line: str) -> SseEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self.last_id = value
        return None

    def _dispatch(self) -> SseEvent | None:
        event, data = self._event, self._data
        self._event, self._data, self._size = "", [], 0
        return SseEvent(event or "message", "\n".join(data), self.last_id) if data else None
