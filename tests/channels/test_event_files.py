"""The adapter of files of events and commands, against files as the real program writes them."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.channels.event_files import EventFilesChannel
from synapsed.channels.launch_additions import plan, prepare
from synapsed.errors import ChannelAway
from synapsed.interfaces import Delivering, FoundTurn, Submitted
from synapsed.model.facts import (
    AssistantSaid,
    AssistantSaying,
    PermissionAsked,
    PermissionOver,
    PromptAccepted,
    SessionStarted,
    ToolBegan,
    ToolOver,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
    TurnUsed,
)
from synapsed.profiles.channel_spec import Channel
from synapsed.profiles.library import ProfileLibrary
from tests.channels.conftest import Launch
from tests.channels.test_session_server import DEADLINE, Facts

SPEC = Channel.model_validate(
    {
        "adapter": "event-files",
        "delivers": True,
        "args": ["--json-file", "{events_file}", "--input-file", "{commands_file}"],
        "failed_answer": r"\[API Error: (?P<text>[\s\S]*)\]",
        "error_codes": {"^429": "RATE_LIMITED"},
        "usage": {
            "id": "uuid",
            "input": "message.usage.input_tokens",
            "output": ["message.usage.output_tokens"],
        },
        "decisions": {
            "can_use_tool": {
                "tool": "request.tool_name",
                "command": ["request.input.command"],
                "choices": [
                    {"key": "yes", "label": "Yes", "reply": {"type": "confirmation_response", "allowed": True}}
                ],
            }
        },
    }
)


class Program:
    """What writes the events and reads the commands."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.events, self.commands = launch.context.events_file, launch.context.commands_file
        self.events.parent.mkdir(parents=True, exist_ok=True)
        self.events.write_bytes(b"")
        self.commands.write_bytes(b"")
        self._n = 0

    def write(self, *events: dict[str, Any] | bytes) -> None:
        with self.events.open("ab") as file:
            for event in events:
                file.write(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n")

    def starts(self) -> None:
        self.write({"type": "system", "subtype": "session_start", "session_id": "s1"})

    def takes(self, text: str) -> None:
        self._n += 1
        content = [{"type": "text", "text": text}]
        self.write({"type": "user", "uuid": f"u{self._n}", "session_id": "s1", "message": {"content": content}})

    def says(self, *content: dict[str, Any], tokens: int = 5) -> None:
        self._n += 1
        message = {"id": f"m{self._n}", "content": list(content), "usage": {"input_tokens": 7, "output_tokens": tokens}}
        self.write(
            {"type": "stream_event", "event": {"type": "message_start", "message": {"id": f"m{self._n}"}}},
            *(
                {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"text": part["text"]}}}
                for part in content
                if part["type"] == "text"
            ),
            {"type": "assistant", "uuid": f"a{self._n}", "message": message},
            {"type": "stream_event", "event": {"type": "message_stop"}},
        )

    def given(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.commands.read_bytes().splitlines()]

    def channel(self) -> EventFilesChannel:
        return EventFilesChannel(name="files", channel=SPEC, context=self.launch.context)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.fixture
def program(launch: Launch) -> Program:
    return Program(launch)


@pytest.fixture
async def opened(program: Program) -> AsyncIterator[tuple[EventFilesChannel, Facts]]:
    it, facts = program.channel(), Facts()
    await it.open(facts)
    program.starts()
    await reached(it, "idle")
    yield it, facts
    await it.close()


async def reached(channel: EventFilesChannel, *words: str) -> None:
    changed = asyncio.Event()
    channel.watch(changed.set)
    async with asyncio.timeout(DEADLINE):
        while channel.reach() not in words:
            changed.clear()
            await changed.wait()


async def test_a_turn_with_a_tool(opened: tuple[EventFilesChannel, Facts], program: Program) -> None:
    it, facts = opened
    assert isinstance(it, Delivering)
    assert isinstance(facts[0], SessionStarted)
    key = it.key("task", 0)
    assert await it.submit(key, "do it") == Submitted(turn=key)
    assert program.given() == [{"type": "submit", "text": "do it", "id": key}]
    assert it.reach() == "busy"
    program.takes("do it")
    call = {"type": "tool_use", "id": "c1", "name": "shell", "input": {"command": "ls"}}
    program.says(text("I look."), call)
    result = {"type": "tool_result", "tool_use_id": "c1", "is_error": False, "content": "a b"}
    program.write({"type": "user", "uuid": "u9", "message": {"content": [result]}})
    program.says(text("Done."))
    ended = await facts.until(TurnEnded)
    assert (ended.turn, ended.answer, ended.session) == (key, "Done.", "s1")
    accepted = await facts.until(PromptAccepted)
    assert (accepted.key, accepted.own, accepted.prompt) == (key, True, "do it")
    assert (await facts.until(AssistantSaid)).text == "I look."
    assert (await facts.until(AssistantSaying)).piece == "I look."
    assert (await facts.until(ToolBegan)).input == {"command": "ls"}
    assert (await facts.until(ToolOver)).output == {"text": "a b"}
    used = await facts.until(TurnUsed)
    assert (used.input_tokens, used.output_tokens) == (14, 10)
    await reached(it, "idle")
    assert await it.find(key) == FoundTurn(turn=key, state="completed", answer="Done.")


