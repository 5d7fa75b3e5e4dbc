"""Attached terminals beside `tmux attach` on the same program: what is on their screens."""

import os
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually
from tests.support.seen import PATIENCE_S, Seen, after, same, shows

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is what they are compared with")

COLS, ROWS = 70, 20

PROGRAM = r"""
import os, signal, sys, termios, tty
tty.setraw(0)
def draw(*_):
    cols, rows = os.get_terminal_size(0)
    out = ["\x1b[?1049h\x1b[2J\x1b[?25h"]
    for row in range(rows):
        text = f"{row:3d} \x1b[38;5;{row % 200}m" + ("漢字 text é " * cols)[: cols // 3] + "\x1b[m|"
        out.append(f"\x1b[{row + 1};1H{text}")
    out.append(f"\x1b[{rows};1H\x1b[7mlast {cols}x{rows}\x1b[m \x1b[{rows - 1};30H> ")
    os.write(1, "".join(out).encode())
signal.signal(signal.SIGWINCH, draw)
draw()
while True:
    try:
        key = os.read(0, 100)
    except InterruptedError:
        continue
    os.write(1, key)
"""
FULL = [sys.executable, "-S", "-c", PROGRAM]
SHELL = ["bash", "--norc", "--noprofile", "-i"]


class Stand:
    """The same program in a daemon and in a tmux."""

    def __init__(self, folder: Path) -> None:
        self.daemon = Daemon(folder, config=ANY_PORTS + "[attach]\nstatus = true\n").start()
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._env = {**os.environ, "TERM": "xterm-256color", "PS1": "$ "}
        self._open: list[Seen] = []
        self.term: str | None = "xterm-256color"
        """What the terminals that are attached with are called; None: nothing says so."""

    def start(self, program: list[str]) -> None:
        wanted = {"profile": "generic", "name": "it", "cwd": "/", "args": program, "env": {"PS1": "$ "}}
        assert self.daemon.post("/control/start", wanted).status == 200
        subprocess.run([*self._tmux, "new-session", "-d", "-x", "70", "-y", "20", *program], env=self._env, check=True)

    def attach(
        self,
        *options: str,
        cols: int = COLS,
        rows: int = ROWS,
        answers: bytes | None = None,
        behind: Sequence[str] = (),
    ) -> Seen:
        """`behind` are lines that stand in the terminal before."""
        env = {key: value for key, value in {**self._env, **self.daemon.env}.items() if key != "TERM"}
        env |= {"TERM": self.term} if self.term is not None else {}
        argv = [sys.executable, "-m", "synapsectl", "attach", "it", *options]
        seen = Seen([*after(behind), *argv], env, cols, rows, answers)
        self._open.append(seen)
        return seen

    def tmux(self, cols: int = COLS, rows: int = ROWS, behind: Sequence[str] = ()) -> Seen:
        seen = Seen([*after(behind), *self._tmux, "attach"], self._env, cols, rows)
        self._open.append(seen)
        return seen

    def tmux_around(self) -> Seen:
        """A tmux with colours of its own, in which a terminal is attached."""
        argv = ["env", *(f"{name}={value}" for name, value in self.daemon.env.items())]
        argv += [sys.executable, "-m", "synapsectl", "attach", "it"]
        style = [";", "set", "-s", "extended-keys", "on", ";", "set", "-g", "window-style", "fg=#101010,bg=#faf0e6"]
        seen = Seen([*self._tmux, "new-session", *argv, *style], self._env, COLS, ROWS)
        self._open.append(seen)
        return seen

    def press(self, key: str) -> None:
        """A key of the terminal around that tmux."""
        subprocess.run([*self._tmux, "send-keys", key], env=self._env, check=True)

    def end(self) -> None:
        for seen in self._open:
            seen.close()
        subprocess.run([*self._tmux, "kill-server"], env=self._env, check=False, capture_output=True)
        self.daemon.end()


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    stand = Stand(tmp_path)
    yield stand
    stand.end()


ANSWERS = b"\x1b]10;rgb:10/10/10\x07\x1b]11;rgb:fa/f0/e6\x07\x1b[6;23;11t\x1b[?0u\x1b[?62c"
ASKING = r"""
import os, sys, tty
tty.setraw(0)
os.write(1, b"\x1b]11;?\x07" if sys.argv[1:] else b"\x1b[?2031h>")
while key := os.read(0, 100):
    if key == b"?":
        os.write(1, b"\x1b]11;?\x07\x1b[16t\x1b[?u")
    elif key == b"k":
        os.write(1, b"\x1b[>1u")
    elif key == b"a":
        os.write(1, b"\x1b[>11u")
    elif key == b"m":
        os.write(1, b"\x1b[>4;2m")
    os.write(1, repr(key).encode() + b"\r\n>")
"""
"""A program that asks its terminal what it is like, and shows what it is told."""


MINE = [f"mine {number}" for number in range(30)]


