"""The session-server adapter against a server that speaks as the real program was recorded to."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from synapsed.model.facts import (
    AssistantSaid,
    AssistantSaying,
    ChannelFact,
    PermissionAsked,
    PromptAccepted,
    SessionStarted,
    ToolBegan,
    ToolOver,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
)
from synapsed.parts.session_server import channel as session_server
from synapsed.parts.session_server.channel import SessionServerChannel
from synapsed.parts.session_server.messages import BEHIND, REPEATED, SILENT
from tests.channels.conftest import Launch
from tests.real.script import expected_answer
from tests.support.listening import listening
from tests.support.patience import PATIENCE_S

DEADLINE = PATIENCE_S


class Server:
    """Sessions of messages on a loopback port, and whoever listens to their events."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.sessions: list[dict[str, Any]] = [{"id": "ses_1"}]
        self.status: dict[str, Any] = {}
        self.plugins: list[str] = []
        self.overloaded = 0
        """So many questions for its status are refused."""
        self.listed = asyncio.Event()
        """Set while the messages may be listed."""
        self.listed.set()
        self.asked = 0
        """So many times they were asked for."""
        self.deaf = 0
        """So many connections are taken and never answered."""
        self.aborted: list[str] = []
        self.parent = "msg_u1"
        """The message that the aborted reply answers."""
        self.port = 0
        self._listeners: list[web.StreamResponse] = []
        self._listening = asyncio.Event()
        self._n = 0

    async def start(self) -> None:
        self._closing = asyncio.Event()
        app = web.Application()
        app.router.add_get("/event", self._stream)
        app.router.add_get("/config", self._configured)
        app.router.add_get("/session", self._all)
        app.router.add_get("/session/status", self._statuses)
        app.router.add_get("/session/{id}/message", self._listed)
        app.router.add_post("/session/{id}/abort", self._abort)
        self._server = contextlib.AsyncExitStack()
        self.port = await self._server.enter_async_context(listening(app, self.port))

    async def stop(self) -> None:
        self._listeners.clear()
        self._listening.clear()
        self._closing.set()
        await self._server.aclose()

    async def listened_to(self) -> None:
        await asyncio.wait_for(self._listening.wait(), DEADLINE)

    async def event(self, kind: str, **given: Any) -> None:
        self._n += 1
        await self.raw(json.dumps({"id": f"evt_{self._n}", "type": kind, "properties": given}))

    async def raw(self, text: str) -> None:
        data = text.encode()
        for listener in self._listeners:
            with contextlib.suppress(ConnectionError):  # it went away
                await listener.write(b"data: " + data + b"\n\n")

    async def prompt(self, text: str, id_: str = "msg_u1", session: str = "ses_1") -> None:
        info = {"id": id_, "role": "user", "sessionID": session, "time": {"created": _now_ms()}}
        part = {"id": f"prt_{id_}", "type": "text", "text": text, "messageID": id_, "sessionID": session}
        self.messages.append({"info": info, "parts": [part]})
        await self.event("message.updated", sessionID=session, info=info)
        await self.event("message.part.updated", sessionID=session, part=part, time=_now_ms())
        await self.event("session.status", sessionID=session, status={"type": "busy"})

    async def reply(
        self, text: str, id_: str, finish: str | None = "stop", parent: str = "msg_u1", **more: Any
    ) -> None:
        info = {"id": id_, "role": "assistant", "parentID": parent, "sessionID": "ses_1", **more}
        info["time"] = {"created": _now_ms(), "completed": _now_ms()}
        if finish:
            info["finish"] = finish
        part = {"id": f"prt_{id_}", "type": "text", "text": text, "messageID": id_, "sessionID": "ses_1"}
        self.messages.append({"info": info, "parts": [part] if text else []})
        if text:
            await self.event("message.part.updated", sessionID="ses_1", part=part, time=_now_ms())
        await self.event("message.updated", sessionID="ses_1", info=info)

    async def _abort(self, request: web.Request) -> web.Response:
        self.aborted.append(request.match_info["id"])
        error = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
        await self.event("session.error", sessionID=request.match_info["id"], error=error)
        await self.reply("half", "msg_aborted", finish=None, parent=self.parent, error=error)
        await self.idle()
        return web.json_response(True)

    async def idle(self) -> None:
        await self.event("session.idle", sessionID="ses_1")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        if self.deaf:
            self.deaf -= 1
            await self._closing.wait()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        self._listeners.append(response)
        await response.write(b'data: {"id":"evt_0","type":"server.connected","properties":{}}\n\n')
        self._listening.set()
        await self._closing.wait()
        return response

    async def _configured(self, _: web.Request) -> web.Response:
        return web.json_response({"plugin": self.plugins})

    async def _all(self, _: web.Request) -> web.Response:
        return web.json_response(self.sessions)

    async def _statuses(self, _: web.Request) -> web.Response:
        if self.overloaded:
            self.overloaded -= 1
            return web.Response(status=503)
        return web.json_response(self.status)

    async def _listed(self, request: web.Request) -> web.Response:
        self.asked += 1
        await self.listed.wait()
        limit = int(request.query.get("limit", "0"))
        return web.json_response(self.messages[-limit:] if limit else self.messages)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Facts(list[ChannelFact]):
    """What was told, and waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self._grown = asyncio.Event()

    def __call__(self, fact: ChannelFact) -> None:
        self.append(fact)
        self._grown.set()

    async def until(self, kind: type[ChannelFact], count: int = 1) -> Any:
        async with asyncio.timeout(DEADLINE):
            while len(found := [fact for fact in self if isinstance(fact, kind)]) < count:
                self._grown.clear()
                await self._grown.wait()
        return found[count - 1]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def facts() -> Facts:
    return Facts()


@pytest.fixture
async def make(launch: Launch, server: Server) -> AsyncIterator[Callable[..., SessionServerChannel]]:
    made: list[SessionServerChannel] = []

    def build(conversation: str = "") -> SessionServerChannel:
        context = replace(launch.context, port=server.port, conversation=conversation)
        made.append(SessionServerChannel(name="server", channel=launch.profile.channels["server"], context=context))
        return made[-1]

    yield build
    for channel in made:
        await channel.close()


pytestmark = pytest.mark.parametrize("launch", ["opencode"], indirect=True)
Make = Callable[..., SessionServerChannel]


async def test_a_turn(server: Server, facts: Facts, make: Make) -> None:
    await make().open(facts)
    await server.listened_to()
    before = time.monotonic_ns()
    await server.prompt("hello")
    await server.reply("I will look.", "msg_a1", finish="tool-calls")
    await server.reply("**Done.**", "msg_a2")
    await server.idle()
    ended = await facts.until(TurnEnded)
    started, accepted, said, _ = facts
    assert isinstance(started, SessionStarted)
    assert isinstance(accepted, PromptAccepted)
    assert (accepted.prompt, accepted.turn, accepted.session) == ("hello", "msg_u1", "ses_1")
    assert before <= accepted.at_ns <= time.monotonic_ns()
    assert before <= ended.at_ns <= time.monotonic_ns()
    assert isinstance(said, AssistantSaid)
    assert (said.text, said.message_id) == ("I will look.", "msg_a1")
    assert (ended.answer, ended.turn) == ("**Done.**", "msg_u1")


async def test_a_message_s_pieces_as_they_were_recorded(server: Server, facts: Facts, make: Make) -> None:
    """Two turns of the real program, the second of 200 lines: pieces put together are the messages, which end it."""
    await make().open(facts)
    await server.listened_to()
    (recording,) = (Path(__file__).parents[2] / "recordings").glob("opencode-*/slow.json")
    requests = json.loads(recording.read_text())["requests"]
    answers = [expected_answer(request["user"]) for request in requests if request["side"] is None]
    reports = recording.parent.parent / "hooks" / "opencode" / "slow.jsonl"
    for line in reports.read_text().splitlines():
        event = json.loads(line)["payload"]
        if event["type"].startswith("message."):
            await server.event(event["type"], **event["properties"])
    await server.event("message.part.updated", part={"type": "text", "text": "", "messageID": "last", "id": "p"})
    await server.event("message.part.delta", messageID="last", partID="p", field="text", delta="end")
    async with asyncio.timeout(DEADLINE):
        count = 1
        while (await facts.until(AssistantSaying, count)).message_id != "last":
            count += 1
    said: dict[str, str] = {}
    for fact in facts:
        if isinstance(fact, AssistantSaying):
            said[fact.message_id] = said.get(fact.message_id, "") + fact.piece
    assert [*said.values()] == [*answers, "end"]


async def test_parts_of_one_message_are_paragraphs_and_reasoning_is_none(
    server: Server, facts: Facts, make: Make
) -> None:
    await make().open(facts)
    await server.listened_to()
    for part, text in (("p1", "Hel"), ("p1", "lo"), ("p2", "you")):
        if text != "lo":
            begin = {"type": "text", "text": "", "messageID": "m1", "id": part}
            await server.event("message.part.updated", sessionID="ses_1", part=begin)
        await server.event("message.part.delta", messageID="m1", partID="r1", field="text", delta="hm")
        await server.event("message.part.delta", messageID="m1", partID=part, field="text", delta=text)
        if text == "lo":
            whole = {"type": "text", "text": "Hello", "messageID": "m1", "id": part}
            await server.event("message.part.updated", sessionID="ses_1", part=whole)
    await facts.until(AssistantSaying, 3)
    assert [fact.piece for fact in facts if isinstance(fact, AssistantSaying)] == ["Hel", "lo", "\n\nyou"]


async def test_a_turn_that_a_plugin_goes_on_with_ends_with_the_last_message(
    server: Server, facts: Facts, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.plugins = ["file:///home/person/.config/opencode/plugin/again.js"]
    monkeypatch.setattr(session_server, "PLUGIN_SECONDS", DEADLINE)
    await make().open(facts)
    await server.listened_to()
    await server.prompt("hello")
    await server.reply("First.", "msg_a1")
    await server.idle()
    await server.prompt("Run the tests.", "msg_u2")
    await server.event("permission.asked", id="heard", sessionID="ses_1")
    await facts.until(PermissionAsked)
    monkeypatch.setattr(session_server, "PLUGIN_SECONDS", 0.0)
    await server.reply("Last.", "msg_a2", parent="msg_u2")
    await server.idle()
    ended = await facts.until(TurnEnded)
    assert (ended.answer, ended.turn) == ("Last.", "msg_u1")
    told = [type(fact) for fact in facts if not isinstance(fact, PermissionAsked)]
    assert told == [SessionStarted, PromptAccepted, AssistantSaid, TurnEnded]


async def test_a_plugin_that_does_not_go_on_keeps_no_turn_open(
    server: Server, facts: Facts, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.plugins = ["opencode-notify"]
    monkeypatch.setattr(session_server, "PLUGIN_SECONDS", 0.0)
    await make().open(facts)
    await server.listened_to()
    for n in (1, 2):
        await server.prompt("hello", f"msg_u{n}")
        await server.reply(f"Answer {n}.", f"msg_a{n}", parent=f"msg_u{n}")
        await server.idle()
        ended = await facts.until(TurnEnded, n)
        assert (ended.answer, ended.turn) == (f"Answer {n}.", f"msg_u{n}")


async def test_a_turn_ends_though_the_server_was_too_busy_for_a_look(
    server: Server, facts: Facts, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.plugins = ["opencode-notify"]
    monkeypatch.setattr(session_server, "PLUGIN_SECONDS", 0.0)
    monkeypatch.setattr(session_server, "RETRY_SECONDS", 0.0)
    await make().open(facts)
    await server.listened_to()
    await server.prompt("hello")
    await server.reply("Done.", "msg_a1")
    await facts.until(PromptAccepted)
    server.overloaded = 1
    await server.idle()
    assert (await facts.until(TurnEnded)).answer == "Done."


async def test_a_turn_that_two_looks_find_over_ends_once(
    server: Server, facts: Facts, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program tells twice that it rests, and answers slowly."""
    server.plugins = ["opencode-notify"]
    monkeypatch.setattr(session_server, "PLUGIN_SECONDS", 0.0)
    await make().open(facts)
    await server.listened_to()
    await server.prompt("hello")
    await server.reply("Done.", "msg_a1")
    await facts.until(PromptAccepted)
    server.listed.clear()
    before = server.asked
    for n in (1, 2):
        await server.idle()
        async with asyncio.timeout(DEADLINE):
            while server.asked < before + n:
                await asyncio.sleep(0)
    server.listed.set()
    await facts.until(TurnEnded)
    await server.event("permission.asked", id="heard", sessionID="ses_1")
    await facts.until(PermissionAsked)
    assert [type(fact) for fact in facts].count(TurnEnded) == 1


