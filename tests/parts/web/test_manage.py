"""The right `manage`: agents are started where there is one, stopped and restarted, and nothing more."""

from typing import Any

import pytest

from synapsed.parts.web.records import DESK
from tests.api.serving import Api
from tests.parts.web.test_doors import book_of


async def headers_of(api: Api, *rights: Any, agents: list[str] | None = None) -> dict[str, str]:
    _, value = await book_of(api).make_token("script", frozenset(rights), agents=agents, days=None)
    return {"Authorization": f"Bearer {value}"}


async def ask(api: Api, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, str]:
    status, told = await api.json(api.http, "POST", f"/control/{path}", json=body, headers=headers)
    return status, told["error"]["message"] if "error" in told else told["name"]


def acts(api: Api) -> list[str]:
    return [call[0] for call in api.control.calls if call[0] in ("start", "stop", "restart")]


@pytest.fixture
def cwd(api: Api) -> str:
    (folder,) = {one.cwd for one in api.control.views.values()}
    return folder


async def test_no_device_has_it_by_default(api: Api, cwd: str):
    assert "manage" not in DESK
    headers = await headers_of(api, *DESK, "send")
    for path, body in (
        ("start", {"profile": "dummy", "cwd": cwd}),
        ("agents/claude/stop", {}),
        ("agents/claude/restart", {}),
    ):
        status, said = await ask(api, path, body, headers)
        assert (status, "'manage'" in said) == (403, True), path
    assert acts(api) == []


async def test_who_has_it_starts_stops_and_restarts(api: Api, cwd: str):
    headers = await headers_of(api, "manage")
    assert await ask(api, "start", {"profile": "dummy", "name": "ann", "cwd": cwd}, headers) == (200, "ann")
    assert (await ask(api, "start", {"profile": "dummy", "name": "ann", "cwd": cwd}, headers))[0] == 409
    assert (await ask(api, "agents/ann/stop", {}, headers))[0] == 200
    assert (await ask(api, "agents/ann/restart", {}, headers))[0] == 200
    assert acts(api) == ["start", "start", "stop", "restart"]


@pytest.mark.parametrize(
    "more",
    [
        {"args": ["--dangerously-skip-permissions"]}, {"env": {"PATH": "/evil"}}, {"extra_env": {"A": "b"}},
        {"save": True}, {"accept_agents": True}, {"without_approval": True}, {"prompt": "> "},
        {"conversation": "c1"}, {"port": 8123}, {"resume_at_reset": False}, {"attributes": None},
    ],
)  # fmt: skip
async def test_nothing_that_is_run_or_weakens_a_profile_is_taken(api: Api, cwd: str, more: dict[str, Any]):
    headers = await headers_of(api, "look", "send", "answer", "type", "manage")
    status, said = await ask(api, "start", {"profile": "dummy", "cwd": cwd} | more, headers)
    assert (status, next(iter(more)) in said) == (403, True), said
    assert acts(api) == []


@pytest.mark.parametrize("folder", [None, "/", "/etc", "FOLDER/", "FOLDER/sub", "FOLDER/../x", ""])
async def test_only_a_folder_that_has_an_agent_gets_one(api: Api, cwd: str, folder: str | None):
    headers = await headers_of(api, "manage")
    body = {"profile": "dummy"} | ({} if folder is None else {"cwd": folder.replace("FOLDER", cwd)})
    status, said = await ask(api, "start", body, headers)
    assert (status, "that have an agent already" in said) == (403, True), said
    assert acts(api) == []


async def test_what_it_does_not_open(api: Api):
    headers = await headers_of(api, "manage")
    assert (await ask(api, "agents/claude/stop", {"remove": True}, headers))[0] == 403
    assert (await ask(api, "agents/claude/restart", {"without_approval": True}, headers))[0] == 403
    for path in ("agents/claude/kill", "agents/claude/park", "reload", "shutdown"):
        assert (await ask(api, path, {}, headers))[0] == 403, path
    assert (await ask(api, "agents/claude/environment", {"env": {}}, headers))[0] == 403
    status, told = await api.json(api.http, "GET", "/inbox", headers=headers)
    assert (status, told["error"]["code"]) == (403, "FORBIDDEN")
    assert acts(api) == []


async def test_a_token_for_one_agent_restarts_that_one(api: Api, cwd: str):
    headers = await headers_of(api, "manage", agents=["claude"])
    assert (await ask(api, "agents/claude/restart", {}, headers))[0] == 200
    assert (await ask(api, "agents/codex/stop", {}, headers))[0] == 403
    assert (await ask(api, "start", {"profile": "dummy", "cwd": cwd}, headers))[0] == 403
    assert acts(api) == ["restart"]