@pytest.mark.night
def test_equal_size_and_resizes(stand: Stand) -> None:
    stand.start(FULL)
    ours, theirs = stand.attach(behind=MINE), stand.tmux(behind=MINE)
    for cols, rows in ((COLS, ROWS), (COLS - 20, ROWS), (COLS, ROWS + 5), (COLS + 9, ROWS - 6)):
        ours.resize(cols, rows)
        theirs.resize(cols, rows)
        for seen in (ours, theirs):
            seen.until(shows(f"last {cols}x{rows - 1}"), "the program has that size")
        same(ours, theirs, rows - 1)
    assert " it" in ours.lines[-1]
    ours.type(b"\x1d\x1d")
    theirs.type(b"\x02d")
    ours.until(lambda lines: shows("[detached")(lines) and shows(MINE[-1])(lines), "it has left")
    for seen in (ours, theirs):
        assert seen.process.wait(PATIENCE_S) == 0
    lines = ours.everything
    assert lines[: len(MINE)] == MINE, "what stood there stands there again"
    assert [line.split()[0] for line in lines[len(MINE) :]] == ["[it:", "[detached"], "and nothing else"


@pytest.mark.night
def test_six_more_that_look_on_from_smaller_and_larger_terminals(stand: Stand) -> None:
    stand.start(FULL)
    main = stand.attach()
    main.until(shows(f"last {COLS}x{ROWS - 1}"), "it is drawn")
    small = [stand.attach("--read-only", cols=30 + number, rows=8) for number in range(4)]
    large = [stand.attach("--read-only", cols=COLS + 20, rows=ROWS + 7) for _ in range(2)]
    main.type(b"typed")
    whole = main.until(shows("> typed"), "the keys are shown")
    for seen in large:
        seen.until(shows("> typed"), "a larger one has it too")
        assert seen.lines[: ROWS - 1] == whole[: ROWS - 1]
    for number, seen in enumerate(small):
        seen.until(shows("> typed"[: max(0, 30 + number - 29)] or "|"), "around the cursor")
        lines = seen.lines
        for row in lines[:7]:
            assert any(row.rstrip() and row.rstrip() in line for line in whole) or not row.strip(), lines
    sizes = {stand.daemon.get("/agents/it/screen?format=json").json["cols"]}
    assert sizes == {COLS}, "who only looks has not changed the window"


@pytest.mark.night
def test_looking_back_at_five_thousand_lines(stand: Stand) -> None:
    stand.start(SHELL)
    ours = stand.attach()
    ours.until(shows("$"), "its prompt")
    ours.type(b'for i in $(seq 1 5000); do echo -e "\\e[3$((i%8))mline $i\\e[m"; done; echo all\r')
    ours.until(shows("line 5000"), "it has printed")
    ours.until(lambda lines: "all" in lines, "all")
    ours.type(b"\x1d[")
    ours.until(lambda lines: "/ ? search" in lines[-1], "looking back")
    ours.type(b"g")
    first = ours.until(shows("line 17"), "its beginning")
    at = next(row for row, line in enumerate(first) if line == "line 1")
    assert [first[at + n] for n in range(10)] == [f"line {n + 1}" for n in range(10)]
    assert ours.cells(at)[0][1] == 1, "in its colour"
    ours.type(b"/line 2500\r")
    ours.until(lambda lines: lines[0] == "line 2500", "found")
    ours.type(b"q")
    ours.until(lambda lines: "all" in lines and " it" in lines[-1], "live again")
    ours.type(b"echo still he''re\r")
    ours.until(shows("still here"), "and typed at")


def test_the_daemon_is_killed_and_comes_back(stand: Stand) -> None:
    stand.start(SHELL)
    ours = stand.attach()
    ours.until(shows("$"), "its prompt")
    stand.daemon.kill9()
    ours.until(shows("the daemon is away"), "it is told")
    stand.daemon.start()
    ours.until(lambda lines: " it" in lines[-1], "it is back")
    ours.type(b"echo ag''ain\r")
    ours.until(lambda lines: "again" in lines, "the same shell")


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.night)])
def test_an_attached_terminal_that_is_told_to_end_gives_the_terminal_back(stand: Stand, number: int) -> None:
    stand.start(FULL)
    ours = stand.attach()
    ours.until(shows(f"last {COLS}x{ROWS - 1}"), "it is drawn")
    ours.process.send_signal(number)
    assert ours.process.wait(PATIENCE_S) == 128 + number
    ours.until(shows("[detached from it]"), "it says so")
    assert termios.tcgetattr(ours.slave) == ours.before
    snapshot = ours.screen.snapshot()
    assert not snapshot.alternate
    assert snapshot.cursor_visible
    again = stand.attach()
    again.until(shows(f"last {COLS}x{ROWS - 1}"), "the agent has gone on")


@pytest.mark.night
def test_one_that_is_killed_leaves_the_agent_and_the_others_alone(stand: Stand) -> None:
    stand.start(FULL)
    ours, other = stand.attach(), stand.attach("--read-only", cols=40, rows=10)
    ours.until(shows(f"last {COLS}x{ROWS - 1}"), "it is drawn")
    other.until(shows(">"), "it looks on")
    ours.process.kill()
    ours.process.wait(PATIENCE_S)
    again = stand.attach()
    again.until(shows(f"last {COLS}x{ROWS - 1}"), "the agent has gone on")
    again.type(b"xyz")
    again.until(shows("> xyz"), "it is typed at")
    other.until(shows("|"), "and still seen")


