"""The host at the main listener's root: its card, its catalogs, and the endpoint that takes the agent as `tenant`."""

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.types import Message, Part, Role, SendMessageRequest

from synapsed.api.security import Security
from synapsed.interfaces import TaskFilter
from synapsed.parts.a2a.card import host_card
from tests.api.serving import TOKEN, Api, serving
from tests.fakes.control import FakeControl

CARD = "/.well-known/agent-card.json"
DOCUMENTS = {
    CARD: "application/json",
    "/.well-known/agent.json": "application/json",
    "/.well-known/ai-catalog.json": "application/ai-catalog+json",
    "/.well-known/api-catalog": "application/linkset+json",
}
V1 = {"A2A-Version": "1.0"}
MESSAGE = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}


async def get(client, path: str):
    async with client.get(path) as response:
        assert response.status == 200, await response.text()
        return await response.json(content_type=None)


@pytest.mark.parametrize(("path", "kind"), DOCUMENTS.items())
async def test_documents_are_cached_until_the_agents_change(api: Api, path, kind):
    async with api.http.get(path) as response:
        etag = response.headers["ETag"]
        assert response.content_type == kind
        assert response.headers["Vary"] == "Host, Authorization"
    async with api.http.get(path, headers={"If-None-Match": etag}) as response:
        assert (response.status, response.headers["ETag"], await response.read()) == (304, etag, b"")
    api.control.add("gemini", "gemini", 8110)
    async with api.http.get(path, headers={"If-None-Match": etag}) as response:
        assert response.status == 200
        assert response.headers["ETag"] != etag


async def test_the_card_lists_the_agents(api: Api):
    document = await get(api.http, CARD)
    card = parse_agent_card(document)
    assert [(entry.tenant, entry.url) for entry in card.supported_interfaces] == [
        (name, f"{api.url}/a2a{path}") for name in ("claude", "codex") for path in ("", "/rest")
    ]
    assert [skill.id for skill in card.skills] == ["list-agents", "synapse-claude-8100", "synapse-codex-8120"]
    listed = document["extensions"]["synapse"]["agents"]
    assert [agent["name"] for agent in listed] == ["claude", "codex"]
    for agent in listed:
        own = await get(api.http, agent["card"].removeprefix(api.url))
        assert own["extensions"]["synapse"]["agent_id"] == agent["agent_id"]


def test_a_host_without_agents_has_a_whole_card():
    card = parse_agent_card(host_card([], base="http://x", version="1"))
    assert len(card.supported_interfaces) == 1
    assert card.skills[0].tags


async def test_the_ai_catalog_leads_to_the_cards(api: Api):
    catalog = await get(api.http, "/.well-known/ai-catalog.json")
    assert catalog["specVersion"] == "1.0"
    assert len({entry["identifier"] for entry in catalog["entries"]}) == 2
    for entry, name in zip(catalog["entries"], ("claude", "codex"), strict=True):
        assert entry["type"] == "application/a2a-agent-card+json"
        assert (await get(api.http, entry["url"].removeprefix(api.url)))["name"] == name


async def test_the_api_catalog_leads_to_the_endpoints(api: Api):
    (listing, own, *agents) = (await get(api.http, "/.well-known/api-catalog"))["linkset"]
    assert [item["href"] for item in listing["item"]] == [own["anchor"], *(agent["anchor"] for agent in agents)]
    assert [agent["anchor"] for agent in agents] == [f"{api.url}/agents/{name}/a2a" for name in ("claude", "codex")]


async def test_on_the_unix_socket_urls_are_the_main_listeners(api: Api):
    document = await get(api.unix, CARD)
    assert document["url"] == f"{api.url}/a2a"


async def test_strangers_are_not_told_which_agents_there_are(control: FakeControl, tmp_path):
    class Stranger(Security):
        async def _peer(self, request):
            from synapsed.api.rights import Peer

            return Peer(transport="tcp", loopback=False)

    async with serving(control, tmp_path, security=Stranger(directory=control.directory, token=TOKEN)) as api:
        assert (await get(api.http, CARD))["extensions"]["synapse"]["agents"] == []
        for path in ("/.well-known/ai-catalog.json", "/.well-known/api-catalog", "/agents"):
            async with api.http.get(path) as response:
                assert response.status == 401
        async with api.http.get(CARD, headers={"Authorization": f"Bearer {TOKEN}"}) as response:
            assert len((await response.json())["extensions"]["synapse"]["agents"]) == 2


async def test_the_sdks_client_reaches_each_agent_by_the_hosts_card(api: Api):
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, api.url).get_agent_card()
        for interface in list(card.supported_interfaces):
            del card.supported_interfaces[:]
            card.supported_interfaces.append(interface)
            bindings = [interface.protocol_binding]
            config = ClientConfig(httpx_client=http, streaming=False, supported_protocol_bindings=bindings)
            client = ClientFactory(config).create(card)
            message = Message(message_id="m1", role=Role.ROLE_USER, parts=[Part(text="hi")])
            (answer,) = [event async for event in client.send_message(SendMessageRequest(message=message))]
            task = await api.control.tasks.find(answer.task.id)
            assert api.control.directory.view(task.agent_id).name == interface.tenant


@pytest.mark.parametrize(
    ("params", "reason"),
    [({}, "AMBIGUOUS"), ({"tenant": "nobody"}, "UNKNOWN_AGENT"), ({"tenant": 3}, "AMBIGUOUS")],
)
async def test_a_request_without_an_agent_is_refused_in_its_envelope(api: Api, params, reason):
    body = {"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": {"message": MESSAGE, **params}}
    async with api.http.post("/a2a", json=body, headers=V1) as response:
        answer = await response.json()
    assert answer["id"] == 7
    assert answer["error"]["data"][0]["reason"] == reason
    assert (await api.control.tasks.page(TaskFilter()))[1] == 0


async def test_the_only_agent_need_not_be_named(tmp_path):
    control = FakeControl()
    body = {"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": {"message": MESSAGE}}
    async with serving(control, tmp_path) as api:
        async with api.http.post("/a2a", json=body, headers=V1) as response:
            assert (await response.json())["error"]["data"][0]["reason"] == "UNKNOWN_AGENT"
        control.add("claude", "claude", 8100)
        async with api.http.post("/a2a/", json=body, headers=V1) as response:
            assert (await response.json())["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_over_http_the_agent_stands_before_the_path(api: Api):
    body = {"message": MESSAGE}
    for path, status in (("claude/message:send", 200), ("nobody/message:send", 404), ("message:send", 404)):
        async with api.http.post(f"/a2a/rest/{path}", json=body, headers=V1) as response:
            answer = await response.json()
            assert response.status == status
    assert answer["error"]["details"][0]["reason"] == "UNKNOWN_AGENT"


async def test_over_http_the_only_agent_need_not_be_named(tmp_path):
    control = FakeControl()
    control.add("claude", "claude", 8100)
    async with serving(control, tmp_path) as api:
        options = {"json": {"message": MESSAGE}, "headers": V1}
        status, _ = await api.json(api.http, "POST", "/a2a/rest/message:send", **options)
        assert status == 200
