"""A screen of our own: what is written makes it show what it should, and the terminal is given back."""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsectl.fullscreen import FullScreen, changed_lines
from synapsed.model.task import Task
from synapsed.terminal.emulated_screen import Screen
from tests.support.pane import Pane
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon, agent, permission
from tests.synapsectl.pty_tool import PtyTool
from tests.synapsectl.test_inbox_model import item

COLS, ROWS = 12, 5
LINES = st.lists(st.text("ab 日", max_size=COLS // 2), max_size=ROWS)


@given(st.lists(LINES, min_size=1, max_size=5))
def test_what_is_written_leads_from_one_picture_to_the_next(pictures: list[list[str]]) -> None:
    screen = Screen(COLS, ROWS)
    screen.feed(b"what was here before " * 20 + b"\x1b[?7l")
    before = None
    for picture in pictures:
        screen.feed(changed_lines(before, picture).encode())
        shown = [line.rstrip() for line in screen.snapshot().lines]
        assert shown == [line.rstrip() for line in picture] + [""] * (ROWS - len(picture))
        before = picture


def test_a_line_as_wide_as_the_screen_is_whole() -> None:
    screen = Screen(COLS, ROWS)
    screen.feed(b"\x1b[?7l" + changed_lines(None, ["x" * COLS, "y"]).encode())
    assert screen.snapshot().lines[:2] == ("x" * COLS, "y")


def test_what_stays_is_not_written_again() -> None:
    assert changed_lines(["a", "b"], ["a", "b"]) == ""
    assert "a" not in changed_lines(["a", "b"], ["a", "c"])


def test_a_key_that_comes_after_a_picture_was_pressed_for_that_picture() -> None:
    main, side = os.openpty()
    try:
        with FullScreen(side) as screen:
            list(screen.pressed(0))
            began = time.monotonic()
            screen.draw(["a question"])
            os.write(main, b"y")
            assert list(screen.pressed(60)) == [b"y"]
            assert screen.pressed_at >= began
            os.write(main, b"n")
            screen.draw(["another question"])
            drawn = time.monotonic()
            assert list(screen.pressed(60)) == [b"n"]
            assert screen.pressed_at < drawn, "it was pressed for the one before"
    finally:
        os.close(main)
        os.close(side)


@pytest.fixture
def watching(daemon: FakeDaemon) -> Iterator[PtyTool]:
    tool = PtyTool("list", "--watch", env={**os.environ, "TERM": "xterm"})
    tool.until(b"codex")
    yield tool
    tool.close()


@pytest.mark.parametrize("keys", [b"q", b"\x1b", b"\x03"])
def test_list_watch_ends_by_a_key(watching: PtyTool, keys: bytes) -> None:
    watching.type(keys)
    assert watching.end() == (130 if keys == b"\x03" else 0)
    assert b"\x1b[?1049l" in watching.shown
    assert watching.shown.rindex(b"\x1b[?25h") > watching.shown.rindex(b"\x1b[?25l")


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_list_watch_gives_the_terminal_back_when_it_is_told_to_end(watching: PtyTool, signum: int) -> None:
    watching.process.send_signal(signum)
    assert watching.end() == 128 + signum
    assert b"\x1b[?1049l" in watching.shown


WATCHED = """
import os, sys, threading
from synapsectl.__main__ import main
from synapsectl.live import Live

started, stopped = [], []
start, stop = Live.start, Live.stop
Live.start = lambda live: (started.append(live), start(live))[1]
Live.stop = lambda live: (stopped.append(live), stop(live))[1]
main(sys.argv[1:])
print("left" if started and stopped == started[::-1] else f"{started} {stopped}")
raise SystemExit
"""


@pytest.mark.parametrize("verb", [["list", "--watch"], ["inbox"]])
def test_nothing_reads_on_when_it_is_left(daemon: FakeDaemon, verb: list[str]) -> None:
    """An attach goes on after them in the same process."""
    tool = PtyTool(*verb, before=WATCHED, env={**os.environ, "TERM": "xterm"})
    try:
        tool.until(b"nobody needs you" if verb == ["inbox"] else b"codex")
        tool.type(b"q")
        assert tool.end() == 0
        assert b"left" in tool.shown
    finally:
        tool.close()


def test_list_watch_ends_with_its_window(daemon: FakeDaemon) -> None:
    tool = PtyTool("list", "--watch", env={**os.environ, "TERM": "xterm"}, read=False)
    try:
        daemon.until(lambda: any(path.startswith("/agents") for _, path, _ in daemon.requests))
        tool.hang_up()
        assert tool.process.wait(60) in (128 + signal.SIGHUP, -signal.SIGHUP)
    finally:
        tool.close()


def test_a_frozen_window_keeps_nobody_from_ending(daemon: FakeDaemon) -> None:
    daemon.agents = {f"a{n}": agent(f"a{n}", port=8100 + n) for n in range(60)}
    tool = PtyTool("list", "--watch", env={**os.environ, "TERM": "xterm"}, rows=60, cols=200, read=False)
    try:
        daemon.until(lambda: any(path.startswith("/agents") for _, path, _ in daemon.requests))
        tool.process.send_signal(signal.SIGTERM)
        assert tool.process.wait(60) == 128 + signal.SIGTERM
    finally:
        tool.close()


def typed_ahead(tool: PtyTool) -> bytes:
    """What the person's shell is left when the tool has ended."""
    assert tool.end() == 0
    return os.read(tool.slave, 100) if select.select([tool.slave], [], [], 0)[0] else b""


@pytest.mark.parametrize("verb", [["list", "--watch"], ["inbox"]])
def test_what_is_typed_behind_the_key_that_leaves_is_for_the_shell(daemon: FakeDaemon, verb: list[str]) -> None:
    tool = PtyTool(*verb, env={**os.environ, "TERM": "xterm"})
    try:
        tool.until(b"nobody needs you" if verb == ["inbox"] else b"codex")
        tool.type(b"\x1b[Bjqls\n")
        assert typed_ahead(tool) == b"ls\n"
    finally:
        tool.close()


def test_what_is_typed_while_an_answer_is_under_way_is_for_the_shell(daemon: FakeDaemon, ctl: Ctl) -> None:
    task = ctl("send", "claude", "x").out.strip()
    daemon.agents["claude"] = agent("claude", port=8100, activity="waiting", prompt=permission(), task=task)
    daemon.inbox = [item("claude", task=task, prompt_id="p1")]
    asked, taken = threading.Event(), threading.Event()

    def take(_: FakeDaemon, __: Task) -> None:
        asked.set()
        assert taken.wait(60)

    daemon.on_answer = take
    tool = PtyTool("inbox", env={**os.environ, "TERM": "xterm"})
    try:
        tool.until(b"y yes")
        tool.type(b"yq")
        assert asked.wait(60)
        tool.until(b"\x1b[?1049l")
        tool.type(b"ls\n")
        taken.set()
        assert typed_ahead(tool) == b"ls\n"
    finally:
        taken.set()
        tool.close()


@pytest.fixture
def pane(home: Path) -> Iterator[Pane]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with Pane(home, {"SYNAPSED_HOME": str(home), "PATH": path, "HOME": "/work"}) as pane:
        yield pane


def test_list_watch_as_a_person_sees_it(daemon: FakeDaemon, pane: Pane) -> None:
    pane.run("synapsectl", "list", "--watch")
    shown = pane.until("claude", "codex")
    assert shown.splitlines()[0].split() == ["NAME", "STATE", "FOR", "WHAT", "FOLDER"]
    assert pane.says("#{alternate_on} #{cursor_flag}") == "1 0"
    daemon.agents["codex"] = agent("codex", port=8120, activity="waiting", asks="Run rm -rf build?", held="dialog")
    shown = pane.until("Run rm -rf build?")
    assert shown.splitlines()[1].startswith("codex"), "who asks comes first"
    pane.resize(50, 3)
    pane.until("and 1 more", gone=["claude"])
    pane.resize(120, 10)
    pane.until("claude", "~/space", gone=["and 1 more"])
    pane.press("C-z")
    pane.until("Stopped", "shell$")
    assert pane.says("#{alternate_on} #{cursor_flag} #{wrap_flag}") == "0 1 1"
    pane.run("fg")
    pane.until("Run rm -rf build?", "FOLDER", gone=["Stopped"])
    daemon.die()
    pane.until("no daemon is running", "claude")
    daemon.start()
    pane.until("claude", gone=["no daemon"])
    pane.press("C-c")
    pane.when(lambda shown: shown.rstrip().endswith("shell$"), "the shell is back")
    pane.type("echo code=$?\n")
    pane.until("code=130")
    assert pane.says("#{alternate_on} #{cursor_flag} #{wrap_flag}") == "0 1 1"


def test_it_needs_no_call_that_only_linux_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.pipe2", raising=False)
    outer, inner = os.openpty()
    with FullScreen(inner) as screen:
        for _ in range(100_000):  # more than the pipe holds: nothing waits for a reader
            screen.wake()
        assert list(screen.pressed(0)) == []
    os.close(inner)
    os.close(outer)
