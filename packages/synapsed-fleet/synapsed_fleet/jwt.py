"""The broker's tokens: JWTs of version 2 that are signed by nkeys (`ed25519-nkey`), made and read.

Three kinds make one chain. Brokers are configured with the operator's token. The account's, signed by the operator,
names the keys that may sign users and the users that are revoked. A user's, signed by one of these keys, names a host.
No Python library makes such tokens; the claims are NATS's own (docs.nats.io, "JWT in depth").

Pure: time is an argument, in Unix seconds.
"""

import base64
import binascii
import json
import secrets
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

from synapsed.shared.outside_json import NotJson, read_object
from synapsed_fleet.nkey import SIGNATURE_BYTES, BadKey, KeyPair, Kind, is_public, verify

TOKEN_MAX: Final = 512 * 1024
"""Most characters: an account's token grows by about 70 for each revocation."""
NAME_MAX: Final = 200
NAME: Final = "{{name()}}"
"""Placeholder in a scope's subjects, for the name in the user's token."""

_HEADER: Final = {"typ": "JWT", "alg": "ed25519-nkey"}
VERSION: Final = 2

type Type = Literal["operator", "account", "user"]


class BadToken(ValueError):
    """A text that is no token, or whose signature is not its issuer's."""


class SignedToken(NamedTuple):
    """A token that its issuer has signed; callers check that the issuer may sign it. Times are Unix seconds."""

    type: Type
    name: str
    subject: str
    issuer: str
    issued: int
    expires: int | None
    nats: Mapping[str, Any]


class Scope(NamedTuple):
    """A key of the account that signs users of one role; its template is all that they may do."""

    key: str
    role: str
    publish: Sequence[str]
    subscribe: Sequence[str]
    subscriptions: int
    payload: int


def operator(pair: KeyPair, *, name: str, system_account: str, now: float) -> str:
    nats = {"system_account": system_account, "type": "operator", "version": VERSION}
    return _encode(pair, subject=pair.public, name=name, nats=nats, now=now, expires=None)


def account(
    signer: KeyPair,
    *,
    public: str,
    name: str,
    scopes: Sequence[Scope],
    revoked: Mapping[str, int],
    jetstream: bool,
    now: float,
) -> str:
    """Returns an account's token. `revoked`: by user key, the time up to which tokens issued for it are revoked."""
    limits: dict[str, Any] = {
        "subs": -1,
        "data": -1,
        "payload": -1,
        "imports": 0,
        "exports": 0 if jetstream else -1,
        "wildcards": not jetstream,
        "conn": -1,
        "leaf": 0,
    }
    if jetstream:
        limits |= {"mem_storage": 0, "disk_storage": -1, "streams": -1, "consumer": -1}
    nats: dict[str, Any] = {"limits": limits, "type": "account", "version": VERSION}
    if scopes:
        nats["signing_keys"] = scope_claims(scopes)
    if revoked:
        nats["revocations"] = dict(sorted(revoked.items()))
    return _encode(signer, subject=public, name=name, nats=nats, now=now, expires=None)


def scope_claims(scopes: Sequence[Scope]) -> list[dict[str, Any]]:
    """Returns the signing keys of an account, in the form of its token."""
    return [_scope(scope) for scope in scopes]


def _scope(scope: Scope) -> dict[str, Any]:
    template = {
        "pub": {"allow": list(scope.publish)},
        "sub": {"allow": list(scope.subscribe)},
        "subs": scope.subscriptions,
        "data": -1,
        "payload": scope.payload,
        "allowed_connection_types": ["STANDARD", "WEBSOCKET"],
    }
    return {"kind": "user_scope", "key": scope.key, "role": scope.role, "template": template}


def user(signer: KeyPair, *, account: str, public: str, name: str, now: float, expires: float | None) -> str:
    """Returns the token of a user with the rights of the scope that `signer` signs for."""
    nats = {"issuer_account": account, "type": "user", "version": VERSION}
    return _encode(signer, subject=public, name=name, nats=nats, now=now, expires=expires)


def full_user(
    signer: KeyPair, *, public: str, name: str, now: float, expires: float, account: str | None = None
) -> str:
    """Returns the token of a user with all rights in the account; `account` is needed if `signer` is a signing key of
    the account, and not the account's own key."""
    nats = {"pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": VERSION}
    return _encode(signer, subject=public, name=name, nats=_of_account(nats, signer, account), now=now, expires=expires)


