"""NATS keys: Ed25519 keys in the text form that the broker knows, base32 with a prefix for the kind and a checksum.

The curve is `cryptography`'s; only the text form is made here. A seed is a secret: it is in files of mode 0600 and
nowhere else, and `repr` of a pair has the public key only.
"""

import base64
import binascii
from typing import Final, Literal, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

type Kind = Literal["operator", "account", "user"]

PREFIXES: Final[dict[Kind, int]] = {"operator": 14 << 3, "account": 0, "user": 20 << 3}
"""First byte of a key, by kind; its upper five bits are the first letter: O, A and U."""
_SEED: Final = 18 << 3
_KINDS: Final = {prefix: kind for kind, prefix in PREFIXES.items()}
_PUBLIC_BYTES: Final = 1 + 32 + 2
_SEED_BYTES: Final = 2 + 32 + 2
SIGNATURE_BYTES: Final = 64


class BadKey(ValueError):
    """A text that is no key of the wanted kind. The message has nothing of the text: it may be a secret."""


class KeyPair:
    """A private key and its public one."""

    def __init__(self, kind: Kind, private: Ed25519PrivateKey) -> None:
        self.kind = kind
        self._private = private
        self.public = _text(bytes([PREFIXES[kind]]) + private.public_key().public_bytes_raw())

    @classmethod
    def generate(cls, kind: Kind) -> Self:
        return cls(kind, Ed25519PrivateKey.generate())

    @classmethod
    def from_seed(cls, seed: str) -> Self:
        """Reads a pair from its seed. Raises BadKey."""
        raw = _raw(seed, _SEED_BYTES)
        kind = _KINDS.get((raw[0] & 0b111) << 5 | raw[1] >> 3)
        if raw[0] & 0b11111000 != _SEED or kind is None:
            raise BadKey("this is no seed of an operator, an account or a user")
        return cls(kind, Ed25519PrivateKey.from_private_bytes(raw[2:]))

    @property
    def seed(self) -> str:
        prefix = PREFIXES[self.kind]
        return _text(bytes([_SEED | prefix >> 5, (prefix & 0b11111) << 3]) + self._private.private_bytes_raw())

    def sign(self, data: bytes) -> bytes:
        return self._private.sign(data)

    def secret(self, purpose: str) -> bytes:
        """Returns 32 bytes that only the holder of this key can make, different for each purpose."""
        derive = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose.encode())
        return derive.derive(self._private.private_bytes_raw())

    def __repr__(self) -> str:
        return f"KeyPair({self.public})"


def is_public(text: str, kind: Kind) -> bool:
    """Returns True if `text` is a public key of that kind."""
    try:
        public_bytes(text, kind)
    except BadKey:
        return False
    return True


def public_bytes(text: str, kind: Kind) -> bytes:
    """Returns the 32 bytes of a public key. Raises BadKey."""
    raw = _raw(text, _PUBLIC_BYTES)
    if raw[0] != PREFIXES[kind]:
        raise BadKey(f"this is no public key of {'an' if kind[0] in 'ao' else 'a'} {kind}")
    return raw[1:]


def verify(public: str, kind: Kind, signature: bytes, data: bytes) -> bool:
    """Returns True if the key `public` of that kind has signed `data`. Raises BadKey if it is no such key."""
    key = Ed25519PublicKey.from_public_bytes(public_bytes(public, kind))
    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def _text(raw: bytes) -> str:
    checksum = binascii.crc_hqx(raw, 0).to_bytes(2, "little")
    return base64.b32encode(raw + checksum).decode("ascii").rstrip("=")


def _raw(text: str, size: int) -> bytes:
    """Returns the bytes without the checksum. One key has one text: another text that decodes to the same bytes is
    refused."""
    try:
        raw = base64.b32decode(text + "=" * (-len(text) % 8))
    except (binascii.Error, ValueError):
        raise BadKey("this is no key: it is not base32") from None
    if len(raw) != size or binascii.crc_hqx(raw[:-2], 0).to_bytes(2, "little") != raw[-2:]:
        raise BadKey("this is no key: its length or its checksum is wrong")
    if _text(raw[:-2]) != text:
        raise BadKey("this is no key: it is not in its one form")
    return raw[:-2]