async def test_records_that_are_sent_again_are_not_told_again(server: Server, facts: Facts, make: Make) -> None:
    await make().open(facts)
    await server.listened_to()
    for n in (1, 2):
        await server.prompt("hello", f"msg_u{n}")
        await server.reply("Done.", f"msg_a{n}", parent=f"msg_u{n}")
        await server.idle()
        await server.event("message.updated", sessionID="ses_1", info=server.messages[-2]["info"])
        await server.idle()
    await facts.until(TurnEnded, 2)
    assert [type(f) for f in facts] == [SessionStarted, PromptAccepted, TurnEnded, PromptAccepted, TurnEnded]


async def test_error_is_told_though_its_message_does_not_have_it_yet(server: Server, facts: Facts, make: Make) -> None:
    await make().open(facts)
    await server.listened_to()
    await server.prompt("hello")
    await server.reply("", "msg_a1", finish=None)
    error = {"name": "APIError", "data": {"message": "slow down", "statusCode": 429}}
    await server.event("session.error", sessionID="ses_1", error=error)
    await server.idle()
    failed = await facts.until(TurnFailed)
    assert (failed.code, failed.message) == ("RATE_LIMITED", "slow down")


async def test_a_turn_that_ends_without_a_word(server: Server, facts: Facts, make: Make) -> None:
    """Nobody has stopped it: by a clock that was set back the program takes its prompt for answered."""
    await make().open(facts)
    await server.listened_to()
    await server.prompt("hello")
    await server.idle()
    failed = await facts.until(TurnFailed)
    assert (failed.turn, failed.code, failed.message) == ("msg_u1", "MODEL_ERROR", SILENT)