def test_a_program_is_told_what_the_terminal_is_like_and_gets_its_keys(stand: Stand) -> None:
    stand.start([sys.executable, "-S", "-c", ASKING])
    ours = stand.attach(cols=100, answers=ANSWERS)
    ours.until(shows("997;2n"), "it heard that the terminal is light")
    ours.type(b"?")
    lines = ours.until(lambda lines: "[?0u" in "".join(lines), "it was answered")
    text = "".join(lines)
    assert "]11;rgb:fafa/f0f0/e6e6" in text
    assert "[6;23;11t" in text
    asks = [sys.executable, "-S", "-c", ASKING, "at once"]
    wanted = {"profile": "generic", "name": "next", "cwd": "/", "args": asks}
    assert stand.daemon.post("/control/start", wanted).status == 200
    next_one = eventually(
        lambda: shown if b"rgb:" in (shown := stand.daemon.get("/agents/next/screen").body) else None, "told"
    )
    assert b"rgb:fafa/f0f0/e6e6" in next_one, "what begins is told of the terminal that was there last"
    ours.type(b"k")
    ours.until(shows("b'k'"), "it has asked for the keys")
    assert b"\x1b[>1u" in ours.raw
    ours.type(b"\x1b[13;2u")
    ours.until(shows("[13;2u"), "Shift+Enter")
    other = stand.attach("--read-only", cols=100)
    other.until(shows("[13;2u"), "the same screen")
    assert b"\x1b[=1;1u" in other.raw, "the flags are of the screen"
    ours.type(b"\x1d\x1d")
    ours.until(shows("[detached from it]"), "it has left")
    assert b"\x1b[<99u" in ours.raw.rpartition(b"13;2u")[2]
    assert ours.process.wait(PATIENCE_S) == 0


@pytest.mark.night
def test_what_a_tmux_around_it_answers_gets_to_the_program(stand: Stand) -> None:
    stand.start([sys.executable, "-S", "-c", ASKING])
    around = stand.tmux_around()
    around.until(shows("997;2n"), "it heard that the terminal is light")
    around.type(b"?")
    around.until(lambda lines: "]11;rgb:fafa/f0f0/e6e6" in "".join(lines), "the pane's own colour")


@pytest.mark.night
def test_extended_keys_of_a_tmux_around_it_get_to_the_program(stand: Stand) -> None:
    stand.start([sys.executable, "-S", "-c", ASKING])
    around = stand.tmux_around()
    around.until(shows("997;2n"), "it heard that the terminal is light")
    around.type(b"?")
    around.until(lambda lines: "b'?'" in "".join(lines), "it has asked")
    assert "[?0u" not in "".join(around.lines), "this tmux does not speak the kitty keyboard protocol"
    around.type(b"m")
    around.until(shows("b'm'"), "it has asked for the keys")
    stand.press("S-Enter")
    forms = ("[13;2u", "[27;2;13~")  # the second one since tmux 3.5
    around.until(lambda lines: any(form in "".join(lines) for form in forms), "Shift+Enter")
    stand.press("C-]")
    stand.press("C-]")
    around.until(shows("[exited]"), "the keys that detach are found in that form too")


@pytest.mark.night
def test_the_keyboard_is_each_agents_own(stand: Stand) -> None:
    stand.start([sys.executable, "-S", "-c", ASKING])
    wanted = {"profile": "generic", "name": "plain", "cwd": "/", "args": [sys.executable, "-S", "-c", ASKING]}
    assert stand.daemon.post("/control/start", wanted).status == 200
    ours = stand.attach(cols=100, answers=ANSWERS)
    ours.until(shows("997;2n"), "it heard that the terminal is light")
    ours.type(b"a")
    ours.until(shows("b'a'"), "it has asked for every key, pressed and let go")
    assert ours.keyboard == 11
    ours.type(b"\x1b[57442;5u\x1b[93;5u\x1b[93;5:3u\x1b[57442;1:3u\x1b[110u")
    ours.until(lambda lines: " plain" in lines[-1] and not shows("b'a'")(lines), "the next agent")
    ours.until(shows("997;2n"), "that one heard the same")
    ours.type(b"\x1b[110;1:3u.")
    shown = ours.until(shows("b'.'"), "a key")
    assert "110" not in "".join(shown), "that the key was let go is nothing for this one"
    assert ours.keyboard == 0
    ours.type(b"\x1dn")
    ours.until(lambda lines: " it" in lines[-1] and shows("b'a'")(lines), "the first one")
    assert ours.keyboard == 11
    assert "57442;5u" in "".join(ours.lines), "what is not for attach is the program's"
    ours.process.send_signal(signal.SIGTERM)
    ours.until(shows("[detached from it]"), "it has left")
    assert ours.keyboard == 0
