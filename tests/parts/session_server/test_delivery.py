"""Messages over a session server, against one that speaks as the real program was recorded to."""

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from synapsed.errors import ChannelAway, MessageRefused
from synapsed.interfaces import Delivering, FoundTurn
from synapsed.model.facts import (
    ChannelFact,
    PermissionAsked,
    PermissionOver,
    PromptAccepted,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
)
from synapsed.parts.session_server import channel as session_server
from synapsed.parts.session_server import delivery
from synapsed.parts.session_server.delivery import SessionDelivery
from synapsed.parts.session_server.messages import BEHIND, SILENT
from tests.channels.conftest import Launch
from tests.parts.session_server.test_channel import DEADLINE, Facts, Server
from tests.support.listening import listening

TURNS = 100
"""Turns of the loop in which its other end has read what was written to a connection."""

ASKED = {
    "id": "per_1",
    "sessionID": "ses_1",
    "permission": "bash",
    "patterns": ["ls"],
    "metadata": {"command": "ls -la"},
}


class TakingServer(Server):
    """Also takes messages, answers to its questions, and orders to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.posts: list[tuple[str, Any]] = []
        self.pending: list[dict[str, Any]] = []
        self.says = 204
        self.in_pieces = False

    async def start(self) -> None:
        self._closing = asyncio.Event()
        app = web.Application()
        app.router.add_get("/event", self._stream)
        app.router.add_get("/config", self._configured)
        app.router.add_get("/session", self._all)
        app.router.add_get("/session/status", self._statuses)
        app.router.add_get("/session/{id}/message", self._listed)
        app.router.add_get("/permission", self._asked)
        app.router.add_post("/{path:.*}", self._posted)
        self._server = contextlib.AsyncExitStack()
        self.port = await self._server.enter_async_context(listening(app, self.port))

    async def _asked(self, _: web.Request) -> web.Response:
        return web.json_response(self.pending)

    async def _posted(self, request: web.Request) -> web.StreamResponse:
        path, body = f"/{request.match_info['path']}", await request.json()
        self.posts.append((path, body))
        if path == "/session" and self.in_pieces:
            response = web.StreamResponse()
            await response.prepare(request)
            for piece in (b'{"id":', b' "ses_new"}'):
                await response.write(piece)
                for _ in range(TURNS):
                    await asyncio.sleep(0)
            return response
        if path == "/session":
            return web.json_response({"id": "ses_new"})
        if path.endswith("/prompt_async") or self.says >= 300:
            return web.Response(status=self.says, text="" if self.says < 300 else '{"name":"BadRequest"}')
        return web.json_response(True)

    def posted(self, end: str) -> list[Any]:
        return [body for path, body in self.posts if path.endswith(end)]


@pytest.fixture
async def server() -> AsyncIterator[TakingServer]:
    running = TakingServer()
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def channel(launch: Launch, server: TakingServer) -> AsyncIterator[tuple[SessionDelivery, Facts]]:
    context = replace(launch.context, port=server.port, conversation="ses_1")
    context.launch_dir.mkdir(parents=True, exist_ok=True)
    made, facts = SessionDelivery(name="server", channel=launch.profile.channels["server"], context=context), Facts()
    await made.open(facts)
    yield made, facts
    await made.close()


pytestmark = pytest.mark.parametrize("launch", ["opencode"], indirect=True)


async def reached(channel: SessionDelivery, *words: str) -> None:
    changed = asyncio.Event()
    channel.watch(changed.set)
    async with asyncio.timeout(DEADLINE):
        while channel.reach() not in words:
            changed.clear()
            await changed.wait()


async def test_a_message_is_given_to_the_session_on_the_terminal(
    channel: tuple[SessionDelivery, Facts], server: TakingServer
) -> None:
    it, facts = channel
    assert isinstance(it, Delivering)
    await reached(it, "idle")
    key = it.key("task-1", 0)
    assert (await it.submit(key, "do it")).turn == key
    assert server.posted("/tui/select-session") == [{"sessionID": "ses_1"}]
    (sent,) = server.posted("/session/ses_1/prompt_async")
    assert sent["messageID"] == key
    (part,) = sent["parts"]
    assert (part["type"], part["text"]) == ("text", "do it")
    await server.prompt("do it", key)
    accepted = await facts.until(PromptAccepted)
    assert (accepted.key, accepted.own) == (key, True)
    assert it.reach() == "busy"
    await server.reply("Done.", "msg_a1", parent=key)
    await server.idle()
    ended = await facts.until(TurnEnded)
    assert (ended.turn, ended.answer) == (key, "Done.")
    await reached(it, "idle")


async def test_no_message_is_given_between_the_two_times_that_a_turn_s_failure_is_told(
    channel: tuple[SessionDelivery, Facts], server: TakingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would not run, and be ended by the second. Where there is no second, it waits for a while only."""
    it, facts = channel
    await reached(it, "idle")
    for waits in (False, True):
        await server.prompt("x", key := it.key("task", int(waits)))
        await reached(it, "busy")
        await server.event("session.error", sessionID="ses_1", error={"name": "APIError", "data": {"message": "no"}})
        await server.idle()
        await facts.until(TurnFailed)
        assert it.reach() == "busy", key
        if waits:
            monkeypatch.setattr(delivery, "WRITES_S", 0.01)
            await server.event("session.error", sessionID="ses_1", error={"name": "APIError", "data": {}})
        else:
            await server.idle()
        await reached(it, "idle")
        facts.clear()


