"""Credentials of every kind: given, tried when the agent is added, sent with each request, and told to nobody."""

import base64
import json
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from aiohttp import web

from synapsed.errors import CardInvalid
from synapsed.parts.elsewhere.credentials import Credentials
from tests.parts.elsewhere.asker import Asker, asker
from tests.parts.elsewhere.elsewhere import card_03, card_10
from tests.parts.elsewhere.here import Here
from tests.parts.elsewhere.rpc_agent import rpc_agent
from tests.support.listening import listening

SECRET = "s3cr3t+of/the=tests"
EMPTY: dict[str, Any] = {"list": []}
IN_QUERY = {"q": {"apiKeySecurityScheme": {"location": "query", "name": "api_key"}}}
WANTS = {"securitySchemes": IN_QUERY, "securityRequirements": [{"schemes": {"q": EMPTY}}]}


@pytest.fixture
async def far() -> AsyncGenerator[Asker]:
    """An agent that wants a key in the query."""
    async with asker() as far:
        far.agent.card |= WANTS
        far.agent.let_in = lambda request: request.query.get("api_key") == SECRET
        yield far


async def test_a_key_in_the_query_goes_with_everything_and_is_told_to_nobody(
    far: Asker, here: Here, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    agent = await here.externals.discover(far.agent.url, "far", headers=None, query={"api_key": SECRET})
    assert (agent.needs, agent.authenticated) == ([], True)
    await here.restarted()
    task = await here.over(await here.send("hi"))
    assert task.answer == "done: hi"
    assert all(query == {"api_key": SECRET} for _, query in far.agent.seen)
    far.agent.let_in = lambda request: False
    refused = await here.over(await here.send("again"))
    assert refused.error is not None
    assert (refused.error.code, "HTTP 401" in refused.error.message) == ("AUTH_REQUIRED", True)
    kept = json.dumps([event.data.model_dump(mode="json") for event in here.store.events.all])
    kept += (here.folder / "far.json").read_text() + str(here.store._tasks)
    assert SECRET not in kept + caplog.text + "".join(capsys.readouterr())
    assert SECRET in (here.folder / "far.secret").read_text()


async def test_without_it_nothing_is_added_and_the_option_is_named(far: Asker, here: Here) -> None:
    with pytest.raises(
        CardInvalid, match=r"401\): it needs credentials: an API key in the query \(--query-env api_key="
    ):
        await here.externals.discover(far.agent.url, "far", headers=None)
    with pytest.raises(CardInvalid, match="its credentials are wrong"):
        await here.externals.discover(far.agent.url, "far", headers=None, query={"api_key": "another"})
    assert here.externals.agents() == []
    assert not here.folder.exists()


async def test_a_card_that_says_nothing_of_credentials(here: Here) -> None:
    async with rpc_agent({}) as agent:
        agent.card = card_03(f"{agent.url}/")
        agent.let_in = lambda request: False
        with pytest.raises(CardInvalid, match="its card does not say which"):
            await here.externals.discover(agent.url, "far", headers=None)


async def test_an_agent_that_repeats_a_key_in_its_refusal_is_not_quoted(here: Here) -> None:
    async with rpc_agent({}, GetTask=lambda params: {"code": -32001, "message": f"not with {SECRET}"}) as agent:
        agent.card = card_10(f"{agent.url}/")
        await here.externals.discover(agent.url, "far", headers={"X-Key": SECRET})
        agent.methods["SendMessage"] = lambda params: {"code": -32000, "message": f"no such key: {SECRET}!"}
        task = await here.over(await here.send("hi"))
        assert task.error is not None
        assert task.error.message.endswith("no such key: …!")


async def test_where_it_redirects_to_is_told_without_the_query(here: Here) -> None:
    app = web.Application()
    app.router.add_get("/.well-known/agent-card.json", _redirected)
    async with listening(app) as port:
        with pytest.raises(CardInvalid, match="redirects to") as refused:
            await here.externals.discover(f"http://127.0.0.1:{port}", "far", headers=None, query={"api_key": SECRET})
    assert "api_key" not in refused.value.message


async def _redirected(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": f"http://elsewhere.example{request.rel_url}"})


async def test_credentials_are_kept_until_others_are_given(far: Asker, here: Here) -> None:
    await here.externals.discover(far.agent.url, "far", headers=None, query={"api_key": SECRET})
    assert (await here.externals.discover(far.agent.url, "far", headers=None)).authenticated
    with pytest.raises(CardInvalid):
        await here.externals.discover(far.agent.url, "far", headers={})
    assert here.externals.view("far").authenticated


def test_short_words_are_not_covered() -> None:
    given = Credentials({"Authorization": "Bearer abc", "Cookie": "sid=long-enough"}, {"k": "a key"})
    assert given.covered("a Bearer abc said sid=long-enough") == "a … said …"


def test_what_is_within_a_header_is_covered() -> None:
    basic = "Basic " + base64.b64encode(b"bob:hunter2hunter2").decode()
    given = Credentials({"Authorization": basic, "cookie": "sid=verysecret; lang=en"}, {})
    assert given.covered("no hunter2hunter2 for verysecret, bob:hunter2hunter2") == "no … for …, …"


# --- the extended card -----------------------------------------------------------------------------------------------

MORE = [{"id": "m", "name": "More", "description": "More", "tags": ["m"]}]


@pytest.mark.parametrize(
    ("card", "method"),
    [
        (lambda url: card_10(url, capabilities={"extendedAgentCard": True}), "GetExtendedAgentCard"),
        (lambda url: card_03(url, supportsAuthenticatedExtendedCard=True), "agent/getAuthenticatedExtendedCard"),
    ],
    ids=["1.0", "0.3"],
)
async def test_the_extended_card_is_read_where_it_is_shown(here: Here, card: Any, method: str) -> None:
    async with rpc_agent({}) as agent:
        agent.card = card(f"{agent.url}/")
        agent.methods[method] = lambda params: {**agent.card, "skills": MORE}
        added = await here.externals.discover(agent.url, "far", headers={"X-Key": SECRET})
        assert (added.skills, added.extended, added.needs) == (["More"], True, [])
        del agent.methods[method]
        added = await here.externals.discover(agent.url, "far", headers=None)
        assert (added.skills, added.extended) == (["Chat"], False)
        assert added.needs[0].startswith("credentials for its extended card: ")
        added = await here.externals.discover(agent.url, "far", headers={})
        assert added.needs == ["credentials for its extended card"]
