"""The app-server adapter: threads, connections, and a server that speaks otherwise."""

import asyncio
import json
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from synapsed.channels.launch_additions import program_mark, was_refused
from synapsed.errors import ChannelAway, MessageRefused
from synapsed.interfaces import FoundTurn
from synapsed.model.facts import PromptAccepted
from synapsed.parts.app_server import channel as app_server
from synapsed.parts.app_server import connection as app_connection
from synapsed.parts.app_server.channel import AppServerChannel
from tests.channels.conftest import Launch
from tests.parts.app_server.scripted import THREAD, AppServer, begun, made, reached, until
from tests.parts.session_server.test_channel import DEADLINE, Facts

pytestmark = pytest.mark.parametrize("launch", ["codex"], indirect=True)


async def test_a_new_thread_at_the_terminal_is_followed_and_its_own_helpers_are_not(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, _ = channel
    await server.tell("thread/started", thread={"id": "title", "ephemeral": True})
    await server.tell("thread/started", thread={"id": "child", "ephemeral": False, "parentThreadId": THREAD})
    await server.tell("thread/started", thread={"id": "thread-2", "ephemeral": False, "status": {"type": "idle"}})
    await until(lambda: it._thread == "thread-2")
    await it.submit(it.key("t", 0), "x")
    assert server.called("turn/start")[-1]["threadId"] == "thread-2"


async def test_the_newest_thread_is_the_terminal_s(launch: Launch, server: AppServer) -> None:
    server.threads = {
        "old": {"id": "old", "createdAt": 1},
        "new": {"id": "new", "createdAt": 2},
        "title": {"id": "title", "createdAt": 3, "ephemeral": True},
    }
    it = made(launch)
    await it.open(Facts())
    try:
        await reached(it, "idle")
        assert it._thread == "new"
    finally:
        await it.close()


async def test_a_thread_that_the_terminal_goes_on_with_is_found_though_nothing_is_told(
    launch: Launch, server: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_server, "LOOK_S", 0.0)
    threads, server.threads = server.threads, {}
    it = made(launch)
    await it.open(Facts())
    await until(lambda: len(server.called("thread/loaded/list")) > 1)
    assert (it.reach(), it.coming) == ("away", True)
    server.threads = threads
    await reached(it, "idle")
    await until(lambda: server.called("thread/resume"))
    await it.close()


async def test_a_thread_that_comes_to_rest_while_it_is_resumed(launch: Launch, server: AppServer) -> None:
    """What is told right behind an answer is newer than that, also where both are read at once."""
    server.status, server.rests_after_resume = "active", True
    it = made(launch)
    await it.open(Facts())
    try:
        await reached(it, "idle")
    finally:
        await it.close()


async def test_hostile_messages_change_nothing(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    large = ("[" * 16_000, '{"id":' * 20_000, '{"id":' + "9" * 5000 + "}")
    other = ('{"id": 99999, "result": {}}', '{"method": 3}', '{"method": "x", "params": []}')
    for odd in ("no json", "[]", "7", *large, *other):
        for socket in server._sockets:
            await socket.send_str(odd)
    for socket in server._sockets:
        await socket.send_bytes(b"\x00\xff")
    for params in ({"item": 3}, {"item": {"type": "agentMessage"}}, {"item": {"type": "userMessage", "content": 3}}):
        await server.tell("item/completed", turnId=3, **params)
    await server.tell("turn/plan/updated", plan=[3])
    await server.tell("thread/tokenUsage/updated", tokenUsage="odd", turnId="turn-9")
    key = await begun(it, server, facts)
    await until(lambda: key in {fact.key for fact in facts if isinstance(fact, PromptAccepted)})


async def test_an_error_of_ours_is_logged_and_leaves_no_call_waiting(
    launch: Launch, server: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It happens while the first call waits for its answer: the next connection is made at once."""
    monkeypatch.setattr(app_connection, "REQUEST_S", 10 * DEADLINE)
    server.speaks_first = json.dumps({"method": "account/rateLimits/updated", "params": {}})
    heard: list[int] = []

    def broken(params: object) -> None:
        heard.append(1)
        if len(heard) == 1:
            raise ValueError("a defect")

    monkeypatch.setattr(app_server, "limits_in", broken)
    it = made(launch)
    with capture_logs() as logs:
        await it.open(Facts())
        try:
            await reached(it, "idle")
        finally:
            await it.close()
    assert [entry["log_level"] for entry in logs if "not understood" in entry["event"]] == ["error"]


async def test_a_refused_message(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, _ = channel
    server.refuses["turn/start"] = "input is too large"
    with pytest.raises(MessageRefused, match="input is too large"):
        await it.submit(it.key("t", 0), "x")


async def test_a_server_that_does_not_answer(
    channel: tuple[AppServerChannel, Facts], server: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    it, _ = channel
    monkeypatch.setattr(app_connection, "REQUEST_S", 0.05)
    server.deaf = True
    with pytest.raises(ChannelAway) as caught:
        await it.submit(it.key("t", 0), "x")
    assert caught.value.sent


async def test_a_thread_that_begins_while_the_one_before_is_read_is_subscribed_to(
    launch: Launch, server: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.resumable = False
    it, reads, read = made(launch), asyncio.Event(), asyncio.Event()

    async def slowly() -> None:
        reads.set()
        await read.wait()

    await it.open(Facts())
    try:
        await reached(it, "idle")
        monkeypatch.setattr(it, "_catch_up", slowly)
        server.resumable = True
        await it.submit(it.key("t", 0), "x")
        await asyncio.wait_for(reads.wait(), DEADLINE)
        await server.tell("thread/started", thread={"id": "thread-2", "ephemeral": False, "status": {"type": "idle"}})
        await until(lambda: it._thread == "thread-2")
        await it.submit(it.key("t", 1), "y")
        read.set()
        await until(lambda: "thread-2" in [each["threadId"] for each in server.called("thread/resume")])
    finally:
        await it.close()


async def test_a_server_that_ends_is_gone_and_one_that_comes_back_is_not(
    channel: tuple[AppServerChannel, Facts], server: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    it, _ = channel
    await server.stop()
    await reached(it, "away")
    with pytest.raises(ChannelAway) as caught:
        await it.submit(it.key("t", 0), "x")
    assert not caught.value.sent
    await server.start()
    await reached(it, "idle")
    monkeypatch.setattr(app_server, "GONE_S", 0.0)
    await server.stop()
    changed = asyncio.Event()
    it.watch(changed.set)
    async with asyncio.timeout(DEADLINE):
        while it.gone is None:
            changed.clear()
            await changed.wait()
    assert it.gone == "its server has ended"
    await server.start()


async def test_one_that_was_never_there_is_away_and_not_gone(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_server, "GONE_S", 0.0)
    monkeypatch.setattr(app_server, "RETRY_S", 0.01)
    it = made(launch)
    tries: list[None] = []
    listen = it._listen

    async def listening() -> None:
        tries.append(None)
        await listen()

    monkeypatch.setattr(it, "_listen", listening)
    await it.open(Facts())
    try:
        await until(lambda: len(tries) >= 3)  # what the first ones found is judged by then
        assert (it.reach(), it.gone) == ("away", None)
        await until(lambda: not it.coming)
    finally:
        await it.close()


async def test_a_server_that_speaks_otherwise_is_remembered_until_there_is_another_program(
    launch: Launch, server: AppServer, tmp_path: Path
) -> None:
    program = tmp_path / "codex"
    program.write_text("1")
    mark = program_mark(str(program))
    context = replace(launch.context, companion=True, program=mark)
    context.launch_dir.mkdir(parents=True, exist_ok=True)
    server.refuses["initialize"] = "unknown method"
    it = AppServerChannel(name="server", channel=launch.profile.channels["server"], context=context)
    assert not was_refused(context)
    await it.open(Facts())
    try:
        await until(lambda: was_refused(context))
        assert it.reach() == "away"
    finally:
        await it.close()
    program.write_text("12")
    assert not was_refused(replace(context, program=program_mark(str(program))))
    assert program_mark(str(tmp_path / "missing")) == ""


async def test_a_new_thread_is_kept_behind_an_older_write_that_takes_long(
    launch: Launch, server: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older one would stand last, and the next daemon go on with the thread before."""
    writes, begun, done, may_end = app_server.write_whole, [], [], threading.Event()

    def slow_once(path: Path, content: bytes, *, durable: bool) -> None:
        begun.append(content)
        if len(begun) == 1:
            may_end.wait(DEADLINE)
        writes(path, content, durable=durable)
        done.append(content)

    monkeypatch.setattr(app_server, "write_whole", slow_once)
    it = made(launch)
    await it.open(Facts())
    try:
        await until(lambda: len(begun) == 1)
        await server.tell("thread/started", thread={"id": "thread-2", "ephemeral": False, "status": {"type": "idle"}})
        await until(lambda: it._thread == "thread-2")
        with suppress(TimeoutError):
            await asyncio.wait_for(until(lambda: bool(done)), 0.2)
        may_end.set()
        await until(lambda: len(done) == 2)
    finally:
        may_end.set()
        await it.close()
    assert it._file.read_bytes() == b"thread-2"


async def test_the_next_daemon_goes_on_with_the_same_thread(launch: Launch, server: AppServer) -> None:
    first, facts = made(launch), Facts()
    await first.open(facts)
    await reached(first, "idle")
    await until(first._file.exists)
    await first.close()
    server.status = "active"
    key = first.key("t", 0)
    user = {"type": "userMessage", "id": "u1", "clientId": key, "content": []}
    server.turns = [{"id": "turn-1", "status": "interrupted", "items": [user]}]  # as it is told of one that runs
    second, facts = made(launch), Facts()
    await second.open(facts)
    try:
        await reached(second, "busy")
        assert (await facts.until(PromptAccepted)).key == key
        assert await second.find(key) == FoundTurn(turn="turn-1")
    finally:
        await second.close()


ODD = (5, None, True, "x", [], [5], {}, {"id": 5}, {"id": "turn-1", "items": 5, "error": 5}, {"type": "agentMessage"})
TELLS = (
    "thread/started",
    "thread/status/changed",
    "thread/tokenUsage/updated",
    "account/rateLimits/updated",
    "turn/started",
    "turn/completed",
    "turn/plan/updated",
    "turn/diff/updated",
    "item/started",
    "item/completed",
    "item/agentMessage/delta",
    "serverRequest/resolved",
    "item/commandExecution/requestApproval",
)


@pytest.mark.parametrize("method", TELLS)
async def test_no_message_of_another_shape_ends_the_channel(
    channel: tuple[AppServerChannel, Facts], server: AppServer, method: str
) -> None:
    _, facts = channel
    names = ("thread", "turn", "item", "status", "tokenUsage", "rateLimits", "plan", "diff", "delta", "requestId")
    for odd in ODD:
        for turn in ("turn-0", 5):
            await server.tell(method, turnId=turn, **dict.fromkeys(names, odd))
        for name in names:
            await server.tell(method, **{name: odd})
    await server.tell("turn/started", turn={"id": "turn-last"})
    content = [{"type": "text", "text": "behind all that"}]
    await server.item({"type": "userMessage", "id": "u9", "clientId": "c", "content": content}, "turn-last")
    async with asyncio.timeout(DEADLINE):
        while not any(isinstance(fact, PromptAccepted) and fact.prompt == "behind all that" for fact in facts):
            await asyncio.sleep(0)
    assert len(server.called("initialize")) == 1, "the connection stands"


@pytest.mark.parametrize("method", ["thread/loaded/list", "thread/read", "thread/resume", "thread/turns/list"])
@pytest.mark.parametrize(
    "odd",
    [
        {"data": None},
        {"data": 5},
        {"data": [5, None], "nextCursor": 5},
        {"thread": 5},
        {"thread": {"id": THREAD, "createdAt": "x", "status": {"activeFlags": 5}}},
    ],
    ids=str,
)
async def test_no_answer_of_another_shape_ends_the_channel(
    launch: Launch, server: AppServer, method: str, odd: dict[str, Any]
) -> None:
    """Once the server answers as it should, messages go that way."""
    server.odd[method] = odd
    it = made(launch)
    await it.open(Facts())
    try:
        await until(lambda: server.called(method) or server.called("thread/loaded/list"))
        server.odd.clear()
        await server.tell("thread/started", thread=server.threads[THREAD])
        await reached(it, "idle")
        assert (await it.submit(it.key("task-1", 0), "do it")).turn == "turn-1"
    finally:
        await it.close()


async def test_a_defect_costs_a_connection_and_not_the_channel(
    launch: Launch, server: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hear, failed = AppServerChannel._hear, []

    def once(self: AppServerChannel, told: dict[str, Any]) -> None:
        if not failed:
            failed.append(told)
            raise TypeError("a shape that nobody thought of")
        hear(self, told)

    monkeypatch.setattr(AppServerChannel, "_hear", once)
    monkeypatch.setattr(app_connection, "REQUEST_S", 1.0)
    it = made(launch)
    await it.open(Facts())
    try:
        await reached(it, "idle")
    finally:
        await it.close()
    assert failed
