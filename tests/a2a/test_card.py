"""The card: what the SDK makes of it, where it points, and how it is cached."""

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3 import types as v03

from synapsed.a2a.card import agent_card
from tests.api.serving import Api
from tests.fakes.control import FakeControl

WELL_KNOWN = ("/.well-known/agent-card.json", "/.well-known/agent.json", "/a2a")


async def test_it_is_what_the_sdk_wants(api: Api):
    async with api.http.get("/agents/claude/.well-known/agent-card.json") as response:
        assert response.content_type == "application/json"
        document = await response.json()
    assert document["extensions"]["synapse"] == {
        "agent_id": "synapse-claude-8100",
        "pty_wrapped": True,
        "priority_interrupt": True,
        "at_agent_syntax": True,
    }
    assert document["capabilities"]["multiTurn"] is True
    card = parse_agent_card(document)
    assert (card.name, card.version) == ("claude", "1.2.3")
    assert card.capabilities.streaming
    assert not card.capabilities.push_notifications
    told = [(each.protocol_binding, each.protocol_version, each.url) for each in card.supported_interfaces]
    base = f"{api.url}/agents/claude/a2a"
    assert told == [("JSONRPC", "1.0", base), ("HTTP+JSON", "1.0", f"{base}/rest"), ("JSONRPC", "0.3", base)]
    assert all(skill.tags for skill in card.skills)


@pytest.mark.parametrize("path", WELL_KNOWN)
async def test_urls_follow_the_address_used(api: Api, path):
    for client, prefix, host in (
        (api.http, "/agents/@claude", f"localhost:{api.port}"),
        (api.agent, "", f"127.0.0.1:{api.agent_port}"),
    ):
        async with client.get(f"{prefix}{path}", headers={"Host": host}) as response:
            document = await response.json()
        assert document["url"] == f"http://{host}{prefix}/a2a"
        assert document["supportedInterfaces"][0]["url"] == document["url"]
    async with api.unix.get(f"/agents/claude{path}") as response:
        assert (await response.json())["url"] == "http://localhost:8100/a2a"


async def test_etag(api: Api):
    path = WELL_KNOWN[0]
    async with api.agent.get(path) as response:
        etag, body = response.headers["ETag"], await response.read()
        assert response.headers["Cache-Control"] == "max-age=60"
        assert response.headers["Vary"] == "Host"
    for known, status in ((etag, 304), (f'"x", {etag}', 304), ("*", 304), (f"W/{etag}", 304), ('"x"', 200)):
        async with api.agent.get(path, headers={"If-None-Match": known}) as response:
            assert (response.status, response.headers["ETag"]) == (status, etag)
            assert await response.read() == (b"" if status == 304 else body)


def test_it_is_a_card_of_0_3_too():
    document = agent_card(FakeControl().add("claude", "claude", 8100), base="http://x", version="1")
    card = v03.AgentCard.model_validate(document)
    assert (card.protocol_version, card.url, card.preferred_transport) == ("0.3.0", "http://x/a2a", "JSONRPC")
    # Of what 0.3 may choose from nothing is there that speaks only 1.0.
    assert [(each.transport, each.url) for each in card.additional_interfaces or ()] == [("JSONRPC", "http://x/a2a")]
