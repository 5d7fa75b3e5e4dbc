"""How far something is, on stderr: drawn over itself, only on a terminal, and gone when it is over."""

import io
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from synapsectl import progress
from synapsectl.progress import StatusLine
from synapsed.model.agent import Activity
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon
from tests.synapsectl.pty_tool import PtyTool


class TerminalText(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_moment_is_not_worth_a_word() -> None:
    now = [0.0]
    stream = TerminalText()
    line = StatusLine(stream, {"NO_COLOR": "1"}, now=lambda: now[0])
    line.show("starting")
    assert stream.getvalue() == ""
    now[0] = 1.2
    line.show("starting")
    now[0] = 65.0
    line.show("start\x1b[2Jing")
    assert stream.getvalue() == "\r\x1b[Kstarting 1s\r\x1b[Kstart\\x1b[2Jing 1m"
    line.clear()
    line.clear()
    assert stream.getvalue().endswith("1m\r\x1b[K")


def test_nothing_is_drawn_where_it_cannot_be() -> None:
    for stream, environ in ((io.StringIO(), {}), (TerminalText(), {"TERM": "dumb"})):
        line = StatusLine(stream, environ, now=iter([0.0, 9.0]).__next__)
        line.show("starting")
        line.clear()
        assert stream.getvalue() == ""


def test_a_verb_that_takes_its_time_says_so(daemon: FakeDaemon, home: Path) -> None:
    """A start whose agent does not come up at once is watched, and the line is gone when it does."""
    daemon.starts_as = {"drift": "this is 1.9", "activity": Activity.STARTING, "screen": ""}
    tool = PtyTool("start", "dummy", env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"})
    try:
        tool.until(b"waiting for dummy ")
        daemon.agents["dummy"] = daemon.agents["dummy"].model_copy(update={"activity": Activity.READY})
        assert tool.end() == 0
        assert b"\r\x1b[Ksynapsectl: dummy: this is 1.9" in tool.shown
    finally:
        tool.close()


def test_in_a_pipe_there_is_no_trace_of_it(daemon: FakeDaemon, home: Path) -> None:
    daemon.starts_as = {"drift": "this is 1.9", "activity": Activity.STARTING, "screen": ""}
    code = "import sys; from synapsectl.__main__ import main; sys.exit(main(['start', 'dummy']))"
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, check=False)
    assert done.returncode == 0
    assert b"\x1b" not in done.stderr + done.stdout
    assert b"waiting" not in done.stderr


HELD = """
import subprocess, time
from pathlib import Path
from synapsectl.commands import install
from synapsectl.service.systemd import Systemd

def held(*arguments, **options):
    while not Path({gate!r}).exists():
        time.sleep(0.01)
    return run(*arguments, **options)

run, subprocess.run, install.this_machines = subprocess.run, held, Systemd
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "said", "code"),
    [
        (("doctor", "--repair"), b"reading the database, and saving what it has ", 0),
        (("doctor",), b"looking ", None),
        (("install", "--dry-run"), b"reading the configuration, and asking the login shell ", 0),
    ],
)
def test_what_may_take_long_says_so(
    home: Path, tmp_path: Path, verb: tuple[str, ...], said: bytes, code: int | None
) -> None:
    gate = tmp_path / "gate"
    environ = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", "SHELL": "/bin/sh"}
    tool = PtyTool(*verb, before=HELD.format(gate=str(gate)), env=environ)
    try:
        tool.until(b"\r\x1b[K" + said)
        gate.touch()
        assert tool.end() == code or code is None
        assert b"s\r\x1b[K" in tool.shown, "the line is gone"
    finally:
        tool.close()


def test_with_json_nothing_of_it_is_said(daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(*arguments: object) -> None:
        raise AssertionError(arguments)

    monkeypatch.setattr(progress, "in_progress", said)
    assert ctl("stop", "claude", "--json").code == 0
    line = StatusLine(TerminalText(), {}, on=False, now=iter([0.0, 9.0]).__next__)
    assert not line.on
