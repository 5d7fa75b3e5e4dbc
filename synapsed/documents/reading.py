"""Reads JSON from outside piece by piece, and refuses it early.

The cost of a document depends on the number of its values, not of its bytes: half a million keys of five bytes each
block the loop for seconds. So the values are counted before any is decoded, without looking into strings. Strings of
megabytes are decoded separately from the rest of their document, and then inserted.
"""

import asyncio
import math
import re
import time
from collections.abc import Generator
from secrets import token_hex
from typing import Any, Final

import pydantic_core

KEYS_MAX: Final = 10_000
"""Keys of all objects of a document together."""
VALUES_MAX: Final = 50_000
"""Values of all objects and arrays of a document together."""
SLICE: Final = 64 * 1024
"""Bytes that are scanned, or decoded, at a time. A longer string is decoded separately."""
SMALL: Final = 4 * KEYS_MAX
"""Bytes of a document that cannot have too many keys, and is read at once."""
_MARK: Final = token_hex(16)
"""Beginning of the placeholder for a string that is decoded separately. It is random: no text can contain it."""
_LARGE_EXPONENT: Final = re.compile(rb"[eE]\+?[0-9]{3}")
_EXPONENT_SIZE: Final = 8
_COLON: Final = re.compile(rb"[ \t\r\n]*:")
_LOW_SURROGATE: Final = re.compile(rb"\\u[dD][c-fC-F]")
_ESCAPE_SIZE: Final = 6
_CHARACTER_SIZE: Final = 4
_CONTINUES_MASK: Final = 0xC0
_CONTINUES: Final = 0x80
"""Highest bits of a byte of UTF-8 that continues a character."""

type Reading = Generator[None, None, Any]


class TooMuch(ValueError):
    """The text is JSON, but larger than the limits."""


class Tally:
    """Counts of one document so far."""

    def __init__(self) -> None:
        self._keys = 0
        self._values = 0

    def add(self, outside: bytes) -> None:
        """Adds `outside`, a piece of the text outside of its strings. Raises TooMuch."""
        self._keys += outside.count(b":")
        self._values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if self._keys > KEYS_MAX:
            raise TooMuch(f"its objects have more than {KEYS_MAX} keys together")
        if self._values > VALUES_MAX:
            raise TooMuch(f"its objects and arrays have more than {VALUES_MAX} values together")


async def read(raw: bytes) -> Any:
    """Returns the value of a JSON text; other tasks run between two pieces of a large text. Raises ValueError and
    TooMuch: NaN, infinities, numbers too large for a float, lone surrogates, text that is not UTF-8 and more than some
    200 levels are not JSON here."""
    if len(raw) <= SMALL:
        return _value(raw, infinite=_LARGE_EXPONENT.search(raw) is not None)
    steps = reading(raw)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        await asyncio.sleep(0)


def read_in_thread(raw: bytes) -> Any:
    """Returns the value of a JSON text. Call it in a thread: it lets the event loop's thread run between two pieces.
    The text is our own, so its values are not counted."""
    steps = reading(raw, counted=False)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        time.sleep(0)


def reading(raw: bytes, *, counted: bool = True) -> Reading:
    """Reads a piece with each step, and returns the value."""
    survey = _Survey(raw, counted=counted)
    for _ in survey.steps():
        yield
    if not survey.long:
        return _value(raw, infinite=survey.exponents)
    try:
        return (yield from _with_long_strings(raw, survey))
    except TooMuch:
        raise
    except ValueError:
        return _value(raw, infinite=True)  # its error names the place in the whole text


def _value(raw: bytes, *, infinite: bool) -> Any:
    value = pydantic_core.from_json(raw, allow_inf_nan=False, cache_strings="keys")
    if infinite and _has_infinity(value):
        raise ValueError("a number is too large")
    return value


