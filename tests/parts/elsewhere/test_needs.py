"""What a card says that its agent needs is told when it is added."""

import base64
from typing import Any

import pytest
from a2a.client.card_resolver import parse_agent_card

from synapsed.parts.elsewhere.credentials import NONE, Credentials
from synapsed.parts.elsewhere.needs import needs_of
from tests.parts.elsewhere.elsewhere import card_03, card_10
from tests.parts.elsewhere.here import Here
from tests.parts.elsewhere.rpc_agent import rpc_agent

BEARER = {"httpAuthSecurityScheme": {"scheme": "bearer"}}
IN_HEADER = {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}
IN_QUERY = {"apiKeySecurityScheme": {"location": "query", "name": "key"}}


IN_COOKIE = {"apiKeySecurityScheme": {"location": "cookie", "name": "sid"}}
BASIC = {"httpAuthSecurityScheme": {"scheme": "Basic"}}
OAUTH = {"oauth2SecurityScheme": {"flows": {}}}
MTLS: dict[str, Any] = {"mtlsSecurityScheme": {}}


def needs(given: Credentials = NONE, **changes: Any) -> list[str]:
    return needs_of(parse_agent_card(card_10("http://x/", **changes)), given)


def wants(*ways: dict[str, Any], **schemes: Any) -> dict[str, Any]:
    return {"securitySchemes": schemes, "securityRequirements": [{"schemes": way} for way in ways]}


EMPTY: dict[str, Any] = {"list": []}


@pytest.mark.parametrize(
    ("card", "told"),
    [
        ({}, []),
        (wants({"b": EMPTY}, b=BEARER), ["credentials: a bearer token (--token-env VARIABLE)"]),
        (
            wants({"b": EMPTY}, {"k": EMPTY}, b=BEARER, k=IN_HEADER),
            ["credentials: a bearer token (--token-env VARIABLE) or an API key (--header-env X-Key=VARIABLE)"],
        ),
        (wants({"q": EMPTY}, q=IN_QUERY), ["credentials: an API key in the query (--query-env key=VARIABLE)"]),
        (wants({"c": EMPTY}, c=IN_COOKIE), ["credentials: an API key in a cookie (--cookie-env sid=VARIABLE)"]),
        (
            wants({"b": EMPTY}, b=BASIC),
            ["credentials: a name and a password (--basic-env VARIABLE, which holds NAME:PASSWORD)"],
        ),
        (wants({"b": EMPTY}, {}, b=BEARER), []),
        (wants({"nobody\x1b": EMPTY}), ["credentials: nobody?, which its card does not explain"]),
    ],
)
def test_credentials(card: dict[str, Any], told: list[str]) -> None:
    assert needs(**card) == told


@pytest.mark.parametrize(
    ("scheme", "given", "met"),
    [
        (IN_QUERY, Credentials(query={"key": "k"}), True),
        (IN_QUERY, Credentials({"key": "k"}), False),
        (IN_HEADER, Credentials({"x-key": "k"}), True),
        (IN_HEADER, Credentials({"Authorization": "Bearer k"}), False),
        (IN_COOKIE, Credentials({"Cookie": "a=b; sid=k"}), True),
        (IN_COOKIE, Credentials({"Cookie": "pesid=k"}), False),
        (BASIC, Credentials({"Authorization": "Basic eDp5"}), True),
        (BEARER, Credentials({"Authorization": "Basic eDp5"}), False),
        (OAUTH, Credentials({"Authorization": "Bearer k"}), True),
        (MTLS, Credentials({"Authorization": "Bearer k"}), False),
        ({}, Credentials({"X": "k"}), True),
        ({}, NONE, False),
    ],
)
def test_a_need_is_met_by_its_own_kind(scheme: dict[str, Any], given: Credentials, met: bool) -> None:
    assert (needs(given, **wants({"s": EMPTY}, s=scheme)) == []) == met


def test_a_required_extension_and_a_signature_are_said() -> None:
    extensions = [{"uri": "urn:x", "required": True}, {"uri": "urn:y"}]
    protected = base64.urlsafe_b64encode(b'{"alg": "ES256", "kid": "theirs"}').decode().rstrip("=")
    card = {"capabilities": {"extensions": extensions}, "signatures": [{"protected": protected, "signature": "x"}]}
    told = needs(**card)
    assert told[0].startswith("the extension urn:x, ")
    assert told[1:] == ["the public key of its signer, 'theirs', if its card is to be believed (--key FILE)"]
    assert needs_of(parse_agent_card(card_10("http://x/", **card)), NONE, key="PEM") == told[:1]


async def test_it_is_known_of_the_agent(here: Here) -> None:
    schemes = {"b": {"type": "http", "scheme": "bearer"}}
    async with rpc_agent({}) as agent:
        agent.card = card_03(f"{agent.url}/", securitySchemes=schemes, security=[{"b": []}])
        added = await here.externals.discover(agent.url, "far", headers=None)
        assert added.needs == ["credentials: a bearer token (--token-env VARIABLE)"]
        added = await here.externals.discover(agent.url, "far", headers={"Authorization": "Bearer x"})
        assert added.needs == []
