"""The card: what the SDK makes of it, where it points, and how it is cached; the extended one."""

import json
from datetime import timedelta

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3 import types as v03

from synapsed.api.caching import KEPT, ChangeTimes
from synapsed.api.peer_lookup import PeerLookup
from synapsed.api.rights import Peer
from synapsed.api.security import Security
from synapsed.parts.a2a.card import agent_card
from tests.api.serving import TOKEN, Api, serving
from tests.fakes.clock import FakeClock
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
        since = response.headers["Last-Modified"]
    async with api.agent.get(path, headers={"If-Modified-Since": since}) as response:
        assert (response.status, response.headers["Last-Modified"]) == (304, since)
    for headers in ({"If-Modified-Since": "Sat, 01 Jan 2000 00:00:00 GMT"},
                    {"If-Modified-Since": since, "If-None-Match": '"x"'}):  # fmt: skip
        async with api.agent.get(path, headers=headers) as response:
            assert response.status == 200
    for known, status in ((etag, 304), (f'"x", {etag}', 304), ("*", 304), (f"W/{etag}", 304), ('"x"', 200)):
        async with api.agent.get(path, headers={"If-None-Match": known}) as response:
            assert (response.status, response.headers["ETag"]) == (status, etag)
            assert await response.read() == (b"" if status == 304 else body)


def test_it_is_a_card_of_0_3_too():
    document = agent_card(FakeControl().add("claude", "claude", 8100), base="http://x", version="1")
    card = v03.AgentCard.model_validate(document)
    assert (card.protocol_version, card.url, card.preferred_transport) == ("0.3.0", "http://x/a2a", "JSONRPC")
    assert card.supports_authenticated_extended_card
    assert all(skill.input_modes and skill.output_modes == ["text/plain"] for skill in card.skills)
    # Of what 0.3 may choose from nothing is there that speaks only 1.0.
    assert [(each.transport, each.url) for each in card.additional_interfaces or ()] == [("JSONRPC", "http://x/a2a")]


def test_a_document_has_changed_when_its_bytes_have():
    clock = FakeClock()
    changes = ChangeTimes(clock)
    first = changes.since("/a", "1")
    clock.advance(60)
    assert changes.since("/a", "1") == first
    assert changes.since("/b", "1") > first
    assert changes.since("/a", "2") > first
    for number in range(KEPT):
        changes.since(f"/{number}", "1")
    clock.advance(60)
    assert changes.since("/b", "1") > first + timedelta(seconds=60)


# --- the extended card -----------------------------------------------------------------------------------------------

V1 = {"A2A-Version": "1.0"}


async def extended(api: Api, client=None, path: str = "/a2a/rest/extendedAgentCard", **headers):
    async with (client or api.agent).get(path, headers=V1 | headers) as response:
        return response.status, await response.json(content_type=None)


async def test_the_extended_card_is_for_those_who_authenticate(api: Api):
    assert (await extended(api))[1]["extensions"]["synapse"]["rights"] == "person"  # whose process this is, is known
    api.control.tokens["codex-token"] = "synapse-codex-8120"
    api.control.skills = [{"id": "tea", "name": "Tea", "description": "Makes tea", "tags": ["tea"], "examples": []}]
    api.control.add("dummy", "dummy", 8190)
    for token, rights in ((TOKEN, "person"), ("codex-token", "agent")):
        path = "/agents/dummy/a2a/rest/extendedAgentCard"
        status, card = await extended(api, api.http, path, Authorization=f"Bearer {token}")
        assert status == 200
        own = card["extensions"]["synapse"]
        assert (own["rights"], own["cwd"], own["state"]) == (rights, "/tmp", "running")
        assert card["skills"][-1]["id"] == "tea"
        assert all(skill["inputModes"] and skill["outputModes"] for skill in card["skills"])
        assert parse_agent_card(card).capabilities.extended_agent_card
    _, public = await api.json(api.agent, "GET", WELL_KNOWN[0])
    assert "cwd" not in json.dumps(public)
    assert "securitySchemes" not in public  # the connection tells who asks


