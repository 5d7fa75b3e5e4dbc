"""`top` by Textual's pilot, beside the fake daemon: what stands on the screen, and what keys and clicks do."""

import asyncio
import io
import os
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from rich.text import Text
from textual.pilot import Pilot

from synapsectl.commands.top import named
from synapsectl.context import CommandContext
from synapsectl.eventlines import Lines
from synapsectl.output import CommandOutput
from synapsectl.top.app import TopApp
from synapsectl.top.desk import Desk, Shown
from synapsectl.top.drawing import Drawing, only_colours
from synapsectl.top.panes import HelpScreen
from synapsectl.top.watching import Watching
from synapsed.errors import NotReady
from synapsed.model.agent import Activity
from synapsed.model.task import Message, Task, TaskState, TextPart
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import DEADLINE, WHEN, FakeDaemon, agent
from tests.synapsectl.pty_tool import PtyTool

SIZES = pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=str)
Q = pytest.mark.asyncio


def item(name: str, **changes: Any) -> dict[str, Any]:
    options = [{"key": "1", "label": "Yes"}, {"key": "2", "label": "No, tell it what to do instead"}]
    return {
        "id": f"id-{name}", "agent": name, "agent_id": name, "host": None, "cwd": "/work", "kind": "permission",
        "question": f"May {name} do it?", "command": "rm -rf build", "options": options, "since": WHEN,
        "task": f"task-{name}", "prompt_id": f"p-{name}", "prompt_type": "permission", "own_words": False,
        "until": None, "looked_at": False, **changes,
    }  # fmt: skip


