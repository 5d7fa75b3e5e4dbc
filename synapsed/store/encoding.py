"""Encodes models for the database, as JSON of their present state, with the secrets encrypted, so that a copy of the
database reveals no secrets.

The encoder holds the interpreter's lock, so that another thread would not free the loop. A model with large texts is
therefore taken as its document, which shares them (texts do not change), and encoded piece by piece; it is kept in
memory as that document, from which a model is made without looking at a single character.

A message must reach the program as it was written, and an answer its asker, also after a restart; so the secrets that
`synapsed.model.masking` finds in them cannot be left out. Each secret within a row's JSON is replaced by a mark with
its AES-256-GCM ciphertext, and put back when the row is read. Everything else of the row stays readable. The key is a
file of its own (0600) beside the database: both together give the secrets, a backup of the database alone does not.
"""

import asyncio
import base64
import hashlib
import json
import os
import re
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from synapsed.documents.budget import Budget
from synapsed.documents.reading import SLICE, read_in_thread
from synapsed.documents.writing import LARGE, Texts, has_large, joined
from synapsed.errors import StoreError
from synapsed.model.masking import is_secret_key, mask, nested_under_key, secret_spans
from synapsed.shared.files import write_whole
from synapsed.shared.regex import regex

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
_NONCE_BYTES = 12
_MARK: Final = "\u27e6sealed:"
SEALED: Final = _MARK.encode()
"""Beginning of each sealed secret."""
_SEALED = regex(_MARK + "([A-Za-z0-9_-]{38,})\u27e7")
_SEALED_BYTES = regex(_SEALED.pattern.encode())
_BLOB = b"\x00sealed1"
"""Beginning of a sealed blob; a redraw of a screen begins with ESC."""