async def test_a_program_that_answers_an_older_message_again_and_again(
    server: Server, facts: Facts, make: Make
) -> None:
    """By a clock that was set back it takes an older message for the last one, and never ends by itself."""
    await make().open(facts)
    await server.listened_to()
    await server.prompt("older", "msg_u0")
    await server.reply("older words", "msg_a", parent="msg_u0")
    await server.idle()
    await facts.until(TurnEnded)
    for message in server.messages:
        message["info"]["time"]["created"] += 3_600_000
    await server.prompt("hello")
    server.parent = "msg_u0"
    for n in range(3):
        assert server.aborted == []
        await server.reply("older words", f"msg_a{n}", parent="msg_u0")
        await server.event("message.updated", sessionID="ses_1", info=server.messages[-1]["info"])
    failed = await facts.until(TurnFailed)
    assert (failed.turn, failed.code, failed.message) == ("msg_u1", "MODEL_ERROR", REPEATED + BEHIND)
    assert server.aborted == ["ses_1"]


@pytest.mark.parametrize("how", ["tool", "unknown"])
async def test_a_model_that_ends_each_step_as_an_answer(server: Server, facts: Facts, make: Make, how: str) -> None:
    """The program goes on after a tool, whatever the model says of the step's end."""
    await make().open(facts)
    await server.listened_to()
    await server.prompt("fix it")
    for n in range(4):
        await server.reply(f"step {n}", f"msg_a{n}", finish="unknown" if how == "unknown" else "stop")
        if how == "tool":
            server.messages[-1]["parts"].append({"type": "tool", "messageID": f"msg_a{n}"})
    await server.reply("it is fixed", "msg_last")
    await server.idle()
    ended = await facts.until(TurnEnded)
    assert (ended.answer, server.aborted) == ("it is fixed", [])


