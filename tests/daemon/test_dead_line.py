"""A line that is dead while a person types into `attach NAME@HOST`: what comes late is not typed, and that is told."""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.parts.elsewhere.test_hosts_of_daemons import Box, box, here, is_up, sshs
from tests.support.daemon import Daemon, eventually
from tests.support.threaded import real_one
from tests.synapsectl.pty_tool import PtyTool

__all__ = ["box", "here"]

pytestmark = [pytest.mark.night, real_one]
LATE = "keys came late, and were dropped"


@contextmanager
def dead(daemon: Daemon) -> Iterator[None]:
    """The line forwards nothing, and keeps what it is given."""
    (ssh,) = sshs(daemon)
    os.kill(ssh, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(ssh, signal.SIGCONT)


BEAT = b"no word from there"
"""What the tool shows again each half second while a line is dead."""
LAST_BEATS = 3
"""One that it draws as the keys come, one as it takes them, and one that was not read yet."""
FOREVER = "import synapsectl.attachment as it; it.CLOSE_DEADLINE = 1e6"
"""Whatever the tool waits for as it leaves, it would wait for till the end of the test."""


@pytest.fixture
def tool(request: pytest.FixtureRequest, here: Daemon, box: Box) -> Iterator[PtyTool]:
    tool = PtyTool("attach", "dummy@box", env=here.env, before=getattr(request, "param", ""))
    tool.until(b"dummy>")
    tool.type(b"hello\r")
    tool.until(b"You said: hello")
    yield tool
    tool.close()


@pytest.mark.parametrize("tool", [FOREVER], indirect=True, ids=["waits are endless"])
def test_what_was_typed_over_a_dead_line_is_not_typed_once_the_person_has_left(
    here: Daemon, box: Box, tool: PtyTool
) -> None:
    with dead(here):
        tool.type(b"delete everything\r")
        tool.until(BEAT)
        tool.type(b"and more\r")
        beats = tool.shown.count(BEAT)
        tool.type(b"\x1d\x1d")
        assert tool.end() == 0, "it waits for no line"
        assert tool.shown.count(BEAT) - beats <= LAST_BEATS, "at once"
        tool.until(b"bytes that you typed may not have reached dummy")
    eventually(lambda: LATE in box.daemon.log(), "it came late")
    is_up(here)
    again = here.ctl("send", "dummy@box", "--wait", "still there?")
    assert again.code == 0, again.err
    shown = here.ctl("screen", "dummy@box").out
    assert "still there?" in shown
    assert "everything" not in shown
    assert "more" not in shown


def test_who_is_still_there_types_it_once(here: Daemon, box: Box, tool: PtyTool) -> None:
    with dead(here):
        tool.type(b"once\r")
        tool.until(b"no word from there")
        tool.type(b"twice\r")
    tool.until(b"You said: twice")
    shown = here.ctl("screen", "dummy@box").out
    assert (shown.count("You said: once"), shown.count("You said: twice")) == (1, 1)
    tool.type(b"\x1d\x1d")
    assert tool.end() == 0
    assert b"not known" not in tool.shown


def test_a_daemon_that_goes_while_the_line_is_dead(here: Daemon, box: Box, tool: PtyTool) -> None:
    """What was on its way is not typed, nor typed again; the person is told, and goes on."""
    with dead(here):
        tool.type(b"lost\r")
        tool.until(b"no word from there")
        box.daemon.kill9()
    box.daemon.start()
    is_up(here)
    eventually(lambda: "dummy" in here.ctl("list").out, "it is there again")
    tool.until(b" bytes that you typed may not have arrived")
    # The word that "hello" had got there may have been on its way, too.
    told = re.search(rb"\b(?:5|11) bytes that you typed may not have", tool.shown)
    assert told is not None
    eventually(lambda: tool.shown.rpartition(b"the daemon is away")[2].count(b"dummy>"), "it is attached again")
    tool.type(b"next\r")
    tool.until(b"You said: next")
    assert "lost" not in here.ctl("screen", "dummy@box").out
    tool.type(b"\x1d\x1d")
    assert tool.end() == 0
    assert told[0] in tool.shown.rpartition(b"\x1b[?1049l")[2], "on the person's own screen, too"


def test_whoever_has_no_way_any_more_leaves_at_once(here: Daemon, box: Box, tool: PtyTool) -> None:
    """The daemon over there hangs as it is asked for another terminal."""
    os.kill(box.daemon.pid, signal.SIGSTOP)
    try:
        here.kill9()
        here.start()
        tool.until(b"the daemon is away")
        begun = time.monotonic()
        tool.type(b"\x1d\x1d")
        assert tool.end() == 0
        assert time.monotonic() - begun < 4, "less than an attempt takes"
    finally:
        os.kill(box.daemon.pid, signal.SIGCONT)
