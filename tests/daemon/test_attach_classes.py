"""Whatever a program writes, and whatever terminal somebody attaches with: viewers show what the daemon has."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from synapsed.pty.window import bounded
from tests.daemon.test_attach_screens import COLS, ROWS, Stand, stand
from tests.support.daemon import eventually
from tests.support.hostile_output import stream
from tests.support.seen import Seen, shows

__all__ = ["stand"]

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is what they are compared with")

PLAYER = r"""
import os, sys, tty
tty.setraw(0)
os.write(1, b"player>")
while line := sys.stdin.readline():
    with open(line.strip().rpartition("@")[2], "rb") as file:  # behind what it was answered
        while data := file.read(4096):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
"""
"""Writes the files whose names it is given."""

SEEDS = (0, 1, 2, 3, 4, 10)
"""Of streams. 10 has a control character in UTF-8; `test_statusline` has more streams."""


def of_the_daemon(stand: Stand) -> dict[str, Any]:
    """The screen as the daemon has it."""
    found: dict[str, Any] = stand.daemon.get("/agents/it/screen?format=json").json
    return found


def at_the_daemon(stand: Stand) -> list[str]:
    return [line.rstrip() for line in of_the_daemon(stand)["lines"]]


def upper(seen: Seen, rows: int = ROWS - 1) -> list[str]:
    return [line.rstrip() for line in seen.lines[:rows]]


def shows_it(seen: Seen, wanted: list[str], what: str) -> None:
    told = "\n".join((f"{what}; the daemon has:", *wanted, "--- it shows:"))
    seen.until(lambda _: upper(seen, len(wanted)) == wanted, told)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "streams"
    folder.mkdir()
    return folder


def test_every_viewer_shows_what_the_daemon_has(stand: Stand, files: Path) -> None:
    stand.start([sys.executable, "-S", "-c", PLAYER])
    main = stand.attach()
    main.until(shows("player>"), "it is drawn")
    large = stand.attach("--read-only", cols=COLS + 30, rows=ROWS + 11)
    small = stand.attach("--read-only", cols=21, rows=6)
    for seed in SEEDS:
        (file := files / str(seed)).write_bytes(stream(seed, 40 + seed * 20, ROWS - 3))
        main.type(f"@{file}\n".encode())
        for seen in (main, large, small):
            seen.until(shows(f"mark-{seed}."), f"stream {seed} is over")
        wanted = at_the_daemon(stand)
        shows_it(main, wanted, f"stream {seed} in a terminal of its size")
        shows_it(large, wanted, f"stream {seed} in a larger terminal")
        for seen in (main, large):
            seen.until(lambda lines: lines[-1].startswith(" it "), f"the status line stands after stream {seed}")
        assert main.process.poll() is large.process.poll() is small.process.poll() is None


@pytest.mark.night
def test_more_than_anybody_reads(stand: Stand, files: Path) -> None:
    """Five megabytes at once: the end of it stands there, in terminals of every size."""
    stand.start([sys.executable, "-S", "-c", PLAYER])
    main, small = stand.attach(), stand.attach("--read-only", cols=33, rows=7)
    main.until(shows("player>"), "it is drawn")
    line = "漢字 \x1b[31mred\x1b[m and on\r\n".encode()
    (files / "long").write_bytes(line * (5_000_000 // len(line)) + b"the end")
    main.type(f"@{files / 'long'}\n".encode())
    for seen in (main, small):
        seen.until(shows("the end"), "all is read")
    assert upper(main) == at_the_daemon(stand)


@pytest.mark.night
@pytest.mark.parametrize("term", ["vt100", "nobody-knows-it", None])
def test_terminals_of_every_name(stand: Stand, term: str | None) -> None:
    stand.start([sys.executable, "-S", "-c", PLAYER])
    stand.term = term
    seen = stand.attach()
    seen.until(shows("player>"), "it is drawn")
    seen.type(b"\x1d\x1d")
    seen.until(shows("[it:"), "it has left")
    assert seen.process.wait(60) == 0


@pytest.mark.night
def test_from_one_cell_to_many(stand: Stand) -> None:
    stand.start([sys.executable, "-S", "-c", PLAYER])
    seen = stand.attach(cols=1, rows=1)
    for cols, rows in ((1, 1), (2, 2), (500, 200), (1, 1), (COLS, ROWS)):
        seen.resize(cols, rows)
        wide, _ = bounded(cols, rows)
        eventually(lambda wide=wide: of_the_daemon(stand)["cols"] == wide, f"it is {wide} wide")  # type: ignore[misc]
        assert seen.process.poll() is None
    seen.until(lambda lines: lines[0].strip(), "what it printed is there, as it was wrapped")
    seen.type(b"\x1d\x1d")
    assert seen.process.wait(60) == 0
