"""Signs and verifies with Ed25519. A private key is a file in PEM (PKCS #8), as OpenSSL writes it, of mode 0600."""

import base64
import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from synapsed.errors import ConfigError
from synapsed.parts.profile_tools.bundles.public_keys import as_text
from synapsed.shared.files import read_private

FILE_MAX = 16_384


def make_key(file: Path) -> str:
    """Writes a new private key to a new file, and returns its public key. Raises ConfigError."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as opened:
            opened.write(pem)
            opened.flush()
            os.fsync(handle)
    except FileExistsError:
        raise ConfigError(
            f"{file} exists already, and is not overwritten: choose another file", file=str(file)
        ) from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", file=str(file)) from None
    return public_text(key)


def read_key(file: Path) -> Ed25519PrivateKey:
    """Reads a private key. Raises ConfigError."""
    try:
        pem = read_private(file, limit=FILE_MAX)
    except FileNotFoundError:
        raise ConfigError(
            f"{file} is not there: 'synapsectl profiles key {file}' makes a key", file=str(file)
        ) from None
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(f"{file}: is no private key in PEM without a password", file=str(file)) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"{file}: is a key of another kind than Ed25519", file=str(file))
    return key


def public_text(key: Ed25519PrivateKey) -> str:
    return as_text(key.public_key().public_bytes_raw())


def sign(key: Ed25519PrivateKey, signed: bytes) -> str:
    return base64.b64encode(key.sign(signed)).decode()


def is_signed(public: bytes, signature: bytes, signed: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, signed)
    except (InvalidSignature, ValueError):
        return False
    return True
