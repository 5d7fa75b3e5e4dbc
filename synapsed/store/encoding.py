"""Models as JSON, as they are at that moment.

The encoder holds the interpreter's lock, so that another thread would not free the loop. A model with large texts is
therefore taken as its document, which shares them (texts do not change), and encoded piece by piece; it is kept in
memory as that document, from which a model is made without looking at a single character.
"""

import asyncio
import hashlib
import json
import sqlite3
import sys
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel

from synapsed.documents.budget import Budget
from synapsed.documents.reading import SLICE, read_aside
from synapsed.documents.writing import LARGE, Texts, has_large, joined
from synapsed.model.masking import mask
from synapsed.store.secret_encryption import SEALED, Sealer

LARGE_ROW = LARGE
"""Characters of JSON from which on a row of the database is read piece by piece."""

_WIDE: Final = (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")
"""What a character beyond the first 65,536 begins with in UTF-8. A text with one takes four bytes for each."""

type Kept = str | dict[str, Any]
"""A model as JSON, or one with large texts as its document."""


class EncodedModel:
    """A model that is to be written."""

    __slots__ = ("_masked", "_texts", "data", "document")

    def __init__(self, model: BaseModel, texts: Texts, *, masked: bool = False) -> None:
        """With `masked` it is kept without the secrets in it; else they are sealed when it is written."""
        self.data: str | bytes = b""
        """JSON; of a model with large texts only after `finish`, and then its secrets are sealed."""
        self.document: dict[str, Any] | None = None
        self._texts: Texts | None = None
        self._masked = masked
        if has_large(model):
            self.document = model.model_dump(mode="json")
            self._texts = texts
        elif masked:
            self.data = json.dumps(mask(model.model_dump(mode="json")), ensure_ascii=False, separators=(",", ":"))
        else:
            self.data = model.model_dump_json()

    @property
    def unfinished(self) -> bool:
        return self._texts is not None

    async def finish(self, sealer: Sealer) -> None:
        """Encode what is large; others have the loop meanwhile."""
        if self._texts is not None:
            assert self.document is not None
            if self._masked:
                self.document = written = await asyncio.to_thread(mask, self.document)
            else:
                written = await asyncio.to_thread(sealer.seal_document, self.document)
            self.data = await joined(self._texts.encode(written))
            self._texts = None

    def sealed(self, sealer: Sealer) -> str | bytes:
        """What is written of it: its secrets are sealed."""
        return sealer.seal(self.data) if isinstance(self.data, str) else self.data

    @property
    def kept(self) -> Kept:
        """What is kept of it in memory."""
        if self.document is not None:
            return self.document
        assert isinstance(self.data, str)
        return self.data

    def __len__(self) -> int:
        return len(self.data)


def weigh_large(connection: sqlite3.Connection, table: str, key: int) -> tuple[int, bytes]:
    """How many bytes a character of a large row of `table` takes in memory at the most, and the digest of the row."""
    ascii_only, wide, digest = True, False, _digest()
    for piece in _stored(connection, table, key):
        ascii_only = ascii_only and piece.isascii()
        wide = wide or any(lead in piece for lead in _WIDE)
        digest.update(piece)
    return 4 if wide else 1 if ascii_only else 2, digest.digest()


def read_large(connection: sqlite3.Connection, table: str, key: int) -> Any:
    """The document in a large row of `table`, in the thread that reads."""
    return _document(connection, b"".join(_stored(connection, table, key)))


def share_large(connection: sqlite3.Connection, table: str, key: int, name: str, room: Budget) -> Any:
    """The same; nothing is made of the row where somebody holds what was made of it, in `room` under `name` and its
    digest."""
    raw = b"".join(_stored(connection, table, key))
    place = (name, _digest(raw).digest())
    document = room.shared(place)
    if document is None:
        document = _document(connection, raw)
        room.share(place, document)
    return document


def texts_size(document: Any) -> int:
    """Bytes that the large texts of a document take in memory."""
    if isinstance(document, dict):
        return sum(map(texts_size, document.values()))
    if isinstance(document, list):
        return sum(map(texts_size, document))
    return sys.getsizeof(document) if isinstance(document, str) and len(document) >= LARGE else 0


def _stored(connection: sqlite3.Connection, table: str, key: int) -> Iterator[bytes]:
    """The bytes of `data` in the row, of which SQLite has no copy meanwhile."""
    with connection.blobopen(table, "data", key, readonly=True) as blob:
        while piece := blob.read(SLICE):
            yield piece


def _document(connection: sqlite3.Connection, raw: bytes) -> Any:
    if SEALED in raw:
        (raw,) = connection.execute("SELECT unsealed(?)", (raw,)).fetchone()
    return read_aside(raw)


def _digest(raw: bytes = b"") -> "hashlib._Hash":
    return hashlib.sha256(raw)
