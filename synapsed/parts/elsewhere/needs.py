"""The needs of an agent that its card states, in words for the person who adds it. Pure."""

from collections.abc import Iterator

from a2a.types import a2a_pb2 as pb

NEEDS_MAX = 20
_WORDS = 120
"""Most characters that are quoted from a card."""


def needs_of(card: pb.AgentCard, *, credentials: bool) -> list[str]:
    """Returns the needs that are not met; `credentials` says if some are given."""
    return [*_all(card, credentials=credentials)][:NEEDS_MAX]


def _all(card: pb.AgentCard, *, credentials: bool) -> Iterator[str]:
    if card.security_requirements and not credentials:
        ways = [_together(card, requirement) for requirement in card.security_requirements]
        if all(ways):  # one without a scheme lets anybody in
            yield f"credentials: {' or '.join(dict.fromkeys(ways))}"
    for extension in card.capabilities.extensions:
        if extension.required:
            yield f"the extension {_said(extension.uri)}, which is not spoken here: it may refuse what is sent"
    if card.capabilities.extended_agent_card:
        yield "nothing for its extended card: what it tells those it knows is not read here"
    if card.signatures:
        yield "nothing for its signatures: they are not verified here"


def _together(card: pb.AgentCard, requirement: pb.SecurityRequirement) -> str:
    return " with ".join(_scheme(card, name) for name in sorted(requirement.schemes))


def _scheme(card: pb.AgentCard, name: str) -> str:
    """Returns the name of a way to log in, with the option that gives the credentials."""
    if name not in card.security_schemes:
        return f"{_said(name)}, which its card does not explain"
    scheme = card.security_schemes[name]
    match scheme.WhichOneof("scheme"):
        case "api_key_security_scheme":
            key = scheme.api_key_security_scheme
            if key.location == "header":
                return f"an API key (--header-env {_said(key.name)}=VARIABLE)"
            if key.location == "cookie":
                return f"an API key in the cookie {_said(key.name)} (--header-env Cookie=VARIABLE)"
            return f"an API key in the {_said(key.location)} {_said(key.name)}, which cannot be given here"
        case "http_auth_security_scheme":
            http = scheme.http_auth_security_scheme.scheme
            if http.lower() == "bearer":
                return "a bearer token (--token-env VARIABLE)"
            return f"HTTP {_said(http)} (--header-env Authorization=VARIABLE)"
        case "oauth2_security_scheme" | "open_id_connect_security_scheme":
            return "a token of OAuth (--token-env VARIABLE)"
        case "mtls_security_scheme":
            return "a client certificate, which cannot be given here"
    return f"{_said(name)}, of a kind that is not known here"


def _said(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_WORDS])
