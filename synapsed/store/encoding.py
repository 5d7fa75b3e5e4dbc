"""Models as JSON, as they are at that moment.

The encoder holds the interpreter's lock, so that another thread would not free the loop. A model with large texts is
therefore taken as its document, which shares them (texts do not change), and encoded piece by piece; it is kept in
memory as that document, from which a model is made without looking at a single character.
"""

import sqlite3
from typing import Any

from pydantic import BaseModel

from synapsed.documents.reading import read_aside
from synapsed.documents.writing import LARGE, Parts, Texts, has_large, joined

__all__ = ["LARGE_ROW", "Encoded", "Kept", "read_large"]

LARGE_ROW = LARGE
"""Characters of JSON from which on a row of the database is read piece by piece."""

type Kept = str | dict[str, Any]
"""A model as JSON, or one with large texts as its document."""


class Encoded:
    """A model that is to be written."""

    __slots__ = ("_parts", "data", "document")

    def __init__(self, model: BaseModel, texts: Texts) -> None:
        self.data: str | bytes = b""
        """JSON; of a model with large texts only after `finish`."""
        self.document: dict[str, Any] | None = None
        self._parts: Parts | None = None
        if has_large(model):
            self.document = model.model_dump(mode="json")
            self._parts = texts.encode(self.document)
        else:
            self.data = model.model_dump_json()

    @property
    def unfinished(self) -> bool:
        return self._parts is not None

    async def finish(self) -> None:
        """Encode what is large; others have the loop meanwhile."""
        if self._parts is not None:
            self.data = await joined(self._parts)
            self._parts = None

    @property
    def kept(self) -> Kept:
        """What is kept of it in memory."""
        if self.document is not None:
            return self.document
        assert isinstance(self.data, str)
        return self.data

    def __len__(self) -> int:
        return len(self.data)


def read_large(connection: sqlite3.Connection, query: str, key: str | int) -> Any:
    """The document in a large row, in the thread that reads."""
    (data,) = connection.execute(query, (key,)).fetchone()
    return read_aside(data)