async def test_keys_are_in_order_and_the_same_part_is_sent_with_the_same_key(
    channel: tuple[SessionDelivery, Facts], server: TakingServer
) -> None:
    it, _ = channel
    await reached(it, "idle")
    keys, written = [it.key("task-1", 0)], time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == written:
        pass  # a key tells the millisecond
    keys += [it.key("task-1", 1), it.key("task-2", 0)]
    assert keys[0] < keys[1]
    assert len(set(keys)) == 3
    assert all(re.fullmatch(r"msg_[0-9a-f]{12}Syn[0-9A-Za-z]{11}", key) for key in keys)
    for _ in range(2):
        await it.submit(keys[0], "x")
    first, second = server.posted("/prompt_async")
    assert first == second


async def test_a_person_s_message_is_not_ours(channel: tuple[SessionDelivery, Facts], server: TakingServer) -> None:
    it, facts = channel
    await reached(it, "idle")
    await server.prompt("mine", "msg_20d3e3b56000AbcDefGhijKlMn")
    accepted = await facts.until(PromptAccepted)
    assert (accepted.key, accepted.own) == (None, False)


async def test_where_there_is_no_session_one_is_made(launch: Launch, server: TakingServer) -> None:
    server.sessions = []
    context = replace(launch.context, port=server.port, conversation="none")
    context.launch_dir.mkdir(parents=True, exist_ok=True)
    it = SessionDelivery(name="server", channel=launch.profile.channels["server"], context=context)
    await it.open(Facts())
    try:
        await reached(it, "idle")
        await it.submit(it.key("t", 0), "first")
        assert server.posted("/tui/select-session") == [{"sessionID": "ses_new"}]
        assert len(server.posted("/session/ses_new/prompt_async")) == 1
    finally:
        await it.close()


async def test_an_answer_that_comes_in_pieces_is_read_whole(launch: Launch, server: TakingServer) -> None:
    server.sessions, server.in_pieces = [], True
    context = replace(launch.context, port=server.port, conversation="none")
    context.launch_dir.mkdir(parents=True, exist_ok=True)
    it = SessionDelivery(name="server", channel=launch.profile.channels["server"], context=context)
    await it.open(Facts())
    try:
        await reached(it, "idle")
        await it.submit(it.key("t", 0), "first")
        assert len(server.posted("/session/ses_new/prompt_async")) == 1
    finally:
        await it.close()


@pytest.mark.parametrize(("args", "chosen"), [(("--continue",), "ses_2"), (("--session", "ses_1"), "ses_1")])
async def test_the_first_message_goes_to_the_session_that_a_person_s_arguments_choose(
    args: tuple[str, ...], chosen: str, launch: Launch, server: TakingServer
) -> None:
    """Also while the terminal does not show it yet; the messages after it go to what the terminal shows."""
    server.sessions = [
        {"id": "ses_1", "time": {"updated": 10}},
        {"id": "ses_2", "time": {"updated": 20}},
        {"id": "ses_3", "time": {"updated": 30}, "parentID": "ses_2"},
    ]
    context = replace(launch.context, port=server.port, conversation="none", chosen_by=args)
    context.launch_dir.mkdir(parents=True, exist_ok=True)
    it = SessionDelivery(name="server", channel=launch.profile.channels["server"], context=context)
    await it.open(Facts())
    try:
        await reached(it, "idle")
        await it.submit(it.key("t", 0), "first", new=True)
        assert len(server.posted(f"/session/{chosen}/prompt_async")) == 1
        await it.submit(it.key("t2", 0), "second", new=True)
        assert len(server.posted("/session/ses_new/prompt_async")) == 1
    finally:
        await it.close()


