"""The app-server adapter against a server that speaks as the real one was recorded to, on a socket as its own."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from synapsed.channels import app_connection, app_server
from synapsed.channels.app_items import answer_in, call_in, code_of, limits_in, script_in
from synapsed.channels.app_server import AppServerChannel
from synapsed.channels.injection import program_mark, was_refused
from synapsed.errors import ChannelAway, MessageRefused
from synapsed.interfaces import Delivering, FoundTurn, Submitted
from synapsed.model.facts import (
    AssistantSaid,
    AssistantSaying,
    DiffTold,
    LimitsTold,
    LimitWindow,
    PermissionAsked,
    PermissionOver,
    PlanTold,
    PromptAccepted,
    SessionStarted,
    ToolBegan,
    ToolOver,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
    TurnUsed,
)
from tests.channels.conftest import Launch
from tests.channels.test_session_server import DEADLINE, Facts

THREAD = "thread-1"


class AppServer:
    """One thread on a Unix socket, and its turns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.answers: list[dict[str, Any]] = []
        self.turns: list[dict[str, Any]] = []
        self.threads: dict[str, dict[str, Any]] = {THREAD: {"id": THREAD, "createdAt": 1, "ephemeral": False}}
        self.status = "idle"
        self.refuses: dict[str, str] = {}
        self.odd: dict[str, Any] = {}
        """Results of another shape, by method."""
        self.begins_in: str | None = None
        self.deaf = False
        self.resumable = True
        self.rests_after_resume = False
        self._sockets: list[web.WebSocketResponse] = []

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        await web.UnixSite(self._runner, str(self.path)).start()

    async def stop(self) -> None:
        for socket in self._sockets:
            await socket.close()
        await self._runner.cleanup()

    async def tell(self, method: str, **params: Any) -> None:
        for socket in self._sockets:
            await socket.send_str(json.dumps({"method": method, "params": {"threadId": THREAD, **params}}))

    async def ask(self, id_: int, method: str, **params: Any) -> None:
        told = {"id": id_, "method": method, "params": {"threadId": THREAD, **params}}
        for socket in self._sockets:
            await socket.send_str(json.dumps(told))

    async def item(self, item: dict[str, Any], turn: str = "turn-1", *, started: bool = False) -> None:
        await self.tell("item/started" if started else "item/completed", item=item, turnId=turn)

    async def says(self, text: str, id_: str, turn: str = "turn-1") -> None:
        await self.item({"type": "agentMessage", "id": id_, "text": text}, turn)

    async def ends(self, status: str = "completed", turn: str = "turn-1", **more: Any) -> None:
        self.status = "idle"
        await self.tell("thread/status/changed", status={"type": "idle"})
        await self.tell("turn/completed", turn={"id": turn, "status": status, "itemsView": "notLoaded", **more})

    def called(self, method: str) -> list[dict[str, Any]]:
        return [params for name, params in self.calls if name == method]

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._sockets.append(socket)
        async for message in socket:
            told = json.loads(message.data)
            if "method" not in told:
                self.answers.append(told)
            elif "id" in told:
                self.calls.append((told["method"], told["params"]))
                if not self.deaf:
                    await self._answer(socket, told)
        self._sockets.remove(socket)
        return socket

    async def _answer(self, socket: web.WebSocketResponse, told: dict[str, Any]) -> None:
        method, params = told["method"], told["params"]
        if (why := self.refuses.get(method)) or (method == "thread/resume" and not self.resumable):
            error = {"code": -32600, "message": why or "no rollout found"}
            await socket.send_str(json.dumps({"id": told["id"], "error": error}))
            return
        results: dict[str, Callable[[], Any]] = {
            "thread/loaded/list": lambda: {"data": list(self.threads)},
            "thread/read": lambda: {"thread": {**self.threads[params["threadId"]], "status": {"type": self.status}}},
            "thread/resume": lambda: {"thread": {"id": params["threadId"], "status": {"type": self.status}}},
            "thread/turns/list": lambda: {"data": list(reversed(self.turns))[: params["limit"]], "nextCursor": None},
            "turn/start": lambda: {"turn": {"id": self.begins_in or "turn-1", "status": "inProgress"}},
        }
        result = self.odd.get(method) or results.get(method, dict)()
        await socket.send_str(json.dumps({"id": told["id"], "result": result}))
        if method == "thread/resume" and self.rests_after_resume:
            await self.tell("thread/status/changed", status={"type": "idle"})


@pytest.fixture
async def server(launch: Launch) -> AsyncIterator[AppServer]:
    running = AppServer(launch.context.server_socket)
    await running.start()
    yield running
    await running.stop()