def limited_user(
    signer: KeyPair, scope: Scope, *, account: str, public: str, name: str, now: float, expires: float
) -> str:
    """Returns the token of a user whose rights are in the token itself: those of `scope`, with the user's name in
    them."""
    template = _scope(scope)["template"]
    for side in ("pub", "sub"):
        template[side] = {"allow": [subject.replace(NAME, name) for subject in template[side]["allow"]]}
    nats = {**template, "type": "user", "version": VERSION}
    return _encode(signer, subject=public, name=name, nats=_of_account(nats, signer, account), now=now, expires=expires)


def _of_account(nats: dict[str, Any], signer: KeyPair, account: str | None) -> dict[str, Any]:
    return nats if account in (None, signer.public) else {**nats, "issuer_account": account}


def read(text: str) -> SignedToken:
    """Reads a token and verifies that its issuer has signed it. Raises BadToken."""
    if len(text) > TOKEN_MAX:
        raise BadToken("it is too long for a token")
    parts = text.split(".")
    if len(parts) != 3:
        raise BadToken("it has not the three parts of a token")
    header, claims, signature = _document(parts[0]), _document(parts[1]), _bytes(parts[2])
    if {key: header.get(key) for key in _HEADER} != _HEADER:
        raise BadToken("it is not signed by a key of NATS")
    token = _token(claims)
    if len(signature) != SIGNATURE_BYTES or not _signed(token, signature, f"{parts[0]}.{parts[1]}".encode()):
        raise BadToken("its signature is not its issuer's")
    return token


def credentials(token: str, seed: str) -> str:
    """Returns a user's token and seed in the format of NATS's credentials files."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )


def read_credentials(text: str) -> tuple[str, KeyPair]:
    """Returns the token and the key in such a file. Raises BadToken, whose text quotes nothing of the file."""
    lines = [line.strip() for line in text.splitlines()]
    values = [after for line, after in pairwise(lines) if line.startswith("-----BEGIN ")]
    if len(values) != 2:
        raise BadToken("it is no file of credentials: a token and a seed")
    try:
        pair = KeyPair.from_seed(values[1])
    except BadKey as error:
        raise BadToken(f"its seed is wrong: {error}") from None
    if read(values[0]).subject != pair.public:
        raise BadToken("its token is for another key than its seed's")
    return values[0], pair


def _encode(
    signer: KeyPair, *, subject: str, name: str, nats: Mapping[str, Any], now: float, expires: float | None
) -> str:
    claims: dict[str, Any] = {
        "jti": secrets.token_hex(16),
        "iat": int(now),
        "iss": signer.public,
        "name": name,
        "sub": subject,
        "nats": nats,
    }
    if expires is not None:
        claims["exp"] = int(expires)
    signed = f"{_text(json.dumps(_HEADER).encode())}.{_text(json.dumps(claims).encode())}"
    return f"{signed}.{_text(signer.sign(signed.encode()))}"


def _token(claims: Mapping[str, Any]) -> SignedToken:
    nats = claims.get("nats")
    kind = nats.get("type") if isinstance(nats, dict) else None
    if not isinstance(nats, dict) or kind not in ("operator", "account", "user") or nats.get("version") != VERSION:
        raise BadToken("it is no token of version 2 of an operator, an account or a user")
    name, subject, issuer = (claims.get(key) for key in ("name", "sub", "iss"))
    if not isinstance(name, str) or len(name) > NAME_MAX or not isinstance(subject, str) or not isinstance(issuer, str):
        raise BadToken("its name, subject or issuer is missing")
    issued, expires = claims.get("iat"), claims.get("exp")
    if type(issued) is not int or (expires is not None and type(expires) is not int):
        raise BadToken("its times are no numbers")
    if not is_public(subject, kind):
        raise BadToken(f"its subject is not the key of an {kind}" if kind != "user" else "its subject is no user's key")
    return SignedToken(kind, name, subject, issuer, issued, expires or None, nats)


_ISSUERS: Final[dict[str, Kind]] = {"operator": "operator", "account": "operator", "user": "account"}


def _signed(token: SignedToken, signature: bytes, signed: bytes) -> bool:
    try:
        return verify(token.issuer, _ISSUERS[token.type], signature, signed)
    except BadKey:
        return False


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise BadToken("a part of it is not base64") from None


def _document(text: str) -> dict[str, Any]:
    try:
        return read_object(_bytes(text))
    except NotJson:
        raise BadToken("a part of it is no JSON object") from None