async def test_a_program_that_answers_its_message_again_and_again(server: Server, facts: Facts, make: Make) -> None:
    """Its first answer is the answer."""
    await make().open(facts)
    await server.listened_to()
    await server.prompt("hello")
    await server.reply("it lists files", "msg_a0", finish="tool-calls")
    for n in range(1, 4):
        await server.reply(f"answer {n}", f"msg_a{n}")
    ended = await facts.until(TurnEnded)
    assert (ended.turn, ended.answer, server.aborted) == ("msg_u1", "answer 1", ["ses_1"])


async def test_a_turn_that_ended_without_a_word_while_nobody_listened(
    server: Server, facts: Facts, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_server, "BEGIN_SECONDS", 0.01)
    await server.prompt("hello")
    await make("ses_1").open(facts)
    assert (await facts.until(TurnFailed)).turn == "msg_u1"


@pytest.mark.parametrize("finish", [None, "tool-calls"], ids=["interrupted", "refused"])
async def test_turn_that_stops_without_an_answer(server: Server, facts: Facts, make: Make, finish: str | None) -> None:
    await make().open(facts)
    await server.listened_to()
    await server.prompt("hello")
    await server.reply("", "msg_a1", finish=finish)
    await server.event("session.error", sessionID="ses_1", error={"name": "MessageAbortedError", "data": {}})
    await server.idle()
    assert (await facts.until(TurnInterrupted)).turn == "msg_u1"