async def test_a_message_begins_a_session_and_is_found_there_by_the_next_daemon(
    launch: Launch, server: TakingServer
) -> None:
    """Also one that the server has told nothing of: it would be given again, to the session before."""
    context = replace(launch.context, port=server.port, conversation="ses_1")
    context.launch_dir.mkdir(parents=True, exist_ok=True)
    it = SessionDelivery(name="server", channel=launch.profile.channels["server"], context=context)
    await it.open(Facts())
    await reached(it, "idle")
    key = it.key("t", 0)
    await it.submit(key, "first", new=True)
    await it.submit(key, "first", new=True)
    assert len(server.posted("/session")) == 1
    assert len(server.posted("/session/ses_new/prompt_async")) == 2
    await it.close()
    server.posts.clear()
    after = SessionDelivery(name="server", channel=launch.profile.channels["server"], context=context)
    await after.open(Facts())
    try:
        await reached(after, "idle")
        assert await after.find(key) is None
        await after.submit(key, "first")
        await after.interrupt(key)
        await after.submit(after.key("t2", 0), "second")
    finally:
        await after.close()
    assert len(server.posted("/session/ses_new/prompt_async")) == 2
    assert len(server.posted("/session/ses_new/abort")) == 1


async def test_a_message_s_session_is_kept_behind_an_older_write_that_takes_long(
    launch: Launch, server: TakingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older one would stand last, and the next daemon give the message to the session before."""
    begun, may_end, writes = asyncio.Event(), threading.Event(), session_server.write_whole
    loop = asyncio.get_running_loop()

    def slow_once(path: Path, content: bytes, *, durable: bool) -> None:
        if not begun.is_set():
            loop.call_soon_threadsafe(begun.set)
            may_end.wait(DEADLINE)
        writes(path, content, durable=durable)

    monkeypatch.setattr(session_server, "write_whole", slow_once)
    context = replace(launch.context, port=server.port, conversation="ses_1")
    context.launch_dir.mkdir(parents=True, exist_ok=True)
    it = SessionDelivery(name="server", channel=launch.profile.channels["server"], context=context)
    await it.open(Facts())
    try:
        await reached(it, "idle")
        await asyncio.wait_for(begun.wait(), DEADLINE)
        key = it.key("t", 0)
        giving = asyncio.create_task(it.submit(key, "first", new=True))
        await asyncio.wait({giving}, timeout=0.2)
        may_end.set()
        await giving
        await server.prompt("first", key, "ses_new")
    finally:
        may_end.set()
        await it.close()
    assert (context.launch_dir / "server.session").read_text() == f"ses_new {key} ses_new"


async def test_the_next_daemon_ends_a_message_that_a_clock_set_back_put_before_others(
    launch: Launch, server: TakingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program ends such a turn at once, without a word, and nobody listened."""
    monkeypatch.setattr(session_server, "BEGIN_SECONDS", 0.01)
    context = replace(launch.context, port=server.port, conversation="ses_1")
    context.launch_dir.mkdir(parents=True, exist_ok=True)
    await server.prompt("before", "msg_u1")
    await server.reply("Before.", "msg_a1")
    it = SessionDelivery(name="server", channel=launch.profile.channels["server"], context=context)
    await it.open(Facts())
    await reached(it, "idle")
    key = it.key("t", 0)
    await it.submit(key, "ours")
    await it.close()
    await server.prompt("ours", key)
    server.messages[0]["info"]["time"]["created"] += 20 * 24 * 3600 * 1000
    server.messages.insert(0, server.messages.pop())
    after, facts = SessionDelivery(name="server", channel=launch.profile.channels["server"], context=context), Facts()
    await after.open(facts)
    try:
        failed = await facts.until(TurnFailed)
        assert (failed.turn, failed.message) == (key, SILENT + BEHIND)
    finally:
        await after.close()


async def test_what_became_of_a_message_is_found(channel: tuple[SessionDelivery, Facts], server: TakingServer) -> None:
    it, _ = channel
    await reached(it, "idle")
    key = it.key("t", 0)

    async def over() -> ChannelFact:
        found = await it.find(key)
        assert found is not None
        assert found.over is not None
        return replace(found.over, at_ns=0)

    assert await it.find(key) is None
    await server.prompt("x", key)
    server.status = {"ses_1": {"type": "busy"}}
    assert await it.find(key) == FoundTurn(turn=key)
    await server.reply("the answer", "msg_a1", parent=key)
    server.status = {}
    assert await over() == TurnEnded(channel=it.name, at_ns=0, turn=key, answer="the answer")
    error = {"name": "APIError", "data": {"message": "slow down", "statusCode": 429}}
    await server.reply("", "msg_a2", finish=None, parent=key, error=error)
    assert await over() == TurnFailed(channel=it.name, at_ns=0, turn=key, code="RATE_LIMITED", message="slow down")
    await server.reply("", "msg_a3", finish=None, parent=key, error={"name": "MessageAbortedError", "data": {}})
    assert await over() == TurnInterrupted(channel=it.name, at_ns=0, turn=key)


async def test_a_question_is_told_whole_and_answered_once(
    channel: tuple[SessionDelivery, Facts], server: TakingServer
) -> None:
    it, facts = channel
    await reached(it, "idle")
    await server.event("permission.asked", **ASKED)
    asked: PermissionAsked = await facts.until(PermissionAsked)
    assert asked.question == "Permission required: bash\nls -la"
    assert [option.key for option in asked.options] == ["once", "always", "reject"]
    assert not asked.again
    assert it.reach() == "asking"
    assert await it.answer("per_1", "once")
    assert server.posted("/permission/per_1/reply") == [{"reply": "once"}]
    assert (await facts.until(PermissionOver)).request == "per_1"
    assert not await it.answer("per_1", "once")
    assert not await it.answer("per_1", "nothing")


async def test_a_question_that_is_answered_at_the_terminal_is_over(
    channel: tuple[SessionDelivery, Facts], server: TakingServer
) -> None:
    it, facts = channel
    await reached(it, "idle")
    await server.event("permission.asked", **ASKED)
    await facts.until(PermissionAsked)
    await server.event("permission.replied", sessionID="ses_1", requestID="per_1", reply="once")
    assert (await facts.until(PermissionOver)).request == "per_1"
    assert not await it.answer("per_1", "once")
    assert server.posted("/permission/per_1/reply") == []


async def test_what_is_asked_already_is_told_as_such(launch: Launch, server: TakingServer) -> None:
    server.pending = [ASKED]
    server.status = {"ses_1": {"type": "busy"}}
    context = replace(launch.context, port=server.port, conversation="ses_1")
    context.launch_dir.mkdir(parents=True, exist_ok=True)
    it, facts = SessionDelivery(name="server", channel=launch.profile.channels["server"], context=context), Facts()
    await it.open(facts)
    try:
        asked: PermissionAsked = await facts.until(PermissionAsked)
        assert asked.again
        await reached(it, "asking")
    finally:
        await it.close()


async def test_a_session_that_is_gone_takes_no_order_to_stop(
    channel: tuple[SessionDelivery, Facts], server: TakingServer
) -> None:
    """So keys are pressed; an error would end the worker of all turns."""
    it, _ = channel
    await reached(it, "idle")
    assert await it.interrupt(None)
    server.says = 404
    assert not await it.interrupt(None)


@pytest.mark.parametrize(("says", "error"), [(400, MessageRefused), (503, ChannelAway)])
async def test_what_the_server_says_to_a_message_it_does_not_take(
    channel: tuple[SessionDelivery, Facts], server: TakingServer, says: int, error: type[Exception]
) -> None:
    it, _ = channel
    await reached(it, "idle")
    server.says = says
    with pytest.raises(error, match=str(says)):
        await it.submit(it.key("t", 0), "x")


async def test_a_server_that_is_gone_is_away(channel: tuple[SessionDelivery, Facts], server: TakingServer) -> None:
    it, _ = channel
    await reached(it, "idle")
    await server.stop()
    await reached(it, "away")
    with pytest.raises(ChannelAway) as caught:
        await it.submit(it.key("t", 0), "x")
    assert not caught.value.sent
    with pytest.raises(ChannelAway):
        await it.find("msg_x")
    await server.start()
    await reached(it, "idle")


async def test_a_failure_is_told_by_its_code(channel: tuple[SessionDelivery, Facts], server: TakingServer) -> None:
    it, facts = channel
    await reached(it, "idle")
    key = it.key("t", 0)
    await server.prompt("x", key)
    error = {"name": "APIError", "data": {"message": "no", "statusCode": 401}}
    await server.reply("", "msg_a1", finish=None, parent=key, error=error)
    await server.idle()
    assert (await facts.until(TurnFailed)).code == "AUTH_REQUIRED"
