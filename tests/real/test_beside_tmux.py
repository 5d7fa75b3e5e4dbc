"""A person's terminal on a real program beside `tmux attach` on the same program: what is on their screens.

The same bytes of one program are drawn by both: tmux has them from the program's spool, by `tail`, which stands still
while the windows are resized.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.real.agents import EVERY, STARTS_S, RealAgent, StartAgent, nonce
from tests.support.daemon import eventually
from tests.support.seen import PATIENCE_S, Seen, after, same, shows

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is what they are compared with"),
]

PROGRAMS = os.environ.get("BESIDE_PROGRAMS", " ".join(EVERY)).split()
COLS, ROWS = 100, 32
SIZES = ((COLS - 20, ROWS), (COLS, ROWS + 8), (COLS + 11, ROWS - 9), (COLS, ROWS))
WIDTHS = ((COLS - 20, ROWS), (COLS, ROWS))
"""For gemini. It draws its last rows again from where they stand, and where they stand in a window of another height,
or when they need more of them, is up to the terminal: tmux brings rows down from above, this one adds some below."""
MINE = [f"mine {number}" for number in range(40)]


def rows_of(seen: Seen) -> list[str]:
    return [row.rstrip() for row in seen.lines]


def is_part(lines: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether all rows of a small terminal stand in as many rows of the large one, one below the other."""
    rows = [row.strip() for row in lines]
    at = range(len(whole) - len(rows) + 1)
    return any(rows) and any(all(row in above for row, above in zip(rows, whole[n:], strict=False)) for n in at)


class Beside:
    """Terminals of persons on one agent, ours and tmux's."""

    def __init__(self, agent: RealAgent, folder: Path) -> None:
        self.agent = agent
        self._env = {**os.environ, **agent.daemon.env, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self._tmux = ["tmux", "-u", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._open: list[Seen] = []
        self._player = 0

    def ours(self, *options: str, cols: int = COLS, rows: int = ROWS) -> Seen:
        argv = [sys.executable, "-m", "synapsectl", "attach", self.agent.name, *options]
        return self._seen([*after(MINE), *argv], cols, rows)

    def theirs(self) -> Seen:
        """A window of tmux of the program's size, and a terminal on it."""
        (spool,) = self.agent.daemon.home.rglob("*.seg")
        window = [*self._tmux, "new-session", "-d", "-x", str(COLS), "-y", str(ROWS)]
        player = f"stty raw -echo; exec tail -c +1 -f {spool}"
        options = [";", "set", "-sa", "terminal-features", "xterm*:RGB", ";", "set", "-g", "status", "off"]
        subprocess.run([*window, player, *options], env=self._env, check=True)
        asked = subprocess.run(
            [*self._tmux, "display-message", "-p", "#{pane_pid}"], env=self._env, check=True, capture_output=True
        )
        self._player = int(asked.stdout)
        return self._seen([*after(MINE), *self._tmux, "attach"], COLS, ROWS)

    def _seen(self, argv: list[str], cols: int, rows: int) -> Seen:
        seen = Seen(argv, self._env, cols, rows)
        self._open.append(seen)
        return seen

    def end(self) -> None:
        for seen in self._open:
            seen.close()
        subprocess.run([*self._tmux, "kill-server"], env=self._env, check=False, capture_output=True)

    def resize(self, ours: Seen, theirs: Seen, cols: int, rows: int) -> None:
        """tmux first, which plays nothing until the program has its size."""
        os.kill(self._player, signal.SIGSTOP)
        theirs.resize(cols, rows)
        size = f"{cols}x{rows}"
        asks = [*self._tmux, "display-message", "-p", "#{pane_width}x#{pane_height}"]
        eventually(
            lambda: (
                subprocess.run(asks, env=self._env, check=True, capture_output=True, text=True).stdout.strip() == size
            ),
            f"tmux has it {size}",
        )
        ours.resize(cols, rows)
        eventually(lambda: self.window == (cols, rows), f"the program has it {size}")
        os.kill(self._player, signal.SIGCONT)

    def looked_on(self, main: Seen) -> None:
        """Four smaller terminals and two larger ones show what `main` does, and have not changed the window."""
        small = [self.ours("--read-only", cols=50 + number, rows=9) for number in range(4)]
        large = [self.ours("--read-only", cols=COLS + 20, rows=ROWS + 7) for _ in range(2)]
        for seen in large:
            seen.until(lambda lines: [row.rstrip() for row in lines[:ROWS]] == rows_of(main), "the same, and more room")
        for seen in small:
            seen.until(lambda lines: is_part(lines, rows_of(main)), "a part of it")
        for seen in (*large, *small):
            seen.type(b"\x1d\x1d")
            assert seen.process.wait(PATIENCE_S) == 0
        assert self.window == (COLS, ROWS), "who only looks has not changed the window"

    @property
    def window(self) -> tuple[int, int]:
        found = self.agent.daemon.get(f"/agents/{self.agent.name}/screen?format=json").json
        return found["cols"], found["rows"]


@pytest.fixture
def beside(request: pytest.FixtureRequest, start_agent: StartAgent, tmp_path: Path) -> Iterator[Beside]:
    beside = Beside(start_agent(request.param), tmp_path)
    yield beside
    beside.end()


@pytest.mark.parametrize("beside", PROGRAMS, indirect=True)
def test_the_same_screen_in_every_size(beside: Beside) -> None:
    agent = beside.agent
    ours = beside.ours()
    eventually(lambda: beside.window == (COLS, ROWS), "the program has the terminal's size")
    theirs = beside.theirs()
    for answer in ("markup", "cjk", "lines200"):
        agent.ask_exactly(f"{nonce()} [[answer:{answer}]]")
    same(ours, theirs, ROWS)
    for cols, rows in WIDTHS if agent.name.startswith("gemini") else SIZES:
        beside.resize(ours, theirs, cols, rows)
        same(ours, theirs, rows)
        agent.ask_exactly(f"{nonce()} [[answer:short]]")
        same(ours, theirs, rows)
    beside.looked_on(ours)
    agent.daemon.kill9()
    ours.until(shows("the daemon is away"), "it is told")
    agent.daemon.start()
    agent.daemon.ready(agent.name, patience=STARTS_S)
    same(ours, theirs, ROWS)
    agent.ask_exactly(f"{nonce()} [[answer:short]]")
    same(ours, theirs, ROWS)
    ours.type(b"\x1d\x1d")
    theirs.type(b"\x02d")
    for seen in (ours, theirs):
        seen.until(shows("[detached"), "it has left")
        assert seen.process.wait(PATIENCE_S) == 0
    ours.until(shows(MINE[-1]), "what stood there is back")
    assert ours.everything[: len(MINE)] == MINE, "what stood there stands there again"
    assert "[detached" in ours.everything[-1], "and nothing else but how it ended"
