"""The needs of an agent that its card states, in words for the person who adds it. Pure."""

from collections.abc import Iterator

from a2a.types import a2a_pb2 as pb

from synapsed.parts.elsewhere.credentials import Credentials
from synapsed.parts.elsewhere.signatures import names_of

CREDENTIALS = "credentials: "
"""Beginning of the need of credentials."""
NEEDS_MAX = 20
_WORDS = 120
"""Most characters that are quoted from a card."""


def needs_of(card: pb.AgentCard, given: Credentials, *, key: str = "") -> list[str]:
    """Returns the needs that are not met by the credentials `given`, and by the `key` that the card is signed with."""
    return [*_all(card, given, key)][:NEEDS_MAX]


def _all(card: pb.AgentCard, given: Credentials, key: str) -> Iterator[str]:
    ways = [sorted(requirement.schemes) for requirement in card.security_requirements]
    if ways and not any(all(_met(card, name, given) for name in way) for way in ways):
        told = [" with ".join(_scheme(card, name) for name in way) for way in ways]
        yield f"{CREDENTIALS}{' or '.join(dict.fromkeys(told))}"
    for extension in card.capabilities.extensions:
        if extension.required:
            yield f"the extension {_printable(extension.uri)}, which is not spoken here: it may refuse what is sent"
    if card.signatures and not key:
        by = ", ".join(repr(_printable(name)) for name in dict.fromkeys(names_of(card)))
        yield f"the public key of its signer, {by}, if its card is to be believed (--key FILE)"


def _met(card: pb.AgentCard, name: str, given: Credentials) -> bool:
    """Returns True if credentials of this kind are given, be they right or wrong."""
    scheme = card.security_schemes[name] if name in card.security_schemes else pb.SecurityScheme()
    headers = {header.lower(): value for header, value in given.headers.items()}
    authorization = headers.get("authorization", "").lower()
    match scheme.WhichOneof("scheme"):
        case "api_key_security_scheme":
            key = scheme.api_key_security_scheme
            if key.location == "query":
                return key.name in given.query
            if key.location == "cookie":
                return f"; {key.name}=" in f"; {headers.get('cookie', '')}"
            return key.name.lower() in headers
        case "http_auth_security_scheme":
            return authorization.startswith(f"{scheme.http_auth_security_scheme.scheme.lower()} ")
        case "oauth2_security_scheme" | "open_id_connect_security_scheme":
            return authorization.startswith("bearer ")
        case "mtls_security_scheme":
            return False
    return bool(given)


def _scheme(card: pb.AgentCard, name: str) -> str:
    """Returns the name of a way to log in, with the option that gives the credentials."""
    if name not in card.security_schemes:
        return f"{_printable(name)}, which its card does not explain"
    scheme = card.security_schemes[name]
    match scheme.WhichOneof("scheme"):
        case "api_key_security_scheme":
            key = scheme.api_key_security_scheme
            place = {"query": " in the query", "cookie": " in a cookie"}.get(key.location, "")
            option = key.location if key.location in ("query", "cookie") else "header"
            return f"an API key{place} (--{option}-env {_printable(key.name)}=VARIABLE)"
        case "http_auth_security_scheme":
            http = scheme.http_auth_security_scheme.scheme
            match http.lower():
                case "bearer":
                    return "a bearer token (--token-env VARIABLE)"
                case "basic":
                    return "a name and a password (--basic-env VARIABLE, which holds NAME:PASSWORD)"
            return f"HTTP {_printable(http)} (--header-env Authorization=VARIABLE)"
        case "oauth2_security_scheme" | "open_id_connect_security_scheme":
            return "a token of OAuth (--token-env VARIABLE)"
        case "mtls_security_scheme":
            return "a client certificate, which cannot be given here"
    return f"{_printable(name)}, of a kind that is not known here"


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_WORDS])
