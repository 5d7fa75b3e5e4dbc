"""A person attached to `NAME@HOST` over a real ssh, whose wire is cut in silence; and windows of every size over it."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from synapsed.api.attached_terminals import UNREAD_S
from tests.support.daemon import NO_PORTS, PATIENCE_S, Daemon, eventually
from tests.support.namespaces import NETWORK, Housed, inside, needs_namespaces, two_houses
from tests.support.sshd import Sshd, needs_ssh, synapsectl_in
from tests.synapsectl.pty_tool import PtyTool

pytestmark = [needs_namespaces, needs_ssh, pytest.mark.system, pytest.mark.night, pytest.mark.timeout(10 * PATIENCE_S)]

OWN = (120, 40)
"""Columns and rows of a window that nobody has."""
LONG_S = 180.0
"""For ssh to give up a line, and to have another one."""


@dataclass
class Line:
    """The daemon that the person is at, the other machine's, and the wire between them."""

    here: Daemon
    there: Daemon
    house: int

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Nobody says goodbye, and what was sent meanwhile is sent again afterwards."""
        inside(self.house, "ip", "link", "set", "wire1", "down")
        try:
            yield
        finally:
            inside(self.house, "ip", "link", "set", "wire1", "up")

    @property
    def host(self) -> dict[str, Any]:
        (found,) = self.here.get("/hosts").json
        return dict(found)

    def is_up(self) -> None:
        eventually(lambda: self.host["state"] == "up", "the host is up", patience=LONG_S)

    def has_size(self, size: tuple[int, int], patience: float = PATIENCE_S) -> None:
        def seen() -> bool:
            screen = self.there.get("/agents/dummy/screen?format=json").json
            return bool((screen["cols"], screen["rows"]) == size)

        eventually(seen, f"the program's window is {size}", patience=patience)

    @contextmanager
    def attached(self, **options: Any) -> Iterator[PtyTool]:
        tool = PtyTool("attach", "dummy@box", env=self.here.env, **options)
        try:
            yield tool
        finally:
            tool.close()


@pytest.fixture(params=[False], ids=["patient"])
def line(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Line]:
    """`hasty`: ssh gives a dead line up within seconds, instead of 45."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    with two_houses() as (near, far):
        there = Housed(tmp_path / "there", config=NO_PORTS, house=far).start()
        environ = f"SYNAPSED_HOME={there.home} SYNAPSED_A2A_HOME={there.home}/a2a"
        sshd = Sshd(tmp_path, f"{NETWORK}.2", environ, within=["nsenter", f"--net=/proc/{far}/ns/net"])
        sshd.prepare()
        sshd.trust()
        sshd.start()
        ssh = sshd.ssh if request.param else sshd.plain
        here = Housed(tmp_path / "here", config=f'{NO_PORTS}[hosts]\nname = "l"\nssh = {ssh}\n', house=near).start()
        try:
            there.start_agent()
            target = f"ssh://root@{NETWORK}.2"
            added = here.ctl("host", "add", "box", target, "--synapsectl", str(synapsectl_in(tmp_path)))
            assert added.code == 0, added.err
            line = Line(here, there, far)
            line.is_up()
            yield line
        finally:
            assert here.end() == 0
            sshd.stop()
            assert there.end() == 0


hasty = pytest.mark.parametrize("line", [True], indirect=True, ids=["hasty"])


def greet(tool: PtyTool) -> None:
    tool.until(b"dummy>")
    tool.type(b"hello\r")
    tool.until(b"You said: hello")


def test_what_was_typed_over_a_cut_wire_is_not_typed_once_the_person_has_left(line: Line) -> None:
    with line.attached() as tool:
        greet(tool)
        with line.cut():
            tool.type(b"delete everything\r")
            tool.until(b"no word from there")
            tool.type(b"and more\r")
            tool.type(b"\x1d\x1d")
            assert tool.end() == 0, "it waits for no line"
            tool.until(b"bytes that you typed may not have reached dummy")
    eventually(lambda: "keys came late, and were dropped" in line.there.log(), "it came late", patience=LONG_S)
    line.is_up()
    again = line.here.ctl("send", "dummy@box", "--wait", "still there?")
    assert again.code == 0, again.err
    shown = line.there.ctl("screen", "dummy").out
    assert "still there?" in shown
    assert "everything" not in shown
    assert "more" not in shown