async def test_a_person_s_turn(opened: tuple[EventFilesChannel, Facts], program: Program) -> None:
    _, facts = opened
    program.takes("mine")
    program.says(text("Yours."))
    ended = await facts.until(TurnEnded)
    accepted = await facts.until(PromptAccepted)
    assert (accepted.own, accepted.key, accepted.turn) == (False, None, ended.turn)


async def test_a_failure_that_no_model_said(opened: tuple[EventFilesChannel, Facts], program: Program) -> None:
    _, facts = opened
    program.takes("x")
    program.says(text("[API Error: 429 slow down]"), tokens=0)
    failed = await facts.until(TurnFailed)
    assert (failed.code, failed.message) == ("RATE_LIMITED", "429 slow down")
    program.takes("say it")
    program.says(text("[API Error: 429 slow down]"))
    assert (await facts.until(TurnEnded)).answer == "[API Error: 429 slow down]"


async def test_a_permission(opened: tuple[EventFilesChannel, Facts], program: Program) -> None:
    it, facts = opened
    program.takes("x")
    asked = {"subtype": "can_use_tool", "tool_name": "shell", "input": {"command": "ls"}}
    for request in ("r1", "r2"):
        program.write({"type": "control_request", "request_id": request, "request": asked})
    told = await facts.until(PermissionAsked, 2)
    assert told.question == "Allow shell?\nls"
    assert await it.answer("r1", "yes")
    assert program.given()[-1] == {"type": "confirmation_response", "allowed": True, "request_id": "r1"}
    program.write({"type": "control_response", "response": {"request_id": "r2"}})
    assert (await facts.until(PermissionOver, 2)).request == "r2"
    assert not await it.answer("r2", "yes")


async def test_a_turn_that_keys_have_stopped(opened: tuple[EventFilesChannel, Facts], program: Program) -> None:
    it, facts = opened
    key = it.key("task", 0)
    await it.submit(key, "x")
    program.takes("x")
    await facts.until(PromptAccepted)
    assert not await it.interrupt(key)
    it.rested(stopped=False)
    assert it.reach() == "busy", "it may not be on the terminal yet"
    it.rested(stopped=True)
    assert (await facts.until(TurnInterrupted)).turn == key
    assert it.reach() == "idle"


async def test_the_next_daemon_reads_on_and_finds_what_was_given(program: Program) -> None:
    first, facts = program.channel(), Facts()
    await first.open(facts)
    program.starts()
    await reached(first, "idle")
    program.takes("an older one")
    program.says(text("Old."))
    await facts.until(TurnEnded)
    await first.settled(0)
    key = first.key("task", 0)
    await first.submit(key, "do it")
    await first.close()
    program.takes("do it")
    second, facts = program.channel(), Facts()
    await second.open(facts)
    try:
        assert (await facts.until(PromptAccepted)).key == key
        assert await second.find(key) == FoundTurn(turn=key, state="running")
        assert await second.find("another") is None
        program.says(text("Done."))
        assert (await facts.until(TurnEnded)).answer == "Done."
        assert [fact.answer for fact in facts if isinstance(fact, TurnEnded)] == ["Done."]
    finally:
        await second.close()


async def test_hostile_files_change_nothing(opened: tuple[EventFilesChannel, Facts], program: Program) -> None:
    _, facts = opened
    program.write(b"no json\n", b"[1]\n", b"\xff\xfe\n", b"\n", {"type": "user"}, {"type": "assistant", "message": 3})
    program.write({"type": "stream_event", "event": 3}, {"type": "user", "message": {"content": [3, {"type": "text"}]}})
    whole = json.dumps({"type": "user", "uuid": "u", "message": {"content": [text("split")]}}).encode() + b"\n"
    for byte in whole:
        program.write(bytes([byte]))
    while not any(isinstance(fact, PromptAccepted) and fact.prompt == "split" for fact in facts):
        await facts.until(PromptAccepted, sum(isinstance(fact, PromptAccepted) for fact in facts) + 1)


async def test_a_line_that_was_cut_off_is_ended_first(
    opened: tuple[EventFilesChannel, Facts], program: Program
) -> None:
    it, _ = opened
    program.commands.write_bytes(b'{"type": "submit", "te')
    await it.submit("k", "whole")
    last = program.commands.read_bytes().split(b"\n")[1]
    assert json.loads(last) == {"type": "submit", "text": "whole", "id": "k"}


async def test_a_file_that_cannot_be_written(opened: tuple[EventFilesChannel, Facts], program: Program) -> None:
    it, _ = opened
    program.commands.unlink()
    with pytest.raises(ChannelAway):
        await it.submit("k", "x")
    assert it.reach() == "idle"


async def test_the_launch_has_both_files_and_nobody_else_reads_them(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "files.toml").write_text(
        'command = "x"\n[channels.files]\nadapter = "event-files"\ndelivers = true\n'
        'args = ["--json-file", "{events_file}", "--input-file", "{commands_file}"]\n'
    )
    library = ProfileLibrary([tmp_path])
    made = plan(library.get("files"), launch.context, resume=False)
    assert made.argv == (
        *("x", "--json-file", str(launch.context.events_file)),
        *("--input-file", str(launch.context.commands_file)),
    )
    prepare(launch.context, made)
    for path in (launch.context.events_file, launch.context.commands_file):
        assert path.read_bytes() == b""
        assert path.stat().st_mode & 0o777 == 0o600