DENIED = "The user rejected permission to use this specific tool call with the following feedback: denied by the rule x"
REJECTED = "The user rejected permission to use this specific tool call."


@pytest.mark.parametrize(
    ("errors", "aborted", "refused"),
    [
        ([DENIED, REJECTED], False, True),
        ([REJECTED, DENIED], False, True),
        ([REJECTED, REJECTED], False, False),
        ([DENIED], True, False),
        ([], False, False),
    ],
    ids=["first", "second", "a person's", "stopped afterwards", "none"],
)
async def test_a_turn_that_stops_over_a_denial(
    server: Server, facts: Facts, make: Make, errors: list[str], aborted: bool, refused: bool
) -> None:
    """Also one that was over before anybody listened."""
    await server.prompt("hello")
    await server.reply("", "msg_a1", finish="tool-calls")
    server.messages[-1]["parts"] = [{"type": "tool", "state": {"status": "error", "error": error}} for error in errors]
    if aborted:
        await server.reply("", "msg_a2", finish=None, error={"name": "MessageAbortedError", "data": {}})
    await make("ses_1").open(facts)
    assert (await facts.until(TurnInterrupted)).refused is refused


async def test_a_conversation_made_shorter_goes_on_with_its_turn(server: Server, facts: Facts, make: Make) -> None:
    await make().open(facts)
    await server.listened_to()
    await server.prompt("too long")
    await server.event("session.error", sessionID="ses_1", error={"name": "ContextOverflowError", "data": {}})
    await server.reply("", "msg_a1", finish=None)
    info = {"id": "msg_u2", "role": "user", "sessionID": "ses_1", "time": {"created": 1}}
    await server.event("message.updated", sessionID="ses_1", info=info)
    await server.event("message.part.updated", part={"type": "compaction", "messageID": "msg_u2", "sessionID": "ses_1"})
    await server.reply("A summary.", "msg_a2", parent="msg_u2", mode="compaction")
    await server.prompt("go on", "msg_u3")
    await server.event("session.compacted", sessionID="ses_1")
    await server.reply("The answer.", "msg_a3", parent="msg_u3")
    await server.idle()
    ended = await facts.until(TurnEnded)
    assert (ended.turn, ended.answer) == ("msg_u1", "The answer.")
    await server.prompt("and then?", "msg_u4")
    await facts.until(PromptAccepted, 2)
    assert [fact.turn for fact in facts if isinstance(fact, PromptAccepted)] == ["msg_u1", "msg_u4"]


async def test_permission(server: Server, facts: Facts, make: Make) -> None:
    await make().open(facts)
    await server.listened_to()
    await server.prompt("hello")
    asked = {"id": "per_1", "permission": "bash", "metadata": {"command": "ls"}}
    await server.event("permission.asked", sessionID="ses_1", **asked)
    told = await facts.until(PermissionAsked)
    assert (told.tool, told.input, told.request, told.turn) == ("bash", {"command": "ls"}, "per_1", "msg_u1")


async def test_tool_calls_with_the_server_s_own_times(server: Server, facts: Facts, make: Make) -> None:
    await make().open(facts)
    await server.listened_to()
    await server.prompt("hello")
    now = _now_ms()
    part = {"type": "tool", "tool": "bash", "callID": "call_1", "sessionID": "ses_1", "messageID": "msg_a1"}
    state: dict[str, Any] = {"status": "running", "input": {"command": "ls"}, "time": {"start": now - 500}}
    await server.event("message.part.updated", sessionID="ses_1", part={**part, "state": state})
    state = {**state, "status": "completed", "output": "x", "time": {"start": now - 500, "end": now - 200}}
    await server.event("message.part.updated", sessionID="ses_1", part={**part, "state": state})
    began, over = await facts.until(ToolBegan), await facts.until(ToolOver)
    assert (began.call, began.tool, began.input, began.turn) == ("call_1", "bash", {"command": "ls"}, "msg_u1")
    assert (over.call, over.output, over.error) == ("call_1", {"text": "x"}, None)
    assert round((over.at_ns - began.at_ns) / 1e8) == 3


async def test_a_tool_that_ended_while_nobody_listened(server: Server, facts: Facts, make: Make) -> None:
    """The next daemon is told of it."""
    part = {"type": "tool", "tool": "bash", "callID": "call_1", "sessionID": "ses_1", "messageID": "msg_a1"}
    end = {"start": _now_ms() - 500, "end": _now_ms() - 200}
    state = {"status": "completed", "input": {"command": "ls"}, "output": "x", "time": end}
    first = make()
    await first.open(facts)
    await server.listened_to()
    await server.prompt("hello")
    await server.event("permission.asked", sessionID="ses_1", id="per_1")
    await facts.until(PermissionAsked)
    await first.close()
    await server.reply("Meanwhile.", "msg_a1")
    server.messages[-1]["parts"].insert(0, {**part, "state": state})
    await make().open(facts)
    over = await facts.until(ToolOver)
    assert (over.call, over.tool, over.output) == ("call_1", "bash", {"text": "x"})
    await facts.until(TurnEnded)
    assert facts.index(over) < next(n for n, fact in enumerate(facts) if isinstance(fact, TurnEnded))


async def test_tools_of_a_conversation_that_is_taken_over_are_not_told(
    server: Server, facts: Facts, make: Make
) -> None:
    await server.prompt("hello")
    await server.reply("Before.", "msg_a1")
    part = {"type": "tool", "tool": "bash", "callID": "call_1", "state": {"status": "completed", "output": "x"}}
    server.messages[-1]["parts"].insert(0, part)
    await make("ses_1").open(facts)
    await facts.until(TurnEnded)
    assert not [fact for fact in facts if isinstance(fact, ToolBegan | ToolOver)]