class Table:
    """The app on a terminal, with its daemon."""

    def __init__(self, app: TopApp, pilot: Pilot[Any], desk: Desk) -> None:
        self.app, self.pilot, self.desk = app, pilot, desk

    def shown(self) -> str:
        """The text of the terminal."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text for strip in strips)

    def has_size(self, size: tuple[int, int]) -> bool:
        return self.app.size == size

    async def until(self, predicate: Callable[[], object]) -> None:
        end = time.monotonic() + DEADLINE
        while not predicate():
            assert time.monotonic() < end, self.shown()
            await self.pilot.pause(0.02)

    async def sees(self, *words: str) -> None:
        await self.until(lambda: all(word in self.shown() for word in words))


@asynccontextmanager
async def at_table(size: tuple[int, int], *, hold: float = 0.0, first: str | None = None) -> AsyncIterator[Table]:
    ctx = CommandContext(os.environ, CommandOutput(io.StringIO(), io.StringIO(), columns=None))
    desk, watching = Desk(hold=hold, first=first), Watching(ctx)
    app = TopApp(desk, watching, home="/home/me")
    watching.start()
    try:
        async with app.run_test(size=size) as pilot:
            yield Table(app, pilot, desk)
    finally:
        watching.stop()


def given(daemon: FakeDaemon) -> list[Any]:
    return [body for method, path, body in daemon.requests if method == "POST" and path.endswith("/input")]


@SIZES
@Q
async def test_what_stands_there(daemon: FakeDaemon, size: tuple[int, int]) -> None:
    message = Message(role="user", parts=[TextPart(text="tidy the cellar")])
    task = Task(agent_id=daemon.agents["claude"].id, message=message, created_at=WHEN, updated_at=WHEN)
    daemon.advance(task, TaskState.WORKING)
    daemon.inbox = [item("codex")]
    daemon.agents["codex"] = agent("codex", port=8120, activity=Activity.WAITING, asks="May codex do it?")
    async with at_table(size) as table:
        await table.sees("claude", "2 agents · 1 needs you", "codex> ", "$ rm -rf build", "1  Yes", "? help")
        first, second = (line for line in table.shown().splitlines() if re.match(r"c\w+ +(waiting|ready) ", line))
        assert "codex" in first, "who needs a person stands first"
        assert "claude" in second
        assert table.desk.at == "codex"
        await table.pilot.press("j")
        await table.sees("claude> ", "tidy the cellar")
        await table.until(lambda: "rm -rf build" not in table.shown().split("claude> ")[1])
        await table.pilot.press("e")
        await table.sees("activity")
        for line in table.shown().splitlines():
            assert len(line) <= size[0]


@SIZES
@Q
async def test_a_question_is_answered_with_one_key_for_that_prompt(daemon: FakeDaemon, size: tuple[int, int]) -> None:
    daemon.inbox = [item("claude", task=None)]
    async with at_table(size) as table:
        await table.sees("1  Yes", "y yes")
        await table.pilot.press("2")
        await table.until(lambda: given(daemon))
        assert given(daemon)[0]["prompt_id"] == "p-claude"
        assert "2" in given(daemon)[0].values()
        daemon.inbox = []
    assert len(given(daemon)) == 1


@Q
async def test_an_answer_can_be_taken_back(daemon: FakeDaemon) -> None:
    daemon.inbox = [item("claude", task=None)]
    async with at_table((80, 24), hold=1000) as table:
        await table.sees("1  Yes", "y yes")
        await table.pilot.press("y")
        await table.sees("u takes it back")
        await table.pilot.press("u")
        await table.sees("y yes")
        assert not table.desk.inbox.held
    assert not given(daemon)


@Q
async def test_leaving_gives_what_is_held_and_ctrl_c_drops_it(daemon: FakeDaemon) -> None:
    daemon.inbox = [item("claude", task=None)]
    async with at_table((80, 24), hold=1000) as table:
        await table.sees("1  Yes", "y yes")
        await table.pilot.press("y", "ctrl+c")
    assert table.app.return_code == 130
    assert [chosen.label for _, chosen in table.desk.inbox.held] == ["Yes"]
    assert not given(daemon)
    async with at_table((80, 24), hold=1000) as table:
        await table.sees("1  Yes", "y yes")
        await table.pilot.press("y", "q")
        await asyncio.to_thread(daemon.until, lambda: given(daemon))
    assert table.app.return_value is None


@Q
async def test_a_click_on_an_option_and_on_an_agent(daemon: FakeDaemon) -> None:
    daemon.inbox = [item("claude", task=None)]
    async with at_table((80, 24), first="codex") as table:
        await table.sees("codex> ", "claude")
        lines = table.shown().splitlines()
        row = next(number for number, line in enumerate(lines) if line.startswith("claude "))
        await table.pilot.click(offset=(2, row))
        await table.sees("2  No, tell it", "1-2 choose")
        lines = table.shown().splitlines()
        row = next(number for number, line in enumerate(lines) if "2  No, tell it" in line)
        await table.pilot.click(offset=(5, row))
        await table.until(lambda: given(daemon))
    assert "2" in given(daemon)[0].values()


@SIZES
@Q
async def test_a_message_is_sent_to_the_chosen_agent(daemon: FakeDaemon, size: tuple[int, int]) -> None:
    async with at_table(size, first="codex") as table:
        await table.sees("codex> ")
        await table.pilot.press("s")
        await table.sees("a message to codex")
        await table.pilot.press(*"q?1y", "enter")
        await table.sees("codex was sent your message")
    sent = [(path, body) for method, path, body in daemon.requests if path.endswith("/tasks/send")]
    assert [(path, body["message"]["parts"]) for path, body in sent] == [
        ("/agents/codex/tasks/send", [{"type": "text", "text": "q?1y"}])
    ]


@Q
async def test_an_answer_in_words_and_a_hidden_one(daemon: FakeDaemon) -> None:
    daemon.inbox = [item("claude", task=None, kind="question", options=[], prompt_type="password", command=None)]
    async with at_table((80, 24)) as table:
        await table.sees("an answer in words", "a words")
        await table.pilot.press("a", *"hunter2")
        await table.sees("your answer")
        assert "hunter2" not in table.shown()
        await table.pilot.press("enter")
        await table.until(lambda: given(daemon))
        assert "hunter2" in given(daemon)[0].values()
        assert "hunter2" not in table.shown()


@Q
async def test_no_and_why(daemon: FakeDaemon) -> None:
    daemon.inbox = [item("claude", task=None)]
    async with at_table((80, 24)) as table:
        await table.sees("b no, because")
        await table.pilot.press("b", "enter")
        await table.sees("there is no reason in it")
        await table.pilot.press("b", *"yjx", "enter")
        await table.until(lambda: any(path.endswith("/tasks/send") for _, path, _ in daemon.requests))
    assert given(daemon) == [{"input": "2", "prompt_id": "p-claude"}]
    said = next(body for _, path, body in daemon.requests if path.endswith("/tasks/send"))
    assert said["message"]["parts"] == [{"type": "text", "text": "yjx"}]


@Q
async def test_a_question_that_goes_away_takes_the_box_with_it(daemon: FakeDaemon) -> None:
    daemon.inbox = [item("claude", task=None, options=[], kind="question", prompt_type="text")]
    async with at_table((80, 24)) as table:
        await table.sees("an answer in words", "a words")
        await table.pilot.press("a", *"abc")
        await table.sees("your answer")
        daemon.inbox = []
        await table.sees("what you typed was not sent")
        assert not table.app._box.display
    assert not given(daemon)


HOSTILE = "[bold red]x [click=app.bell]y"  # an @ would name a host


@SIZES
@Q
async def test_what_agents_wrote_is_neither_markup_nor_obeyed(daemon: FakeDaemon, size: tuple[int, int]) -> None:
    screen = f"{HOSTILE} \x1b]0;title\x07 \x9b2J \x1b[2J end\n"
    daemon.agents = {HOSTILE: agent(HOSTILE, kind="claude", cwd="/[blink]z[/]", screen=screen)}
    daemon.inbox = [item(HOSTILE, task=None, question="[/] \x1b[2Jask", command="[red]rm[/]", kind="[b]k")]
    async with at_table(size) as table:
        await table.sees(f"{HOSTILE} \\x1b]0", "$ [red]rm[/]", ";title\\x07", "\\x9b2J", "\\x1b[2J end", "/[blink]z[/]")
        assert "\x1b" not in table.shown()
        await table.pilot.press("s")
        await table.sees(f"a message to {HOSTILE}")


@Q
async def test_the_daemon_goes_away_and_comes_back(daemon: FakeDaemon) -> None:
    async with at_table((80, 24)) as table:
        await table.sees("claude> ")
        await asyncio.to_thread(daemon.die)
        await table.sees("synapsed: ", "claude")
        await table.sees("claude> ")  # what was last known stays
        daemon.agents["gemini"] = agent("gemini", port=8130)
        await asyncio.to_thread(daemon.start)
        await table.sees("3 agents", "gemini", "claude> ")
        await table.pilot.press("q")
    assert table.app.return_value is None


@Q
async def test_a_tick_while_it_is_being_closed_does_no_harm(daemon: FakeDaemon) -> None:
    async with at_table((80, 24)) as table:
        await table.sees("claude> ")
    assert table.app.screen_stack == []
    table.app.look()


@Q
async def test_help_zoom_and_attach(daemon: FakeDaemon) -> None:
    async with at_table((80, 24)) as table:
        await table.sees("claude> ")
        await table.pilot.press("question_mark")
        await table.sees("take an answer back")
        await table.pilot.press("q")
        await table.until(lambda: not isinstance(table.app.screen, HelpScreen))
        await table.pilot.press("z")
        await table.until(lambda: "FOLDER" not in table.shown())
        await table.pilot.press("z")
        await table.sees("FOLDER")
        await table.pilot.press("enter")
    assert table.app.return_value == "claude"


@Q
async def test_another_size_while_it_runs(daemon: FakeDaemon) -> None:
    daemon.inbox = [item("claude", task=None, question="\n".join(f"line {n}" for n in range(100)))]
    async with at_table((80, 24)) as table:
        for size in ((300, 80), (80, 24), (20, 5), (120, 40)):
            await table.pilot.resize_terminal(*size)
            await table.until(partial(table.has_size, size))
        await table.sees("2 agents", "line 0", "more rows: Space shows them", "? help", "claude> ")


@Q
async def test_a_screen_that_cannot_be_had_says_why_and_keeps_what_was_there(daemon: FakeDaemon) -> None:
    async with at_table((80, 24)) as table:
        await table.sees("claude> ")
        daemon.errors["GET", "/agents/claude/screen"] = NotReady("it is being moved")
        await table.sees("claude> ", "claude · it is being moved")


@Q
async def test_a_host_that_does_not_answer_is_named(daemon: FakeDaemon) -> None:
    daemon.hosts_said = [{"name": "box", "error": "it does not answer", "left_out": 0}]
    async with at_table((80, 24)) as table:
        await table.sees("2 agents · nobody needs you · box: it does not answer")


@Q
async def test_in_a_narrow_list_what_is_asked_has_the_folders_room(daemon: FakeDaemon) -> None:
    daemon.agents = {"claude": agent("claude", activity=Activity.WAITING, asks="make -C build")}
    async with at_table((120, 40)) as table:
        await table.sees("claude · /work/space")
        await table.until(lambda: "FOLDER" not in table.shown())
        assert any("waiting" in line and "make -C build" in line for line in table.shown().splitlines())
        await table.pilot.resize_terminal(300, 80)
        await table.sees("FOLDER")


@Q
async def test_events_are_told_briefly_by_name(daemon: FakeDaemon) -> None:
    async with at_table((120, 40)) as table:
        await table.sees(" claude activity activity=busy")
        assert "synapse-claude-8100" not in table.shown()


def test_a_brief_line_has_the_time_the_name_and_what_happened() -> None:
    event = {
        "id": 47, "event": "attention", "time": "2026-11-23T14:15:53.013Z", "agent": "synapse-dummy-8191", "task": "t",
        "data": {"id": "773e1e7f", "state": "opened", "question": "May\x1b[2J I?", "prompt_id": "p", "by": None},
    }  # fmt: skip
    brief = Lines(on_terminal=False, environ={}).brief(event, {"synapse-dummy-8191": "api"})
    assert re.fullmatch(r"\d\d:\d\d:\d\d api attention state=opened question=.*", brief)
    assert "\x1b" not in brief


@SIZES
@Q
async def test_lines_that_are_too_wide_are_cut_and_not_wrapped(daemon: FakeDaemon, size: tuple[int, int]) -> None:
    screen = "\n".join(f"row {number} " + "wide words " * 40 for number in range(100))
    daemon.agents = {"claude": agent("claude", screen=screen)}
    async with at_table(size) as table:
        await table.sees("row 99 wide words")
        pane = table.app.query_one("#screen")

        def fills_it() -> bool:
            """It is drawn again once it has got its size."""
            column, height = pane.region.x, pane.region.height
            beginnings = [line[column:].split("wide")[0].strip() for line in table.shown().splitlines()]
            rows = [one for one in beginnings if one.startswith("row ")]
            return height > size[1] // 3 and rows == [f"row {n}" for n in range(100 - height, 100)]

        await table.until(fills_it)


@Q
async def test_the_colours_are_the_terminals_own(daemon: FakeDaemon) -> None:
    async with at_table((80, 24)) as table:
        await table.sees("claude> ")
        assert table.app.native_ansi_color
        grounds = {
            segment.style.bgcolor.name
            for strip in table.app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None and segment.style.bgcolor is not None
        }
        assert grounds <= {"default"}


def test_of_a_large_screen_its_end_is_shown_in_the_colours_it_has() -> None:
    drawing = Drawing(home="")
    screen = "one\ntwo\n\x1b[0;31mthree\x1b[m\nfour\n\n\x1b[0;1m  \x1b[m\n"
    lines = drawing.screen(Shown("a", screen), 2)
    text = [Text.from_ansi(line) for line in lines]
    assert [one.plain for one in text] == ["three", "four"]
    assert str(text[0].spans[0].style) == "color(1)"
    assert not text[1].spans
    assert drawing.screen(Shown("a"), 5) == []


def test_of_a_screen_only_colours_are_left() -> None:
    assert only_colours("\x1b[1;38;2;1;2;3mx\x1b[0m\x1b[5Hy\x1b]8;;http://a\x1b\\z") == (
        "\x1b[1;38;2;1;2;3mx\x1b[0m\\x1b[5Hy\\x1b]8;;http://a\\x1b\\z"
    )


def test_without_textual_the_extra_is_named(ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapsectl.commands.top.has_tui", lambda: False)
    result = ctl("top")
    assert result.code == 6
    assert "pip install 'synapsed[tui]'" in result.err


def test_without_a_terminal_it_says_what_a_script_reads(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("top")
    assert result.code == 2
    assert "list --json" in result.err


def test_it_begins_with_whoever_is_meant(daemon: FakeDaemon) -> None:
    ctx = CommandContext(os.environ, CommandOutput(io.StringIO(), io.StringIO(), columns=None))
    assert named(ctx, daemon.agents["codex"].id) == "codex"
    tool = PtyTool("top", "nosuch", env={**os.environ, "TERM": "xterm"})
    try:
        assert tool.end() == 4
        assert b"nosuch" in tool.shown
    finally:
        tool.close()
