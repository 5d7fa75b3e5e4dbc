"""Standard Webhooks (standardwebhooks.com, 1.0): the signature, and its headers."""

import base64
import binascii
import hashlib
import hmac

SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of every secret, and none itself
_SHORTEST, _LONGEST = 24, 64
"""Bytes of a secret, as the specification recommends."""


def secret_of(text: str) -> bytes:
    """Returns the key in `whsec_…`. Raises ValueError, which does not repeat the text."""
    encoded = text.strip().removeprefix(SECRET_PREFIX)
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.strip().startswith(SECRET_PREFIX) or not _SHORTEST <= len(key) <= _LONGEST:
        raise ValueError(f"must be {SECRET_PREFIX} and {_SHORTEST} to {_LONGEST} bytes in base64")
    return key


def headers(key: bytes, *, webhook_id: str, at: int, body: bytes) -> dict[str, str]:
    """Returns the headers; `at` is the time of this attempt, in seconds since the epoch."""
    signature = hmac.new(key, f"{webhook_id}.{at}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }
