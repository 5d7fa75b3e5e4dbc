"""Signatures of agent cards (A2A 1.0, 8.4): JWS over the card in canonical JSON (RFC 8785), checked with public keys
that a person has given. Pure.

Servers leave out different members before they sign. So a card is tried in each form, and only the form that was
signed is read. No key is fetched from the address that a card names (`jku`): a forger of the card would choose that
address.
"""

import base64
import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

import rfc8785
from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3.types import AgentCard as AgentCard03
from a2a.types import a2a_pb2 as pb
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from google.api.field_behavior_pb2 import FieldBehavior, field_behavior  # type: ignore[import-untyped] # it has none
from google.protobuf.json_format import MessageToDict, ParseError
from google.protobuf.message import Message
from jwt import PyJWK, PyJWS, PyJWTError

KEYS_MAX: Final = 20
SIGNATURES_MAX: Final = 20
_RSA_BITS: Final = 2048
_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_USABLE: Final = f"RSA of {_RSA_BITS} bits or more, P-256, P-384, P-521, Ed25519"
_PUBLIC: Final = "a public key: PEM ('-----BEGIN PUBLIC KEY-----'), a JWK or a JWK set"

_EMPTY: Final[tuple[Any, ...]] = ("", [], {}, None)

_PublicKey = EllipticCurvePublicKey | Ed448PublicKey | Ed25519PublicKey | RSAPublicKey


@dataclass(frozen=True, slots=True)
class CardKey:
    """A public key, with the algorithms for which it is good; `kid` is empty if it has no name."""

    key: _PublicKey
    algorithms: tuple[str, ...]
    kid: str = ""


class _Unusable(ValueError):
    """A key that cannot be used, with the reason."""


def keys_of(text: str) -> list[CardKey]:
    """Reads the public keys of a file. Raises ValueError, which quotes nothing of the file: it may be the wrong one."""
    if "PRIVATE KEY" in text:
        raise _Unusable(f"is a private key, which stays with its owner; give {_PUBLIC}")
    try:
        if text.lstrip().startswith("{"):
            return _of_jwks(json.loads(text))
        return [_usable(load_pem_public_key(text.encode()))]
    except _Unusable:
        raise
    except (ValueError, TypeError, AttributeError, RecursionError, UnsupportedAlgorithm):
        raise ValueError(f"is not {_PUBLIC}") from None


def _of_jwks(told: dict[str, Any]) -> list[CardKey]:
    listed = told.get("keys", [told])
    found = []
    for jwk in listed[:KEYS_MAX]:
        if jwk.get("kty") == "oct" or "d" in jwk:
            raise _Unusable(f"holds a private or a shared key, which stays with its owner; give {_PUBLIC}")
        if jwk.get("use", "sig") == "sig":
            with suppress(PyJWTError, _Unusable):
                found.append(_usable(PyJWK(jwk).key, alg=jwk.get("alg"), kid=jwk.get("kid")))
    if not found:
        raise _Unusable(f"holds no key that can be used here: {_USABLE}")
    return found


def _usable(key: Any, *, alg: Any = None, kid: Any = None) -> CardKey:
    algorithms: tuple[str, ...]
    if isinstance(key, RSAPublicKey) and key.key_size >= _RSA_BITS:
        algorithms = _RSA
    elif isinstance(key, EllipticCurvePublicKey) and key.curve.name in _CURVES:
        algorithms = (_CURVES[key.curve.name],)
    elif isinstance(key, Ed25519PublicKey | Ed448PublicKey):
        algorithms = ("EdDSA",)
    else:
        raise _Unusable(f"is no key that can be used here: {_USABLE}")
    if alg is not None and alg not in algorithms:
        raise _Unusable(f"is no key for signatures of a kind that is known here: {alg}")
    algorithms = algorithms if alg is None else (alg,)
    return CardKey(cast("_PublicKey", key), algorithms, kid if isinstance(kid, str) else "")


# --- cards -----------------------------------------------------------------------------------------------------------


