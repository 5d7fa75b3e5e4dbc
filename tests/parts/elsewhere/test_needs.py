"""What a card says that its agent needs is told when it is added."""

from typing import Any

import pytest
from a2a.client.card_resolver import parse_agent_card

from synapsed.parts.elsewhere.needs import needs_of
from tests.parts.elsewhere.elsewhere import card_03, card_10
from tests.parts.elsewhere.here import Here
from tests.parts.elsewhere.rpc_agent import rpc_agent

BEARER = {"httpAuthSecurityScheme": {"scheme": "bearer"}}
IN_HEADER = {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}
IN_QUERY = {"apiKeySecurityScheme": {"location": "query", "name": "key"}}


def needs(*, credentials: bool = False, **changes: Any) -> list[str]:
    return needs_of(parse_agent_card(card_10("http://x/", **changes)), credentials=credentials)


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
        (wants({"q": EMPTY}, q=IN_QUERY), ["credentials: an API key in the query key, which cannot be given here"]),
        (wants({"b": EMPTY}, {}, b=BEARER), []),
        (wants({"nobody\x1b": EMPTY}), ["credentials: nobody?, which its card does not explain"]),
    ],
)
def test_credentials(card: dict[str, Any], told: list[str]) -> None:
    assert needs(**card) == told
    assert needs(credentials=True, **card) == []


def test_what_is_not_done_here_is_said() -> None:
    extensions = [{"uri": "urn:x", "required": True}, {"uri": "urn:y"}]
    card = {
        "capabilities": {"extensions": extensions, "extendedAgentCard": True},
        "signatures": [{"protected": "e30", "signature": "x"}],
    }
    told = needs(**card)
    assert [line.split(":")[0] for line in told[1:]] == [
        "nothing for its extended card",
        "nothing for its signatures",
    ]
    assert told[0].startswith("the extension urn:x, ")


async def test_it_is_known_of_the_agent(here: Here) -> None:
    schemes = {"b": {"type": "http", "scheme": "bearer"}}
    async with rpc_agent({}) as agent:
        agent.card = card_03(f"{agent.url}/", securitySchemes=schemes, security=[{"b": []}])
        added = await here.externals.discover(agent.url, "far", headers=None)
        assert added.needs == ["credentials: a bearer token (--token-env VARIABLE)"]
        added = await here.externals.discover(agent.url, "far", headers={"Authorization": "Bearer x"})
        assert added.needs == []