def made(launch: Launch) -> AppServerChannel:
    context = replace(launch.context, companion=True)
    context.launch_dir.mkdir(parents=True, exist_ok=True)
    return AppServerChannel(name="server", channel=launch.profile.channels["server"], context=context)


@pytest.fixture
async def channel(launch: Launch, server: AppServer) -> AsyncIterator[tuple[AppServerChannel, Facts]]:
    it, facts = made(launch), Facts()
    await it.open(facts)
    await reached(it, "idle")
    yield it, facts
    await it.close()


async def reached(channel: AppServerChannel, *words: str) -> None:
    changed = asyncio.Event()
    channel.watch(changed.set)
    async with asyncio.timeout(DEADLINE):
        while channel.reach() not in words:
            changed.clear()
            await changed.wait()


async def until(found: Callable[[], Any]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not found():
            await asyncio.sleep(0)


pytestmark = pytest.mark.parametrize("launch", ["codex"], indirect=True)


async def begun(it: AppServerChannel, server: AppServer, facts: Facts, text: str = "do it") -> str:
    key = it.key("task-1", 0)
    assert await it.submit(key, text) == Submitted(turn="turn-1")
    server.status = "active"
    await server.tell("thread/status/changed", status={"type": "active"})
    await server.tell("turn/started", turn={"id": "turn-1"})
    content = [{"type": "text", "text": text}]
    await server.item({"type": "userMessage", "id": "u1", "clientId": key, "content": content})
    await facts.until(PromptAccepted)
    return key


async def test_a_turn(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    assert isinstance(it, Delivering)
    assert facts[0] == replace(facts[0], session=THREAD)
    assert isinstance(facts[0], SessionStarted)
    key = await begun(it, server, facts)
    (sent,) = server.called("turn/start")
    assert sent == {
        "threadId": THREAD,
        "input": [{"type": "text", "text": "do it"}],
        "clientUserMessageId": key,
    }
    accepted = await facts.until(PromptAccepted)
    assert (accepted.turn, accepted.prompt, accepted.key, accepted.own) == ("turn-1", "do it", key, True)
    assert it.reach() == "busy"
    await server.says("First I look.", "m1")
    await server.tell("item/agentMessage/delta", turnId="turn-1", itemId="m0", delta="of one that had begun before")
    await server.item({"type": "agentMessage", "id": "m2", "text": ""}, started=True)
    await server.tell("item/agentMessage/delta", turnId="turn-1", itemId="m2", delta="Done")
    await server.says("Done.", "m2")
    last = {"inputTokens": 10, "cachedInputTokens": 4, "outputTokens": 3}
    await server.tell(
        "thread/tokenUsage/updated", turnId="turn-1", tokenUsage={"total": {"totalTokens": 13}, "last": last}
    )
    await server.ends()
    ended = await facts.until(TurnEnded)
    assert (ended.turn, ended.answer) == ("turn-1", "Done.")
    assert (await facts.until(AssistantSaid)).text == "First I look."
    assert (await facts.until(AssistantSaying)).piece == "Done"
    used = await facts.until(TurnUsed)
    assert (used.input_tokens, used.output_tokens, used.cache_read_tokens) == (6, 3, 4)
    await reached(it, "idle")


async def test_a_turn_that_runs_already_is_joined(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    await server.tell("turn/started", turn={"id": "turn-1"})
    await server.item({"type": "userMessage", "id": "u0", "clientId": "theirs", "content": []})
    theirs = await facts.until(PromptAccepted)
    assert (theirs.own, theirs.key) == (False, None)
    assert (await it.submit(it.key("task-1", 0), "also this")).joined


async def test_what_was_said_before_ours_is_no_answer(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await server.tell("turn/started", turn={"id": "turn-1"})
    await server.says("of the person's", "m1")
    await server.item({"type": "userMessage", "id": "u2", "clientId": it.key("t", 0), "content": []})
    await server.says("of ours", "m2")
    await server.ends()
    assert (await facts.until(TurnEnded)).answer == "of ours"


async def test_the_first_turn_of_a_thread_is_heard_once_it_can_be_resumed(launch: Launch, server: AppServer) -> None:
    server.resumable = False
    it, facts = made(launch), Facts()
    await it.open(facts)
    try:
        await reached(it, "idle")
        key = it.key("task-1", 0)
        await it.submit(key, "x")
        await until(lambda: len(server.called("thread/resume")) >= 3)
        user = {"type": "userMessage", "id": "u1", "clientId": key, "content": [{"type": "text", "text": "x"}]}
        said = {"type": "agentMessage", "id": "m1", "text": "It was fast."}
        server.turns = [{"id": "turn-1", "status": "completed", "items": [user, said]}]
        server.resumable = True
        ended = await facts.until(TurnEnded)
        assert (ended.turn, ended.answer) == ("turn-1", "It was fast.")
    finally:
        await it.close()


async def test_an_end_that_never_comes_is_read(
    channel: tuple[AppServerChannel, Facts], server: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    it, facts = channel
    monkeypatch.setattr(app_server, "SETTLE_AFTER_S", (0.0, 0.01))
    key = await begun(it, server, facts)
    user = {"type": "userMessage", "id": "u1", "clientId": key, "content": []}
    server.turns = [
        {"id": "turn-1", "status": "completed", "items": [user, {"type": "agentMessage", "id": "m", "text": "late"}]}
    ]
    await server.tell("thread/status/changed", status={"type": "idle"})
    assert (await facts.until(TurnEnded)).answer == "late"


async def test_what_became_of_a_message_is_found(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, _ = channel
    key = it.key("task-1", 0)
    assert await it.find(key) is None
    user = {"type": "userMessage", "id": "u1", "clientId": key, "content": []}
    before = {"type": "agentMessage", "id": "m0", "text": "before"}
    after = {"type": "agentMessage", "id": "m1", "text": "after"}
    turn: dict[str, Any] = {"id": "turn-1", "status": "completed", "items": [before, user, after]}
    server.turns = [{"id": "turn-0", "status": "completed", "items": []}, turn]
    assert await it.find(key) == FoundTurn(turn="turn-1", state="completed", answer="after")
    turn |= {"items": [before, user]}
    assert await it.find(key) == FoundTurn(turn="turn-1", state="completed", answer="")
    turn |= {"status": "failed", "error": {"message": "no", "codexErrorInfo": "usageLimitExceeded"}}
    assert await it.find(key) == FoundTurn(turn="turn-1", state="failed", code="RATE_LIMITED", message="no")
    turn |= {"status": "interrupted", "error": None}
    assert await it.find(key) == FoundTurn(turn="turn-1", state="interrupted")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ({"message": '{"error": {"message": "bad"}}', "codexErrorInfo": "other"}, "MODEL_ERROR", "bad"),
        (
            {
                "message": "exceeded retry limit",
                "codexErrorInfo": {"responseTooManyFailedAttempts": {"httpStatusCode": 429}},
            },
            "RATE_LIMITED",
            "exceeded retry limit",
        ),
        ({"message": "unexpected status 401 Unauthorized", "codexErrorInfo": "other"}, "AUTH_REQUIRED", None),
        ({"message": "too long", "codexErrorInfo": "contextWindowExceeded"}, "CONTEXT_FULL", "too long"),
        (None, "MODEL_ERROR", "the program says no more"),
    ],
)
async def test_a_failure_has_its_code(
    channel: tuple[AppServerChannel, Facts], server: AppServer, error: Any, code: str, words: str | None
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ends("failed", error=error)
    failed = await facts.until(TurnFailed)
    assert failed.code == code
    assert words is None or failed.message == words


async def test_an_interrupted_turn(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    await begun(it, server, facts)
    assert await it.interrupt("turn-1")
    assert server.called("turn/interrupt") == [{"threadId": THREAD, "turnId": "turn-1"}]
    await server.ends("interrupted")
    assert not (await facts.until(TurnInterrupted)).refused


# --- what it asks ----------------------------------------------------------------------------------------------------

COMMAND = "item/commandExecution/requestApproval"


def asking(**more: Any) -> dict[str, Any]:
    return {
        "turnId": "turn-1",
        "itemId": "call-1",
        "startedAtMs": time.time() * 1000 + 1000,
        "command": "/bin/bash -lc 'ls; rm -rf x'",
        "reason": "outside the sandbox",
        "proposedExecpolicyAmendment": ["ls"],
        **more,
    }


async def test_a_question_has_the_whole_command_and_is_answered_once(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking())
    asked: PermissionAsked = await facts.until(PermissionAsked)
    assert asked.question == "Would you like to run the following command?\noutside the sandbox\nls; rm -rf x"
    assert asked.tool == "Bash"
    assert not asked.again
    labels = {option.key: option.label for option in asked.options}
    assert labels["always"] == "Yes, and don't ask again for commands that start with ls"
    assert it.reach() == "asking"
    assert await it.answer("7", "always")
    await until(lambda: server.answers)
    decision = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["ls"]}}
    assert server.answers == [{"id": 7, "result": {"decision": decision}}]
    assert (await facts.until(PermissionOver)).request == "7"
    assert not await it.answer("7", "no")
    assert len(server.answers) == 1


async def test_one_that_is_answered_at_the_terminal_is_over(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking())
    await facts.until(PermissionAsked)
    await server.tell("serverRequest/resolved", requestId=7)
    assert (await facts.until(PermissionOver)).request == "7"
    assert not await it.answer("7", "yes")


async def test_one_without_a_proposal_does_not_offer_it(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking(proposedExecpolicyAmendment=None))
    asked: PermissionAsked = await facts.until(PermissionAsked)
    assert [option.key for option in asked.options] == ["yes", "no"]
    assert not await it.answer("7", "always")
    assert server.answers == []


async def test_a_decision_of_the_policy(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking())
    await facts.until(PermissionAsked)
    assert await it.reply("7", {"decision": "decline"})
    await until(lambda: server.answers)
    assert server.answers == [{"id": 7, "result": {"decision": "decline"}}]


async def test_what_was_asked_before_is_a_person_s(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking(startedAtMs=1000))
    assert (await facts.until(PermissionAsked)).again


async def test_requests_that_are_not_known_are_left_to_the_terminal(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(8, "item/tool/requestUserInput", turnId="turn-1", questions=[])
    await server.tell("something/new", turnId="turn-1")
    await server.ends()
    await facts.until(TurnEnded)
    assert server.answers == []
    assert it.reach() == "idle"


async def test_a_turn_that_ends_takes_its_questions_with_it(
    channel: tuple[AppServerChannel, Facts], server: AppServer
) -> None:
    it, facts = channel
    await begun(it, server, facts)
    await server.ask(7, COMMAND, **asking())
    await facts.until(PermissionAsked)
    await server.ends("interrupted")
    await facts.until(PermissionOver)
    await reached(it, "idle")


# --- tools, plans, diffs, limits -------------------------------------------------------------------------------------


async def test_what_else_is_told(channel: tuple[AppServerChannel, Facts], server: AppServer) -> None:
    it, facts = channel
    await begun(it, server, facts)
    call = {
        "type": "commandExecution",
        "id": "c1",
        "command": "/bin/bash -lc 'ls'",
        "cwd": "/x",
        "status": "inProgress",
    }
    await server.item(call, started=True)
    await server.item({**call, "status": "completed", "aggregatedOutput": "a\n", "exitCode": 0, "durationMs": 12})
    began, over = await facts.until(ToolBegan), await facts.until(ToolOver)
    assert (began.tool, began.input, began.call) == ("Bash", {"command": "ls", "cwd": "/x"}, "c1")
    assert (over.output, over.error, over.duration_ms) == ({"text": "a\n"}, None, 12)
    plan = [{"step": "one", "status": "inProgress"}, {"step": "two", "status": "odd"}]
    await server.tell("turn/plan/updated", turnId="turn-1", plan=plan, explanation="so")
    told = await facts.until(PlanTold)
    assert (told.steps, told.note) == ((("one", "in_progress"), ("two", "pending")), "so")
    await server.tell("turn/diff/updated", turnId="turn-1", diff="--- a\n+++ b\n")
    assert (await facts.until(DiffTold)).diff == "--- a\n+++ b\n"
    limits = {"primary": {"usedPercent": 42, "windowDurationMins": 300, "resetsAt": 1_700_000_000}, "planType": "pro"}
    await server.tell("account/rateLimits/updated", rateLimits=limits)
    found = await facts.until(LimitsTold)
    assert found.windows == (LimitWindow(name="primary", used=42.0, minutes=300, resets_at=1_700_000_000.0),)
    assert found.plan == "pro"


def test_calls_and_scripts_as_they_come(launch: Launch) -> None:
    assert script_in("/bin/bash -lc 'ls; date'") == "ls; date"
    for odd in ("bash -lc 'a' b", "/bin/bash -lc 'unclosed", "ls -la", "", "python -c x"):
        assert script_in(odd) == odd
    declined = call_in({"type": "fileChange", "id": "c", "status": "declined", "changes": "odd"}, {})
    assert declined is not None
    assert (declined.denied, declined.error, declined.input) == (True, "declined", {"changes": []})
    assert call_in({"type": "reasoning", "id": "r"}, {}) is None
    assert call_in({"type": "commandExecution"}, {}) is None
    assert limits_in({"rateLimits": {"primary": {"usedPercent": "x"}}}) is None
    assert limits_in({"rateLimits": {"primary": {"usedPercent": 1, "resetsAt": 1e300}}}) == (
        LimitWindow(name="primary", used=1.0),
    )
    assert answer_in({"items": "odd"}) == ""
    assert code_of(launch.profile.channels["server"], "odd")[0] == "MODEL_ERROR"


# --- threads and connections -----------------------------------------------------------------------------------------


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
    for odd in ("no json", "[]", "7", '{"id": 99999, "result": {}}', '{"method": 3}', '{"method": "x", "params": []}'):
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
        assert await second.find(key) == FoundTurn(turn="turn-1", state="running")
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
    it = made(launch)
    await it.open(Facts())
    try:
        await reached(it, "idle")
    finally:
        await it.close()
    assert failed