class Sealer:
    """Replaces the secrets of JSON texts by marks, and marks by the secrets. `key` has `KEY_BYTES` bytes. Data sealed
    with another key cannot be read: a mark stays as it is, as a text that only looks like one does; a blob is None."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @cached_property
    def _cipher(self) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 30 ms, and most homes have no secret at first

        return AESGCM(self._key)

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Makes `connection` return texts as they were before sealing, and adds the SQL function `unsealed`."""
        connection.text_factory = self.text
        connection.create_function("unsealed", 1, self.unseal_bytes, deterministic=True)

    def keep(self, path: Path) -> None:
        """Writes the key to `path`, from which its file was removed. Raises OSError."""
        if not path.exists():
            write_whole(path, self._key)

    def text(self, read: bytes) -> str:
        """Returns a text of the database as it was before it was sealed."""
        text = read.decode(errors="replace")  # a damaged row must not end the reading of the others
        return _SEALED.sub(self._unsealed, text) if SEALED in read else text

    def seal(self, text: str) -> str:
        """Returns `text`, which is JSON, with its secrets sealed: JSON of the same shape."""
        if not (secret_spans(text) or nested_under_key(text)):
            return text
        # The search may also match between two texts of the JSON: so each text is searched by itself.
        return json.dumps(self.seal_document(json.loads(text)), ensure_ascii=False, separators=(",", ":"))

    def seal_document(self, document: Any) -> Any:
        """Does the same as `seal` for a document that is not JSON yet."""
        return self._seal_document("", document, secret=False)

    def unseal_bytes(self, read: bytes) -> bytes:
        """Does the same as `text` for bytes."""
        return _SEALED_BYTES.sub(lambda match: self._unsealed_letters(match[1].decode()) or match[0], read)

    def seal_blob(self, blob: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return _BLOB + nonce + self._cipher.encrypt(nonce, blob, None)

    def unseal_blob(self, blob: bytes) -> bytes | None:
        if not blob.startswith(_BLOB):
            return blob  # written by an older version
        return self._decrypt(blob[len(_BLOB) :])

    def _sealed(self, secret: str) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, secret.encode("utf-8", "surrogatepass"), None)
        return f"{_MARK}{base64.urlsafe_b64encode(sealed).decode().rstrip('=')}\u27e7"

    def _unsealed(self, match: re.Match[str]) -> str:
        secret = self._unsealed_letters(match[1])
        return match[0] if secret is None else secret.decode("utf-8", "surrogatepass")

    def _unsealed_letters(self, letters: str) -> bytes | None:
        try:
            return self._decrypt(base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4)))
        except ValueError:  # somebody wrote what looks like a mark
            return None

    def _decrypt(self, sealed: bytes) -> bytes | None:
        """Returns the unsealed text; None if it was sealed with another key."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except InvalidTag:
            return None

    def _seal_document(self, key: str, value: Any, *, secret: bool) -> Any:
        """Returns `value`, which stands under `key`, with its secrets sealed; all of its texts, if `secret`."""
        secret = secret or is_secret_key(key)
        if isinstance(value, str):
            return self._seal_text(value, [(0, len(value))] if secret and value else secret_spans(value))
        if isinstance(value, dict):
            return {name: self._seal_document(name, item, secret=secret) for name, item in value.items()}
        return [self._seal_document("", item, secret=secret) for item in value] if isinstance(value, list) else value

    def _seal_text(self, text: str, spans: list[tuple[int, int]]) -> str:
        """Seals the spans of a text. Secrets are later put back into JSON, so they are sealed in their JSON form."""
        parts, last = [], 0
        for start, end in spans:
            if _MARK not in text[start:end]:
                parts += [text[last:start], self._sealed(json.dumps(text[start:end], ensure_ascii=False)[1:-1])]
                last = end
        return "".join([*parts, text[last:]]) if parts else text


def load_key(path: Path, database: Path) -> bytes:
    """Returns the key in the file `path`, which is made (0600) if it does not exist. Raises StoreError, also if it is
    gone and `database` has secrets: agents would get the marks in place of them."""
    try:
        if not path.exists():
            if _has_secrets(database):
                told = f"{path} is gone, the key of the secrets in {database}: put it back; or, to go on without those"
                way = f"(umask 077; head -c {KEY_BYTES} /dev/urandom > {shlex.quote(str(path))})"
                raise StoreError(f"{told} secrets, make another one: {way}", reason="key", path=str(path))
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, os.urandom(KEY_BYTES))
        key = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", reason="io", path=str(path)) from error
    if len(key) != KEY_BYTES:
        raise StoreError(
            f"{path}: {len(key)} bytes, the key of the database has {KEY_BYTES}: put the right file back; "
            "without it the secrets in older tasks cannot be read",
            reason="key",
            path=str(path),
        )
    return key


def _has_secrets(database: Path) -> bool:
    """Returns True if a text in `database` was sealed, or if it cannot be read."""
    if not database.exists() or not database.stat().st_size:
        return False
    columns = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE c.type = 'TEXT'"
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            found = 'SELECT 1 FROM "{}" WHERE instr(CAST("{}" AS BLOB), ?)'
            places = connection.execute(columns).fetchall()
            return any(connection.execute(found.format(*place), (SEALED,)).fetchone() for place in places)
    except sqlite3.DatabaseError:
        return True


LARGE_ROW = LARGE
"""Characters of JSON from which on a row of the database is read piece by piece."""

_WIDE: Final = (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")
"""First bytes in UTF-8 of characters beyond the first 65,536. With one of them, each character takes four bytes."""

type Kept = str | dict[str, Any]
"""A model as JSON, or one with large texts as its document."""


class EncodedModel:
    """A model that is to be written."""

    __slots__ = ("_masked", "_texts", "data", "document")

    def __init__(self, model: BaseModel, texts: Texts, *, masked: bool = False) -> None:
        """Leaves the secrets in it out if `masked`; else they are sealed when it is written."""
        self.data: str | bytes = b""
        """JSON; for a model with large texts only after `finish`, and then its secrets are sealed."""
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
        """Encodes large texts; other tasks of the loop run meanwhile."""
        if self._texts is not None:
            assert self.document is not None
            if self._masked:
                self.document = written = await asyncio.to_thread(mask, self.document)
            else:
                written = await asyncio.to_thread(sealer.seal_document, self.document)
            self.data = await joined(self._texts.encode(written))
            self._texts = None

    def sealed(self, sealer: Sealer) -> str | bytes:
        """Returns the form that is written, in which the secrets are sealed."""
        return sealer.seal(self.data) if isinstance(self.data, str) else self.data

    @property
    def kept(self) -> Kept:
        if self.document is not None:
            return self.document
        assert isinstance(self.data, str)
        return self.data

    def __len__(self) -> int:
        return len(self.data)


def weigh_large(connection: sqlite3.Connection, table: str, key: int) -> tuple[int, bytes]:
    """Returns the most bytes that a character of a large row of `table` takes in memory, and the digest of the row."""
    ascii_only, wide, digest = True, False, _digest()
    for piece in _stored(connection, table, key):
        ascii_only = ascii_only and piece.isascii()
        wide = wide or any(lead in piece for lead in _WIDE)
        digest.update(piece)
    return 4 if wide else 1 if ascii_only else 2, digest.digest()


def read_large(connection: sqlite3.Connection, table: str, key: int) -> Any:
    """Returns the document in a large row of `table`. Runs in the reader's thread, like `share_large`."""
    return _document(connection, b"".join(_stored(connection, table, key)))


def share_large(connection: sqlite3.Connection, table: str, key: int, name: str, room: Budget) -> Any:
    """Returns the document like `read_large`; while another reader holds this document, in `room` under `name` and its
    digest, it is shared with that reader."""
    raw = b"".join(_stored(connection, table, key))
    place = (name, _digest(raw).digest())
    document = room.shared(place)
    if document is None:
        document = _document(connection, raw)
        room.share(place, document)
    return document


def texts_size(document: Any) -> int:
    """Returns the bytes that the large texts of a document take in memory."""
    if isinstance(document, dict):
        return sum(map(texts_size, document.values()))
    if isinstance(document, list):
        return sum(map(texts_size, document))
    return sys.getsizeof(document) if isinstance(document, str) and len(document) >= LARGE else 0


def _stored(connection: sqlite3.Connection, table: str, key: int) -> Iterator[bytes]:
    """Yields the bytes of `data` in the row, without a copy in SQLite."""
    with connection.blobopen(table, "data", key, readonly=True) as blob:
        while piece := blob.read(SLICE):
            yield piece


def _document(connection: sqlite3.Connection, raw: bytes) -> Any:
    if SEALED in raw:
        (raw,) = connection.execute("SELECT unsealed(?)", (raw,)).fetchone()
    return read_in_thread(raw)


def _digest(raw: bytes = b"") -> "hashlib._Hash":
    return hashlib.sha256(raw)
