"""Signatures of web pushes (RFC 8292): this daemon's own key, and the header that it signs for a push service.

Browsers get the public half when they subscribe, and push services take messages for these subscriptions from the owner
of the key only. Pure, except `load_or_create`, which reads or writes the file.
"""

import base64
import json
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from synapsed.errors import ConfigError
from synapsed.shared.files import read_private, write_private

GOOD_S: Final = 12 * 3600
"""Seconds for which a signature is valid; a push service takes at most 24 hours."""

FILE_MAX: Final = 4096
_COORDINATE: Final = 32


class PushKey:
    """A key pair on P-256."""

    def __init__(self, private: ec.EllipticCurvePrivateKey) -> None:
        self._private = private
        self._point = private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @classmethod
    def new(cls) -> "PushKey":
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def of_pem(cls, pem: bytes) -> "PushKey":
        """Reads the key of a PEM. Raises ValueError for any other content."""
        try:
            private = load_pem_private_key(pem, None)
        except (TypeError, UnsupportedAlgorithm) as error:  # a key with a pass phrase, or of another kind
            raise ValueError("holds no key without a pass phrase") from error
        if not isinstance(private, ec.EllipticCurvePrivateKey) or not isinstance(private.curve, ec.SECP256R1):
            raise ValueError("holds a key that is not one on P-256")  # noqa: TRY004 - what is in the file is wrong
        return cls(private)

    def pem(self) -> bytes:
        return self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @property
    def public(self) -> str:
        """Public key in the form of a browser's `applicationServerKey`: the uncompressed point, in base64url."""
        return base64url(self._point)

    def authorization(self, service: str, *, now: float, contact: str) -> str:
        """Returns the header `Authorization` for a push service: `service` is its origin; `contact` a `mailto:` or
        `https:` address of the person who is responsible."""
        claims = {"aud": service, "exp": int(now) + GOOD_S, "sub": contact}
        said = f"{_part({'typ': 'JWT', 'alg': 'ES256'})}.{_part(claims)}"
        r, s = decode_dss_signature(self._private.sign(said.encode(), ec.ECDSA(hashes.SHA256())))
        signature = r.to_bytes(_COORDINATE) + s.to_bytes(_COORDINATE)
        return f"vapid t={said}.{base64url(signature)}, k={self.public}"


def load_or_create(path: Path) -> PushKey:
    """Returns the key in `path`; writes a new one (0600) if there is no such file.

    Raises ConfigError if the file is not the user's alone or holds no key, and StoreError if a new one cannot be
    written. The caller holds the daemon's lock.
    """
    try:
        pem = read_private(path, limit=FILE_MAX)
    except FileNotFoundError:
        key = PushKey.new()
        write_private(path, key.pem())
        return key
    try:
        return PushKey.of_pem(pem)
    except ValueError:
        raise ConfigError(
            f"{path}: holds no key for web pushes; remove the file, and a new one is made: each device has to turn its "
            "notifications on again then",
            file=str(path),
        ) from None


def base64url(raw: bytes) -> str:
    """Returns base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _part(content: dict[str, object]) -> str:
    return base64url(json.dumps(content, separators=(",", ":")).encode())
