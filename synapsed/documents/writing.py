"""Encodes JSON with large texts in it once for all receivers, and piece by piece.

An answer of megabytes goes to every stream that follows its task, in several forms of JSON, which differ in a few bytes
around the same text. So a large text is encoded apart from its document, by the first writer that needs the next piece,
and shared for as long as it is being written. No piece takes more than a moment of the loop.
"""

import asyncio
from collections.abc import Iterator
from itertools import count
from secrets import token_hex
from typing import Any, Final
from weakref import WeakValueDictionary

import pydantic_core
from pydantic import BaseModel

PIECE: Final = 16 * 1024
"""Characters that are encoded, and bytes that are written, at a time."""
LARGE: Final = 4 * PIECE
"""Characters from which on a text is shared."""
SAMPLE: Final = 128
"""Characters of a text's beginning, middle and end by which it is found; hashing it whole would take ten times as long
as comparing it."""
_MARK: Final = token_hex(16)
"""Mark of a large text in its document. It stays secret, so that no text can contain it."""
_MARK_JSON: Final = f'"{_MARK}"'.encode()


type Parts = list[bytes | SharedText]
"""A document in parts, of which the large ones are shared."""


def encode_json(value: Any) -> bytes:
    """Returns `value` as JSON; numbers that JSON does not have become null."""
    return pydantic_core.to_json(value, inf_nan_mode="null")


class SharedText:
    """A text as the inside of a JSON string, encoded as far as it was needed."""

    __slots__ = ("__weakref__", "_pieces", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._pieces: list[bytes] = []

    def __len__(self) -> int:
        return len(self.text)

    def pieces(self) -> Iterator[bytes]:
        for number in count():
            start = number * PIECE
            if start >= len(self.text):
                return
            if number == len(self._pieces):
                self._pieces.append(encode_json(self.text[start : start + PIECE])[1:-1])
            yield self._pieces[number]


class Whole:
    """A document in one piece, for writers that need one; all its present holders share it."""

    __slots__ = ("__weakref__", "_parts", "data")

    def __init__(self, parts: Parts) -> None:
        self._parts = parts  # they are kept, because their ids, the key of the document, are unique while they live
        self.data = b"".join(piece for part in parts for piece in _pieces(part))


class Texts:
    """The large texts that are being written, by their content: readers of an event share one object, but a task is
    read from the store for each reader."""

    def __init__(self) -> None:
        self._held: WeakValueDictionary[tuple[int, str, str, str], SharedText] = WeakValueDictionary()
        self._wholes: WeakValueDictionary[tuple[bytes | int, ...], Whole] = WeakValueDictionary()

    def encode(self, value: Any) -> Parts:
        """Returns `value` as JSON, in parts."""
        if not has_large(value):
            return [encode_json(value)]
        texts: list[SharedText] = []
        around = encode_json(self._lift(value, texts)).split(_MARK_JSON)
        parts: Parts = [around[0]]
        for text, after in zip(texts, around[1:], strict=True):
            parts += [b'"', text, b'"' + after]
        return parts

    async def whole(self, value: Any) -> Whole:
        """Returns `value`, which may be JSON already, as JSON in one piece."""
        parts: Parts = [value] if isinstance(value, bytes) else self.encode(value)
        if len(parts) == 1:
            return Whole(parts)
        await encoded_size(parts)
        key = tuple(part if isinstance(part, bytes) else id(part) for part in parts)
        held = self._wholes.get(key)
        if held is None:
            self._wholes[key] = held = Whole(parts)
        return held

    def _lift(self, value: Any, texts: list[SharedText]) -> Any:
        """Returns `value` with marks in place of large texts; the texts go to `texts`, in the order of the document."""
        if isinstance(value, dict):
            return {key: self._lift(child, texts) for key, child in value.items()}
        if isinstance(value, list):
            return [self._lift(child, texts) for child in value]
        if isinstance(value, BaseModel):
            return self._lift(value.model_dump(mode="json", by_alias=True), texts)
        if isinstance(value, str) and len(value) >= LARGE:
            texts.append(self._shared(value))
            return _MARK
        return value

    def _shared(self, text: str) -> SharedText:
        middle = len(text) // 2
        key = (len(text), text[:SAMPLE], text[middle : middle + SAMPLE], text[-SAMPLE:])
        held = self._held.get(key)
        if held is None or held.text != text:
            self._held[key] = held = SharedText(text)
        return held


def sliced(parts: Parts) -> Iterator[bytes]:
    """Yields the bytes of `parts`, at most about `PIECE` at a time. Small parts are joined."""
    small: list[bytes] = []
    size = 0
    for part in parts:
        for piece in _pieces(part):
            if size + len(piece) > PIECE and small:
                yield b"".join(small)
                small, size = [], 0
            small.append(piece)
            size += len(piece)
    if small:
        yield b"".join(small)


def _pieces(part: bytes | SharedText) -> Iterator[bytes]:
    if isinstance(part, SharedText):
        return part.pieces()
    return iter((part,)) if len(part) <= PIECE else (part[at : at + PIECE] for at in range(0, len(part), PIECE))


async def joined(parts: Parts) -> bytes:
    """Returns `parts` in one piece, for keeping; other tasks run meanwhile."""
    await encoded_size(parts)
    return b"".join(piece for part in parts for piece in _pieces(part))


async def encoded_size(parts: Parts) -> int:
    """Returns the number of bytes that `parts` have when they are written; afterwards their texts are encoded."""
    size = 0
    for number, piece in enumerate(sliced(parts)):
        size += len(piece)
        if number:  # a small text is done at once
            await asyncio.sleep(0)
    return size


def has_large(value: Any) -> bool:
    """Returns True if a text that is worth sharing is in a JSON value or in a model."""
    waiting = [value]
    for one in waiting:  # the list grows in the loop
        if isinstance(one, str):
            if len(one) >= LARGE:
                return True
        elif one is None:  # most fields of a model
            continue
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, BaseModel):
            waiting.extend(one.__dict__.values())
    return False
