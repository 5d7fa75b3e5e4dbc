"""Parcels for content that is too large for a message: it goes in encrypted chunks, and a reference names it. Pure.

A member may read any chunk at the broker: reading by subject allows wildcards. So each parcel has a key of its own,
which is in the reference only, in a signed message to one host. The key is derived from the sender's key and the
parcel's id, and saved nowhere; an id belongs to one content, so that a chunk that is sent again is the same bytes.

Chunk n is AES-256-GCM with n as its nonce; id, n and size are authenticated with it, so that no chunk can take the
place of another. Content is the sender's if its hash is the one in the reference.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from synapsed.shared.regex import regex
from synapsed_fleet.envelope import BadEnvelope
from synapsed_fleet.names import ID as NAMED

CHUNK: Final = 128 * 1024
"""Bytes of content in one message at the broker."""
TAG: Final = 16
"""Bytes by which a chunk grows."""
SIZE_MAX: Final = 1 << 30
WHOLE_MAX: Final = 16 << 20
"""Most bytes of a message that goes as a parcel itself: it is read as a whole."""
FILES_MAX: Final = 64
"""Most files of one message."""
BODY: Final = "whole"
"""The key of a body that is a reference to the real one."""
FILES: Final = "files"
"""The key of a body's references to its files."""

_ID: Final = regex(r"[0-9a-f]{32}")
_SHA256: Final = regex(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParcelRef:
    """A parcel, as a message names it. `sha256` is of the content, in hexadecimal."""

    id: str
    key: bytes
    size: int
    sha256: str

    @property
    def chunks(self) -> int:
        return max(1, -(-self.size // CHUNK))

    def told(self) -> dict[str, Any]:
        key = base64.b64encode(self.key).decode("ascii")
        return {"id": self.id, "key": key, "size": self.size, "sha256": self.sha256}

    @classmethod
    def read(cls, told: object, *, size_max: int = SIZE_MAX) -> Self:
        """Reads a reference. Raises BadEnvelope."""
        if not isinstance(told, dict):
            raise BadEnvelope("its reference to a parcel is no object")
        named, size, sha256 = told.get("id"), told.get("size"), told.get("sha256")
        try:
            key = base64.b64decode(str(told.get("key")), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        right = (
            is_id(named)
            and isinstance(sha256, str)
            and _SHA256.fullmatch(sha256) is not None
            and type(size) is int
            and len(key) == 32
        )
        if not right:
            raise BadEnvelope("its reference to a parcel is not whole")
        if not 0 <= int(size or 0) <= size_max:
            raise BadEnvelope(f"its parcel has {size} bytes, {size_max} are allowed")
        return cls(id=str(named), key=key, size=int(size or 0), sha256=str(sha256))


class Cipher:
    """Seals and opens the chunks of one parcel."""

    def __init__(self, ref: ParcelRef) -> None:
        self._ref = ref
        self._cipher = AESGCM(ref.key)

    def seal(self, n: int, content: bytes) -> bytes:
        return self._cipher.encrypt(n.to_bytes(12), content, self._about(n))

    def open(self, n: int, sealed: bytes) -> bytes | None:
        """Returns the content; None if `sealed` is not chunk `n` of this parcel."""
        try:
            content = self._cipher.decrypt(n.to_bytes(12), sealed, self._about(n))
        except (InvalidTag, ValueError):
            return None
        return content if len(content) == chunk_size(self._ref, n) else None

    def _about(self, n: int) -> bytes:
        return f"{self._ref.id}/{n}/{self._ref.size}".encode()


def chunk_size(ref: ParcelRef, n: int) -> int:
    """Returns the number of bytes in the content of chunk `n`."""
    return min(CHUNK, ref.size - n * CHUNK)


def is_id(text: object) -> bool:
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def id_of_body(dst: str, named: str, body: bytes) -> str:
    """Returns the id of a body that is sent to `dst` under the id `named`: the same body again is the same parcel."""
    digest = hashlib.sha256(body).hexdigest()
    return hashlib.sha256(f"synapsed body\n{dst}\n{named}\n{digest}".encode()).hexdigest()[:32]


def files_of(document: Mapping[str, Any]) -> list[ParcelRef]:
    """Returns the files that a message names. Raises BadEnvelope."""
    told = document.get(FILES, [])
    if not isinstance(told, list) or len(told) > FILES_MAX:
        raise BadEnvelope("its files are no list, or too many")
    return [ParcelRef.read(one) for one in told]


WHY_MAX: Final = 200
"""Most characters of the reason why a receiver cannot go on."""


@dataclass(frozen=True, slots=True)
class Progress:
    """State of a parcel at its receiver."""

    parcel: str
    of: str
    """Message that the parcel belongs to."""
    have: int
    """Number of chunks that the receiver has: the first ones."""
    missing: bool
    """True if it waits for the next chunk, which is not at the broker."""
    why: str | None = None
    """The reason why it cannot take more now."""

    def told(self) -> dict[str, Any]:
        told = {"do": "parcel", "parcel": self.parcel, "of": self.of, "have": self.have, "missing": self.missing}
        return told if self.why is None else {**told, "why": self.why[:WHY_MAX]}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Reads a report about a parcel. Raises BadEnvelope."""
        parcel, of, have = document.get("parcel"), document.get("of"), document.get("have")
        right = isinstance(of, str) and NAMED.fullmatch(of) is not None and type(have) is int
        if not is_id(parcel) or not right or not 0 <= int(str(have)) <= SIZE_MAX // CHUNK:
            raise BadEnvelope("it says nothing of a parcel")
        why = document.get("why")
        said = why[:WHY_MAX] if isinstance(why, str) else None
        return cls(str(parcel), str(of), int(str(have)), document.get("missing") is True, said)
