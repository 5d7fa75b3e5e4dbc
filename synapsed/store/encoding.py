"""Models as JSON, as they are at that moment.

The encoder holds the interpreter's lock, so that another thread would not free the loop. A model with large texts is
therefore taken as its document, which shares them (texts do not change), and encoded piece by piece; it is kept in
memory as that document, from which a model is made without looking at a single character.
"""

import asyncio
import json
import sqlite3
from typing import Any

from pydantic import BaseModel

from synapsed.documents.reading import read_aside
from synapsed.documents.writing import LARGE, Texts, has_large, joined
from synapsed.masking import mask
from synapsed.store.sealing import BLOB, Sealer

__all__ = ["LARGE_ROW", "Encoded", "Kept", "read_large"]

LARGE_ROW = LARGE
"""Characters of JSON from which on a row of the database is read piece by piece."""

type Kept = str | dict[str, Any]
"""A model as JSON, or one with large texts as its document."""


class Encoded:
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


def read_large(connection: sqlite3.Connection, table: str, key: str | int) -> Any:
    """The document in a large row of `table`, in the thread that reads."""
    (data,) = connection.execute(f"SELECT {BLOB} FROM {table} WHERE id = ?", (key,)).fetchone()  # noqa: S608 - constants
    return read_aside(data)