class _Survey:
    """Facts about a document, found without reading it: the number of values, and the places of its long strings."""

    def __init__(self, raw: bytes, *, counted: bool) -> None:
        self.long: list[tuple[int, int]] = []
        """Places of the first and the last quote of each long string."""
        self.exponents = False
        """True if there may be a number that is too large for a float."""
        self._raw = raw
        self._counted = counted
        self._tally = Tally()
        self._edge = b""

    def steps(self) -> Generator[None]:
        """Scans a slice with each step. Raises TooMuch."""
        raw, at, inside, opened = self._raw, 0, False, 0
        while at < len(raw):
            slice_ = raw[at : at + SLICE]
            if ends_in_escape(slice_) and at + len(slice_) < len(raw):
                slice_ = slice_[:-1]
            end = at + len(slice_)
            between = segments(slice_)
            self._count(b"".join(between[inside::2]))
            if len(between) > 1:
                closed = at + len(between[0])
                if inside and closed - opened > SLICE:
                    self.long.append((opened, closed))
                inside ^= len(between) % 2 == 0
                opened = end - len(between[-1]) - 1
            at = end
            yield

    def _count(self, outside: bytes) -> None:
        if not self._counted:
            return
        self._tally.add(outside)
        self.exponents = self.exponents or _LARGE_EXPONENT.search(self._edge + outside) is not None
        self._edge = outside[-_EXPONENT_SIZE:]


def _with_long_strings(raw: bytes, survey: _Survey) -> Reading:
    """Decodes the long strings, then the rest of the document with placeholders for them, and inserts them."""
    texts: dict[str, str] = {}
    rest: list[bytes] = []
    at = 0
    for opened, closed in survey.long:
        if _COLON.match(raw, closed + 1):
            raise TooMuch(f"a key has more than {SLICE} bytes")
        mark = f"{_MARK}{len(texts)}"
        rest += [raw[at : opened + 1], mark.encode()]
        texts[mark] = yield from _text(raw, opened + 1, closed)
        at = closed
    value = _value(b"".join([*rest, raw[at:]]), infinite=survey.exponents)
    return _put_back(value, texts)


def _text(raw: bytes, start: int, stop: int) -> Generator[None, None, str]:
    pieces: list[str] = []
    while start < stop:
        end = stop if stop - start <= SLICE else _cut(raw, start, start + SLICE)
        pieces.append(pydantic_core.from_json(b'"%b"' % raw[start:end], cache_strings="none"))
        start = end
        yield
    return "".join(pieces)


def segments(text: bytes) -> list[bytes]:
    """Returns the pieces between the quotes of `text`, which begins in no escape: every second is inside a string."""
    return text.replace(b"\\\\", b"__").replace(b'\\"', b"__").split(b'"')


def ends_in_escape(text: bytes) -> bool:
    """Returns True if its last byte begins an escape."""
    return bool((len(text) - len(text.rstrip(b"\\"))) % 2)


def _cut(raw: bytes, start: int, at: int) -> int:
    """Returns a place where the string that begins at `start` may be cut, not far before `at`: not within a character,
    an escape or a pair of surrogates."""
    for _ in range(_CHARACTER_SIZE - 1):
        if raw[at] & _CONTINUES_MASK == _CONTINUES:
            at -= 1
    escape = raw.rfind(b"\\", at - _ESCAPE_SIZE + 1, at)
    if escape != -1 and ends_in_escape(raw[start : escape + 1]):
        at = escape
    if _LOW_SURROGATE.match(raw, at) and raw.startswith(b"\\u", at - _ESCAPE_SIZE):
        at -= _ESCAPE_SIZE
    return at


def _put_back(value: Any, texts: dict[str, str]) -> Any:
    if isinstance(value, str):
        return texts.get(value, value)
    if isinstance(value, dict):
        return {key: _put_back(child, texts) for key, child in value.items()}
    if isinstance(value, list):
        return [_put_back(child, texts) for child in value]
    return value


def _has_infinity(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_infinity(child) for child in value.values())
    if isinstance(value, list):
        return any(_has_infinity(child) for child in value)
    return isinstance(value, float) and math.isinf(value)