async def test_the_extended_card_is_not_for_who_may_be_anybody(control, tmp_path):
    class NobodyFound(PeerLookup):
        async def tcp(self, *args, **options) -> Peer:
            return Peer(transport="tcp", can_look_up=False)

    security = Security(directory=control.directory, token=TOKEN, peers=NobodyFound(control.directory.process_of))
    async with serving(control, tmp_path, security=security) as api:
        status, body = await extended(api)
        assert (status, body["error"]["status"]) == (401, "UNAUTHENTICATED")
        assert (await extended(api, Authorization=f"Bearer {TOKEN}"))[0] == 200
        _, card = await api.json(api.agent, "GET", WELL_KNOWN[0])
        assert card["security"] == [{}, {"bearer": []}]
        scheme = v03.AgentCard.model_validate(card).security_schemes["bearer"].root
        assert (scheme.type, scheme.scheme) == ("http", "bearer")
        assert parse_agent_card(card).security_schemes["bearer"].http_auth_security_scheme.scheme.lower() == "bearer"


async def test_the_extended_cards_urls_follow_the_address_used(api: Api):
    token = {"Authorization": f"Bearer {TOKEN}"}
    for client, path, base in (
        (api.agent, "/a2a/rest/extendedAgentCard", f"http://127.0.0.1:{api.agent_port}"),
        (api.http, "/agents/@claude/a2a/rest/extendedAgentCard", f"{api.url}/agents/@claude"),
        (api.http, "/a2a/rest/claude/extendedAgentCard", f"{api.url}/agents/claude"),
        (api.unix, "/agents/claude/a2a/rest/extendedAgentCard", "http://localhost:8100"),
    ):
        status, card = await extended(api, client, path, **token)
        assert (status, card["url"]) == (200, f"{base}/a2a")
    body = {"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}
    async with api.unix.post("/agents/claude/a2a", json=body, headers=V1) as response:
        assert (await response.json())["result"]["name"] == "claude"


@pytest.mark.parametrize("path", WELL_KNOWN)
async def test_an_agent_may_be_named_as_a_part_of_the_path(api: Api, path: str) -> None:
    api.control.add("a2a", "codex", 8140)
    _, card = await api.json(api.http, "GET", f"/agents/a2a{path}")
    assert card["url"] == f"{api.url}/agents/a2a/a2a"


# --- behind a proxy --------------------------------------------------------------------------------------------------

FORWARDED = {"X-Forwarded-Host": "agents.example", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/lab/"}


async def test_urls_behind_a_trusted_proxy(control, tmp_path):
    security = Security(
        directory=control.directory,
        token=TOKEN,
        allowed_hosts=["agents.example"],
        trusted_proxies=["10.0.0.0/8", "127.0.0.1"],
    )
    async with serving(control, tmp_path, security=security) as api:
        path = f"/agents/claude{WELL_KNOWN[0]}"
        async with api.http.get(path, headers=FORWARDED) as response:
            card = await response.json()
        assert (card["url"], card["security"]) == ("https://agents.example/lab/agents/claude/a2a", [{"bearer": []}])
        async with api.http.get("/agents/claude/a2a/rest/tasks", headers=V1 | FORWARDED) as response:
            assert response.status == 401  # it is the client's request, not the proxy's
        token = {"Authorization": f"Bearer {TOKEN}"}
        async with api.http.get("/agents/claude/a2a/rest/tasks", headers=V1 | FORWARDED | token) as response:
            assert response.status == 200
        for name, bad, status in (
            ("X-Forwarded-Host", "evil.example", 403),
            ("X-Forwarded-Host", "a b", 400),
            ("X-Forwarded-Proto", "ftp", 400),
            ("X-Forwarded-Prefix", "//evil", 400),
        ):
            async with api.http.get(path, headers=FORWARDED | {name: bad}) as response:
                assert response.status == status, name


async def test_nobody_else_is_believed_to_be_a_proxy(control, tmp_path):
    security = Security(
        directory=control.directory, token=TOKEN, allowed_hosts=["agents.example"], trusted_proxies=["10.0.0.0/8"]
    )
    async with serving(control, tmp_path, security=security) as api:
        _, card = await api.json(api.http, "GET", f"/agents/claude{WELL_KNOWN[0]}", headers=FORWARDED)
        assert card["url"] == f"{api.url}/agents/claude/a2a"