def test_who_is_still_there_types_it_once(line: Line) -> None:
    with line.attached() as tool:
        greet(tool)
        with line.cut():
            tool.type(b"once\r")
            tool.until(b"no word from there")
            tool.type(b"twice\r")
        tool.until(b"You said: twice")
        shown = line.there.ctl("screen", "dummy").out
        assert (shown.count("You said: once"), shown.count("You said: twice")) == (1, 1)
        tool.type(b"\x1d\x1d")
        assert tool.end() == 0
        assert b"not known" not in tool.shown


@hasty
def test_a_line_that_ssh_gives_up(line: Line) -> None:
    """The window of who is behind it is let go of over there; they are told, and go on by the next line."""
    with line.attached(rows=5, cols=100) as tool:
        greet(tool)
        line.has_size((100, 5))
        with line.cut():
            tool.type(b"lost\r")
            tool.until(b"no word from there")
            line.has_size(OWN, patience=PATIENCE_S + UNREAD_S)
            eventually(lambda: line.host["state"] == "down", "ssh has noticed", patience=LONG_S)
        line.is_up()
        line.has_size((100, 5), patience=LONG_S)
        tool.type(b"\x15next\r")
        tool.until(b"You said: next")
        assert "lost" not in line.there.ctl("screen", "dummy").out
        tool.type(b"\x1d\x1d")
        assert tool.end() == 0
        assert b"bytes that you typed may not have" in tool.shown.rpartition(b"\x1b[?1049l")[2]
    line.has_size(OWN)


def _leaves(tool: PtyTool) -> None:
    tool.type(b"\x1d\x1d")
    assert tool.end() == 0


def _is_killed(tool: PtyTool) -> None:
    tool.process.kill()
    tool.process.wait(PATIENCE_S)


def _is_hung_up(tool: PtyTool) -> None:
    tool.process.send_signal(signal.SIGHUP)
    assert tool.end() == 128 + signal.SIGHUP


@dataclass(frozen=True, slots=True, kw_only=True)
class FarWindow:
    """A terminal that a person attaches with over the line."""

    name: str
    sizes: tuple[tuple[int, int], ...]
    """One after the other: columns and rows."""
    seen: tuple[int, int]
    leaves: Callable[[PtyTool], None] = _leaves


WINDOWS = (
    FarWindow(name="one cell", sizes=((1, 1),), seen=(20, 5)),
    FarWindow(name="narrower than the prompt", sizes=((3, 24),), seen=(20, 24)),
    FarWindow(name="no size", sizes=((0, 0),), seen=(80, 24)),
    FarWindow(name="10,000 columns", sizes=((10_000, 24),), seen=(1000, 24)),
    FarWindow(
        name="200 sizes at once",
        sizes=(*((20 + 7 * n % 180, 5 + 5 * n % 60) for n in range(200)), (77, 33)),
        seen=(77, 33),
    ),
    FarWindow(name="killed in a narrow one", sizes=((2, 2),), seen=(20, 5), leaves=_is_killed),
    FarWindow(name="hung up in a narrow one", sizes=((2, 2),), seen=(20, 5), leaves=_is_hung_up),
)


def test_windows_over_the_line(line: Line) -> None:
    """Each is the program's as one here would be, and its own again afterwards; a message is answered exactly."""
    for window in WINDOWS:
        (cols, rows), *more = window.sizes
        with line.attached(rows=rows, cols=cols) as tool:
            tool.until(b"\x1b[?1049h")
            for one in more:
                tool.resize(one[1], one[0])
                tool.process.send_signal(signal.SIGWINCH)
            line.has_size(window.seen)
            sent = line.here.ctl("send", "dummy@box", "--wait", "--", "echo narrow")
            assert (sent.code, sent.out) == (0, "narrow\n"), (window.name, sent)
            window.leaves(tool)
        line.has_size(OWN)
