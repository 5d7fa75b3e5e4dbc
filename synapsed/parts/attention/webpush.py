"""Encryption of messages that a push service carries to a browser and cannot read: RFC 8291 (`aes128gcm`, RFC 8188).
Pure.

The browser has given its public key and a secret (`PushPlace`). Each message is encrypted under a key of its own, which
is derived from the browser's key, in one record that is padded, so that its size reveals little.
"""

import base64
import os
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from synapsed.interfaces import PushPlace
from synapsed.shared.regex import regex

RECORD: Final = 4096
"""Bytes of the record, as its header says. Every push service takes a body of 4,096 bytes."""

SALT: Final = 16
AUTH: Final = 16
POINT: Final = 65
TAG: Final = 16
HEADER: Final = SALT + 4 + 1 + POINT
PLAIN_MAX: Final = RECORD - HEADER - TAG - 1
"""Most bytes of a message."""

PADDED: Final = 512
"""Bytes: a message is padded to a multiple of it, as far as there is room."""

_BASE64URL: Final = regex(r"[A-Za-z0-9_-]+")


def sealed(
    plain: bytes, to: PushPlace, *, own: ec.EllipticCurvePrivateKey | None = None, salt: bytes = b"", pad: bool = True
) -> bytes:
    """Returns the body of a push message that only the browser of `to` can read. `own` and `salt` are new by default.
    Raises ValueError for an invalid key, and for more than PLAIN_MAX bytes."""
    if len(plain) > PLAIN_MAX:
        raise ValueError(f"a push carries {PLAIN_MAX} bytes, not {len(plain)}")
    point, secret = keys_of(to.p256dh, to.auth)
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    own = own or ec.generate_private_key(ec.SECP256R1())
    salt = salt or os.urandom(SALT)
    ours = own.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    agreed = _derived(own.exchange(ec.ECDH(), theirs), secret, b"WebPush: info\0" + point + ours, 32)
    key = _derived(agreed, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(agreed, salt, b"Content-Encoding: nonce\0", 12)
    size = min(-(-(len(plain) + 1) // PADDED) * PADDED, PLAIN_MAX + 1) if pad else len(plain) + 1
    record = (plain + b"\x02").ljust(size, b"\0")  # 2: it is the last record
    header = salt + RECORD.to_bytes(4) + bytes([POINT]) + ours
    return header + AESGCM(key).encrypt(nonce, record, None)


def keys_of(p256dh: str, auth: str) -> tuple[bytes, bytes]:
    """Returns the browser's point and secret. Raises ValueError that says which of them is wrong."""
    point, secret = _bytes(p256dh, "p256dh"), _bytes(auth, "auth")
    if len(secret) != AUTH:
        raise ValueError(f"keys.auth: must be {AUTH} bytes in base64url")
    if not _is_point(point):
        raise ValueError("keys.p256dh: must be an uncompressed point of P-256 in base64url")
    return point, secret


def _is_point(raw: bytes) -> bool:
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw)
    except ValueError:
        return False
    return len(raw) == POINT


def _bytes(text: str, name: str) -> bytes:
    text = text.rstrip("=")
    if not _BASE64URL.fullmatch(text) or len(text) % 4 == 1:
        raise ValueError(f"keys.{name}: must be base64url")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)
