"""An invitation: the one line that a person carries from the fleet's admin to a host that is to join.

It has the brokers' addresses, the hash of their authority, the fleet's and its operator's public keys, and a user that
may only ask once for a token, for a quarter of an hour. So the line is a secret while it is valid: the first to use it
becomes the host of that name. The host's request is signed with the line's key, so that no broker can ask in its place,
and names a key that was made on the host and never leaves it.

Pure, except `authority_at`.
"""

import base64
import binascii
import hashlib
import json
import socket
import ssl
import sys
import zlib
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit

from synapsed.errors import InvalidRequest, RemoteRefused, Unreachable
from synapsed.shared.outside_json import read_object
from synapsed_fleet import jwt
from synapsed_fleet.fleet_config import HOST_NAME, URLS_MAX, is_url
from synapsed_fleet.nkey import BadKey, KeyPair, is_public, verify

PREFIX: Final = "synapsed-fleet-1."
VALID_S: Final = 15 * 60
LINE_MAX: Final = 8192
"""Most characters of the line."""
TEXT_MAX: Final = 16_384
TLS_S: Final = 5.0


class Invitation(NamedTuple):
    """An invitation. `pair` is the key of the user `token`."""

    name: str
    urls: tuple[str, ...]
    fingerprint: str
    """SHA-256 of the authority's certificate, in hexadecimal."""
    fleet: str
    operator: str
    token: str
    pair: KeyPair
    given: bool = False
    """True if another owner keeps the broker, so that its authority is not the fleet's."""
    ca: str = ""
    """Authority (PEM) of such a broker, "" for those that the system trusts."""

    @property
    def issued(self) -> int:
        return jwt.read(self.token).issued

    @property
    def expires(self) -> int:
        return jwt.read(self.token).expires or 0

    def line(self) -> str:
        """Returns the printed form. It is a secret."""
        told = {
            "name": self.name,
            "urls": list(self.urls),
            "ca": self.fingerprint,
            "fleet": self.fleet,
            "operator": self.operator,
            "jwt": self.token,
            "seed": self.pair.seed,
        }
        if self.given:
            told["given"] = self.ca
        packed = zlib.compress(json.dumps(told, separators=(",", ":")).encode(), 9)
        return PREFIX + base64.urlsafe_b64encode(packed).decode("ascii").rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads the text that a person has pasted, without its blanks and line breaks. Raises InvalidRequest, whose
        words quote nothing of the line."""
        line = "".join(text.split())
        if not line.startswith(PREFIX) or len(line) > LINE_MAX:
            raise InvalidRequest(
                f"this is no invitation: one begins with {PREFIX!r}, as 'synapsectl fleet invite' prints it"
            )
        try:
            found = _checked(_unpacked(line.removeprefix(PREFIX)))
        except (ValueError, KeyError, TypeError, zlib.error):
            raise InvalidRequest("the invitation is damaged: copy the whole line, or have it sent again") from None
        return cls(*found)


def asked(invitation: Invitation, host: KeyPair) -> dict[str, Any]:
    """Returns the request of a host with its invitation."""
    said = _signed_bytes(invitation.fleet, invitation.name, host.public)
    return {
        "v": 1,
        "key": host.public,
        "by_invitation": _b64(invitation.pair.sign(said)),
        "by_host": _b64(host.sign(said)),
    }


def key_asked_for(document: object, *, fleet: str, name: str, invited: str) -> str:
    """Returns the public key for which a host requests a token; `invited` is the invitation's key. Raises
    InvalidRequest unless both keys have signed the request."""
    if not isinstance(document, dict) or document.get("v") != 1:
        raise InvalidRequest("this is no request to join that this version understands")
    key = document.get("key")
    if not isinstance(key, str) or not is_public(key, "user"):
        raise InvalidRequest("the host's key is no key of a user")
    said = _signed_bytes(fleet, name, key)
    try:
        signed = all(
            verify(public, "user", base64.b64decode(str(document.get(field)), validate=True), said)
            for public, field in ((invited, "by_invitation"), (key, "by_host"))
        )
    except (BadKey, binascii.Error, ValueError):
        signed = False
    if not signed:
        raise InvalidRequest("the request is not signed by the invitation and by the host's key")
    return key


def authority_at(urls: Iterable[str], fingerprint: str) -> str:
    """Returns the authority (PEM) that a broker shows and that has this hash. Blocks for at most `TLS_S` for each
    address. Raises RemoteRefused if another authority is shown, Unreachable if no broker answers."""
    failures = []
    other = ""
    for url in urls:
        split = urlsplit(url)
        place = (split.hostname or "", split.port or 0)
        try:
            chain = _chain(*place)
        except OSError as error:
            failures.append(f"{place[0]}:{place[1]}: {error.strerror or error}")
            continue
        for certificate in chain:
            if hashlib.sha256(certificate).hexdigest() == fingerprint:
                return ssl.DER_cert_to_PEM_cert(certificate)
        other = f"{place[0]}:{place[1]}"
    if other:
        raise RemoteRefused(
            f"what answers at {other} is not the broker of this invitation: its certificate is another fleet's, or "
            "somebody is in between"
        )
    raise Unreachable(f"no broker is reached ({'; '.join(failures)}): is its port open from here?", sent=False)


def _chain(host: str, port: int) -> list[bytes]:
    """Returns the certificates that a server shows, not verified: the caller compares them with the one that it
    expects."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection((host, port), TLS_S) as raw, context.wrap_socket(raw) as secure:
        if sys.version_info >= (3, 13):
            return list(secure.get_unverified_chain())
        # The public method was made of this one; Python 3.12 has no public one.
        shown = secure._sslobj.get_unverified_chain() or ()  # type: ignore[attr-defined]  # noqa: SLF001
        return [ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in shown]


def _signed_bytes(fleet: str, name: str, key: str) -> bytes:
    return f"synapsed fleet join\n{fleet}\n{name}\n{key}".encode()


def _unpacked(text: str) -> dict[str, Any]:
    packed = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    reader = zlib.decompressobj()
    raw = reader.decompress(packed, TEXT_MAX)
    if not reader.eof or reader.unused_data:
        raise ValueError("incomplete, or too long")
    return read_object(raw)


def _checked(told: dict[str, Any]) -> tuple[str, tuple[str, ...], str, str, str, str, KeyPair, bool, str]:
    name, urls, fingerprint = told["name"], told["urls"], told["ca"]
    pair, token = KeyPair.from_seed(told["seed"]), jwt.read(told["jwt"])
    right = (
        HOST_NAME.fullmatch(name) is not None
        and 0 < len(urls) <= URLS_MAX
        and all(isinstance(url, str) and is_url(url) for url in urls)
        and len(bytes.fromhex(fingerprint)) == 32
        and is_public(told["fleet"], "account")
        and is_public(told["operator"], "operator")
        and token.subject == pair.public
    )
    given, ca = "given" in told, told.get("given", "")
    if not right or not isinstance(ca, str):
        raise ValueError("a part of it is wrong")
    return name, tuple(urls), fingerprint, told["fleet"], told["operator"], told["jwt"], pair, given, ca


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")
