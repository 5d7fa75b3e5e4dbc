"""Signatures of messages: each host signs with the key that the fleet has certified; the subject alone proves no
sender.

The signature covers the fleet, the subject (so: sender, receiver and kind), the id, the version and the body. So a
message can neither be changed, nor given to another host or fleet, nor published under another id. A repeated message
has no effect: its id is known by then. The broker is not believed: it can withhold messages, but not forge them. Pure.
"""

import base64
import binascii
import hashlib
from dataclasses import replace
from typing import Final

from synapsed_fleet.envelope import BadEnvelope, Envelope
from synapsed_fleet.nkey import BadKey, KeyPair, verify

_PURPOSE: Final = "synapsed fleet"
"""Prefix of signed data. A host's key also signs the broker's nonce, which never begins with this prefix."""


def signed(envelope: Envelope, fleet: str, pair: KeyPair) -> Envelope:
    """Returns the envelope with the signature of the host whose keys are `pair`."""
    signature = base64.b64encode(pair.sign(_signed_bytes(envelope, fleet))).decode()
    return replace(envelope, signature=signature)


def check(envelope: Envelope, fleet: str, public: str) -> None:
    """Raises BadEnvelope unless the host of the key `public` has signed exactly this message in this fleet."""
    try:
        signature = base64.b64decode(envelope.signature, validate=True)
        right = verify(public, "user", signature, _signed_bytes(envelope, fleet))
    except (binascii.Error, ValueError, BadKey) as error:
        raise BadEnvelope("its signature cannot be read") from error
    if not right:
        raise BadEnvelope("its signature is not its sender's")


def _signed_bytes(envelope: Envelope, fleet: str) -> bytes:
    body = hashlib.sha256(envelope.body).hexdigest()
    return "\n".join((_PURPOSE, fleet, envelope.version, envelope.subject, envelope.id, body)).encode()
