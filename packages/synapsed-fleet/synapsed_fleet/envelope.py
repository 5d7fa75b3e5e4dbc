"""Messages over the broker: headers and a body, read and written. Pure.

`Syn-Id` identifies a message, and stays the same however often the message is published; `Syn-Attempt` counts the
publications. Both make the broker's `Nats-Msg-Id`, so that a copy that is sent on purpose is not dropped as a
duplicate. The subject is part of that id too: the broker compares ids per stream, and two hosts may use the same ids.
`Syn-Sig` is the host's signature (`synapsed_fleet.signing`). Unknown headers are ignored: a later version may have more
of them. A message of another `Syn-V` is read as far as its id, so that its sender can be notified.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from synapsed.shared.outside_json import NotJson, read_object
from synapsed_fleet.names import BadName, identity

VERSION: Final = "1"
PARCELS: Final = "2"
"""Version of messages that name parcels: a host that does not know that version reports so."""
BODY_MAX: Final = 256 * 1024
"""Most bytes of a body; a larger one goes as a parcel (`parcel`)."""
SIGNATURE_MAX: Final = 128

ID: Final = "Syn-Id"
ATTEMPT: Final = "Syn-Attempt"
SIGNATURE: Final = "Syn-Sig"
VERSION_KEY: Final = "Syn-V"
MESSAGE_ID: Final = "Nats-Msg-Id"


class BadEnvelope(ValueError):
    """Error for a message that no member of the fleet sends. Its text is fit for a log: it quotes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """One message at the broker. `signature` is base64, made and checked by `signing`."""

    subject: str
    id: str
    body: bytes
    attempt: int = 1
    signature: str = ""
    version: str = VERSION

    def headers(self) -> dict[str, str]:
        return {
            ID: self.id,
            ATTEMPT: str(self.attempt),
            SIGNATURE: self.signature,
            VERSION_KEY: self.version,
            MESSAGE_ID: f"{self.subject}/{self.id}#{self.attempt}",
        }

    @classmethod
    def read(cls, subject: str, headers: Mapping[str, str] | None, body: bytes) -> Self:
        """Reads an envelope from a message. Raises BadEnvelope."""
        told = headers or {}
        version = told.get(VERSION_KEY, "")
        try:
            named = identity(told.get(ID, ""))
        except BadName as error:
            raise BadEnvelope("it has no id") from error
        attempt = told.get(ATTEMPT, "1")
        if not (version.isascii() and version.isdigit() and len(version) <= 4):
            raise BadEnvelope("it has no version")
        if len(body) > BODY_MAX:
            raise BadEnvelope(f"its body has {len(body)} bytes, {BODY_MAX} are allowed")
        if not told.get(SIGNATURE) or len(told[SIGNATURE]) > SIGNATURE_MAX:
            raise BadEnvelope("it is not signed")
        return cls(
            subject=subject,
            id=named,
            body=body,
            attempt=int(attempt) if attempt.isascii() and attempt.isdigit() and len(attempt) < 10 else 1,
            signature=told[SIGNATURE],
            version=version,
        )

    @property
    def known_version(self) -> bool:
        return self.version in (VERSION, PARCELS)

    def document(self) -> dict[str, Any]:
        """Returns the body as JSON. Raises BadEnvelope."""
        try:
            return read_object(self.body)
        except NotJson:
            raise BadEnvelope("its body is no object of JSON") from None


def encoded(document: Mapping[str, Any]) -> bytes:
    """Returns the document as a body, in compact JSON."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