async def test_subagents_are_not_the_agent(server: Server, facts: Facts, make: Make) -> None:
    await make().open(facts)
    await server.listened_to()
    await server.event("session.created", sessionID="ses_2", info={"id": "ses_2", "parentID": "ses_1"})
    await server.prompt("do a part of it", "msg_sub", session="ses_2")
    await server.prompt("hello")
    assert (await facts.until(PromptAccepted)).prompt == "hello"


async def test_what_is_not_understood_ends_a_connection_and_not_the_channel(
    server: Server, facts: Facts, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged once, however often it is said again."""
    monkeypatch.setattr(session_server, "RETRY_SECONDS", 0.01)
    known, tries = session_server.role_of, asyncio.Semaphore(0)

    def broken(message: dict[str, Any]) -> str:
        tries.release()
        raise KeyError("role")

    server.sessions, server.messages = [{"id": "ses_0"}], []
    await server.prompt("hello", session="ses_0")
    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(session_server, "role_of", broken)
        await make("ses_0").open(facts)
        for _ in range(3):
            await asyncio.wait_for(tries.acquire(), DEADLINE)
    assert session_server.role_of is known
    assert (await facts.until(PromptAccepted)).prompt == "hello"
    assert [entry["log_level"] for entry in logs if "not understood" in entry["event"]] == ["error"]


@pytest.mark.parametrize("odd", ["[" * 16_000, '{"a":' * 16_000, '{"a":' + "9" * 5000 + "}", "[1]", '{"\\ud800":1}'])
async def test_events_that_are_no_events_are_left_out(server: Server, facts: Facts, make: Make, odd: str) -> None:
    await make().open(facts)
    await server.listened_to()
    await server.raw(odd)
    await server.prompt("hello")
    assert (await facts.until(PromptAccepted)).prompt == "hello"


async def test_connection_that_is_never_answered_is_given_up(
    server: Server, facts: Facts, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_server, "HELLO_SECONDS", 0.1)
    monkeypatch.setattr(session_server, "RETRY_SECONDS", 0.01)
    server.deaf = 3
    await make().open(facts)
    await server.listened_to()
    await server.prompt("hello")
    await facts.until(PromptAccepted)


async def test_what_happened_while_the_connection_was_lost(server: Server, facts: Facts, make: Make) -> None:
    channel = make()
    await channel.open(facts)
    await server.listened_to()
    await server.prompt("hello")
    await facts.until(PromptAccepted)
    await server.stop()
    await server.reply("Meanwhile.", "msg_a1")
    await server.start()
    await channel.poll()
    assert (await facts.until(TurnEnded)).answer == "Meanwhile."


async def test_what_happened_before_this_daemon_came(server: Server, facts: Facts, make: Make) -> None:
    await server.prompt("hello")
    await server.reply("Before.", "msg_a1")
    since = time.monotonic_ns() - 10**9
    channel = make("ses_1")
    await channel.open(facts)
    ended = await facts.until(TurnEnded)
    assert (ended.answer, facts[1].at_ns >= since) == ("Before.", True)
    assert await channel.last_answer(since, bool) == "Before."
    assert await channel.last_answer(time.monotonic_ns() + 10**9, bool) is None


async def test_an_answer_from_before_the_clock_was_set_back_is_not_ours(
    server: Server, facts: Facts, make: Make
) -> None:
    await server.prompt("before", "msg_u1")
    await server.reply("Before.", "msg_a1")
    server.messages[-2]["info"]["time"]["created"] += 20 * 24 * 3600 * 1000
    since = time.monotonic_ns() - 10**9
    await server.prompt("ours", "msg_u2")
    server.messages.insert(0, server.messages.pop())  # messages are told in the order of their dates
    channel = make("ses_1")
    await channel.open(facts)
    await facts.until(PromptAccepted)
    assert await channel.last_answer(since, lambda prompt: prompt == "ours") is None
    assert await channel.last_answer(since, lambda _: False) is None


async def test_the_answer_to_our_prompt_is_found_among_those_of_a_person(
    server: Server, facts: Facts, make: Make
) -> None:
    since = time.monotonic_ns() - 10**9
    for number, text in enumerate(("ours", "theirs")):
        await server.prompt(text, f"msg_u{number}")
        await server.reply(f"To {text}.", f"msg_a{number}", parent=f"msg_u{number}")
    channel = make("ses_1")
    await channel.open(facts)
    await facts.until(PromptAccepted)
    assert await channel.last_answer(since, lambda prompt: prompt == "ours") == "To ours."
    assert await channel.last_answer(since, lambda _: False) is None, "whose it is cannot be told"


async def test_next_daemon_knows_the_conversation(server: Server, facts: Facts, make: Make) -> None:
    first = make()
    await first.open(facts)
    await server.listened_to()
    await server.prompt("hello")
    await server.event("permission.asked", sessionID="ses_1", id="per_1")
    await facts.until(PermissionAsked)  # events are heard one after the other: the conversation is on the disk by now
    await first.close()
    await server.reply("Meanwhile.", "msg_a1")
    await make().open(facts)
    assert (await facts.until(TurnEnded)).answer == "Meanwhile."


async def test_the_next_daemon_ends_a_turn_that_a_clock_set_back_put_before_others(
    server: Server, facts: Facts, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose last prompt is an older one by then: of that an answer was read off the screen."""
    monkeypatch.setattr(session_server, "BEGIN_SECONDS", 0.01)
    await server.prompt("before", "msg_u1")
    await server.reply("Before.", "msg_a1")
    first = make("ses_1")
    await first.open(facts)
    await facts.until(TurnEnded)
    await server.prompt("typed", "msg_u0")
    await server.event("permission.asked", sessionID="ses_1", id="per_1")
    await facts.until(PermissionAsked)  # what is remembered is on the disk by now
    await first.close()
    server.messages.insert(0, server.messages.pop())
    after = Facts()
    await make("ses_1").open(after)
    assert (await after.until(TurnFailed)).turn == "msg_u0"


async def test_turn_that_still_goes_on_is_not_ended_by_a_new_daemon(server: Server, facts: Facts, make: Make) -> None:
    await server.prompt("hello")
    server.status = {"ses_1": {"type": "busy"}}
    await make("ses_1").open(facts)
    await facts.until(PromptAccepted)
    await server.reply("Now.", "msg_a1")
    await server.idle()
    assert (await facts.until(TurnEnded)).answer == "Now."
    assert not [fact for fact in facts if isinstance(fact, TurnInterrupted)]


async def test_turn_that_is_about_to_begin_is_not_called_stopped(server: Server, facts: Facts, make: Make) -> None:
    """The program has its message and is not at work on it yet when a connection is made."""
    await server.prompt("hello")
    await make("ses_1").open(facts)
    await server.listened_to()
    await server.event("permission.asked", sessionID="ses_1", id="per_1")
    await facts.until(PermissionAsked)  # heard when what was missed has been looked up
    assert (await facts.until(PromptAccepted)).prompt == "hello"
    await server.reply("Hi.", "msg_a1")
    await server.idle()
    assert (await facts.until(TurnEnded)).answer == "Hi."
    assert not [fact for fact in facts if isinstance(fact, TurnInterrupted)]


async def test_long_turn_is_read_whole(server: Server, facts: Facts, make: Make) -> None:
    await make().open(facts)
    await server.listened_to()
    await server.prompt("hello")
    for n in range(session_server.MESSAGES_FIRST + 5):
        await server.reply(f"step {n}", f"msg_a{n}", finish="tool-calls")
    await server.reply("End.", "msg_end")
    await server.idle()
    assert (await facts.until(TurnEnded)).answer == "End."
    assert len([fact for fact in facts if isinstance(fact, AssistantSaid)]) == session_server.MESSAGES_FIRST + 5


async def test_program_that_is_not_there(launch: Launch, facts: Facts, server: Server, make: Make) -> None:
    channel = make()
    await server.stop()
    await channel.open(facts)
    await channel.poll()
    assert await channel.last_answer(0, bool) is None
    await server.start()