def signed(card: dict[str, Any], keys: list[CardKey]) -> tuple[dict[str, Any], str]:
    """Returns the card as it was signed with one of the keys, and the name of that signature's key. Raises ValueError
    that says why there is no such card."""
    signatures = card.get("signatures")
    if not isinstance(signatures, list) or not signatures:
        raise ValueError("is not signed")
    named = [(one, _kid(one)) for one in signatures[:SIGNATURES_MAX] if isinstance(one, dict)]
    try:
        for form, payload in _forms(card):
            for one, kid in named:
                if _holds(one, kid, payload, keys):
                    return form, kid
    except (ValueError, RecursionError):
        raise ValueError("cannot be put into the form that is signed") from None
    by = ", ".join(dict.fromkeys(repr(kid[:60]) for _, kid in named)) or "nobody"
    raise ValueError(f"does not hold what was signed, or other keys signed it (by {by[:300]})")


def names_of(card: pb.AgentCard) -> list[str]:
    """Returns the names of the keys by which the card says that it is signed."""
    return [_kid({"protected": one.protected}) for one in card.signatures[:SIGNATURES_MAX]]


def _kid(signature: dict[str, Any]) -> str:
    with suppress(ValueError, AttributeError, TypeError, RecursionError):
        protected = signature.get("protected", "")
        kid = json.loads(base64.urlsafe_b64decode(protected + "=" * (-len(protected) % 4))).get("kid")
        return kid if isinstance(kid, str) else ""
    return ""


def _holds(signature: dict[str, Any], kid: str, payload: bytes, keys: list[CardKey]) -> bool:
    encoded = base64.urlsafe_b64encode(payload).rstrip(b"=").decode()
    token = f"{signature.get('protected')}.{encoded}.{signature.get('signature')}"
    for key in keys:
        if not (key.kid and kid) or key.kid == kid:
            with suppress(PyJWTError, ValueError, TypeError):
                PyJWS().decode(token, key.key, algorithms=key.algorithms)
                return True
    return False


def _forms(card: dict[str, Any]) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yields each form in which the card may have been signed, with its canonical bytes: as it stands; as A2A 1.0 says,
    without values that are the default; and as the SDKs of 1.0 and of 0.3 sign, without anything empty."""
    bare = {name: value for name, value in card.items() if name != "signatures"}
    yield bare, rfc8785.dumps(bare)
    with suppress(ParseError, AttributeError):
        message = parse_agent_card(copy.deepcopy(bare))
        told = MessageToDict(message)
        for form in (_with_required(copy.deepcopy(told), message), _without_empty(told)):
            yield form, rfc8785.dumps(form)
    with suppress(ValueError):
        model = AgentCard03.model_validate(bare)
        told = _without_empty(model.model_dump(mode="json", exclude_defaults=True, exclude_none=True, by_alias=True))
        form = model.model_dump(mode="json", exclude_none=True, by_alias=True)
        yield form, json.dumps(told, separators=(",", ":"), sort_keys=True).encode()


def _with_required(told: dict[str, Any], message: Message) -> dict[str, Any]:
    """Adds the members that A2A requires, where they have their default value."""
    for field in message.DESCRIPTOR.fields:
        name, repeated = field.json_name, field.is_repeated
        if FieldBehavior.REQUIRED in field.GetOptions().Extensions[field_behavior]:
            told.setdefault(name, [] if repeated else {} if field.message_type else field.default_value)
        nested = getattr(message, field.name)
        if not field.message_type or name not in told or field.message_type.file.package == "google.protobuf":
            continue
        if field.message_type.GetOptions().map_entry:
            for key, value in told[name].items():
                if isinstance(nested[key], Message):
                    _with_required(value, nested[key])
        elif repeated:
            for value, one in zip(told[name], nested, strict=True):
                _with_required(value, one)
        else:
            _with_required(told[name], nested)
    return told


def _without_empty(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: kept for name, value in told.items() if (kept := _without_empty(value)) not in _EMPTY}
    if isinstance(told, list):
        return [kept for value in told if (kept := _without_empty(value)) not in _EMPTY]
    return told
