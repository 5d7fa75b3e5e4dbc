"""Whatever a program writes, and whatever terminal somebody attaches with: viewers show what the daemon has."""

import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.test_attach_screens import COLS, ROWS, Seen, Stand, shows, stand
from tests.support.daemon import eventually

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

TEXTS = [
    "plain words ", "漢字かな交じり", "e\u0301a\u0308n\u0303", "👩‍👩‍👧‍👦👍🏽🇩🇪✈️", "שלום עולם مرحبا",
    "ทดสอบ नमस्ते", "─│┌┐└┘█▓", "\u200b\u200d\ufeff", "\u202eturned\u202c", "x" * 200, "\t", "\r\n", "\n", "\r",
    "\b", "\x07", "\x0e\x0f",
]  # fmt: skip
SEQUENCES = [
    "\x1b[{a};{b}H", "\x1b[{a}A", "\x1b[{b}B", "\x1b[{b}C", "\x1b[{a}D", "\x1b[{m}J", "\x1b[{m}K", "\x1b[{a}L",
    "\x1b[{a}M", "\x1b[{a}P", "\x1b[{a}@", "\x1b[{a}X", "\x1b[{a}S", "\x1b[{a}T", "\x1b[3{m}m", "\x1b[4{m};1m",
    "\x1b[38;2;{b};{a};9m", "\x1b[7m", "\x1b[m", "\x1b[{m};{b}r", "\x1b[r", "\x1bM", "\x1bD", "\x1b7", "\x1b8",
    "\x1b[?7l", "\x1b[?7h", "\x1b[?6h", "\x1b[?6l", "\x1b[?25l", "\x1b[?25h", "\x1b[?1049h", "\x1b[?1049l",
    "\x1b[?2026h", "\x1b[?2026l", "\x1b[4h", "\x1b[4l", "\x1b#8", "\x1b(0", "\x1b(B", "\x1b[{a} q",
    "\x1b[?1000h", "\x1b[?1000l", "\x1b[{a}b",
]  # fmt: skip
HOSTILE = [
    "\x1b]0;a title\x07", "\x1b]52;c;aGVsbG8=\x07", "\x1b]8;;file:///etc/passwd\x07link\x1b]8;;\x07",
    "\x1b[99999999C", "\x1b[{b};{a};{b};{a};{b};{a};{b}m", "\x1bP+q544e\x1b\\", "\x1b[21t", "\x1b]4;1;?\x07",
    "\x1b]104\x07", "\x1b[c", "\x1b[6n", "\x1b[?69h\x1b[3;20s", "\x1b[?69l", "\x1bc", "\x1b[!p", "\x1b[8;5;5t",
    "\x1b]1337;File=:AAAA\x07", "\x1b[?3h", "\x1b[?3l", "\x1bPq#0;2;0;0;0#0~~@@\x1b\\", "\x1b_Gf=24;AAAA\x1b\\",
    "\x9b31m", "\x1b[200~", "\x1b]unended", "\x1b[12",
]  # fmt: skip
OVER = "\x18\x1b\\\x1b[?2026l\x1b[?1049l\x1b[?69l\x1b[!p\x1b(B\x0f\x1b[r\x1b[m\x1b[?7h\x1b[?25h"
"""Ends what a stream may have left open, and nothing else."""


def stream(seed: int, number: int) -> bytes:
    """A stream that is the same for the same seed, with a mark on its last row but one."""
    chance = random.Random(seed)
    pieces = []
    for _ in range(number):
        kind = chance.choices((TEXTS, SEQUENCES, HOSTILE), (5, 5, 1))[0]
        numbers = {"a": chance.randint(0, 30), "b": chance.randint(0, 90), "m": chance.randint(0, 3)}
        pieces.append(chance.choice(kind).format(**numbers))
    whole = "".join(pieces).encode("utf-8", "surrogatepass")
    return whole + f"{OVER}\x1b[{ROWS - 3};1H\x1b[2K\x1b[3{seed % 7 + 1}mmark-{seed}.\x1b[m".encode()


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
    for seed in range(6):
        (file := files / str(seed)).write_bytes(stream(seed, 40 + seed * 20))
        main.type(f"@{file}\n".encode())
        for seen in (main, large, small):
            seen.until(shows(f"mark-{seed}."), f"stream {seed} is over")
        wanted = at_the_daemon(stand)
        shows_it(main, wanted, f"stream {seed} in a terminal of its size")
        shows_it(large, wanted, f"stream {seed} in a larger terminal")
        assert main.process.poll() is large.process.poll() is small.process.poll() is None


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


@pytest.mark.parametrize("term", ["vt100", "nobody-knows-it", None])
def test_terminals_of_every_name(stand: Stand, term: str | None) -> None:
    stand.start([sys.executable, "-S", "-c", PLAYER])
    stand.term = term
    seen = stand.attach()
    seen.until(shows("player>"), "it is drawn")
    seen.type(b"\x1d\x1d")
    seen.until(shows("[it:"), "it has left")
    assert seen.process.wait(60) == 0


def test_from_one_cell_to_many(stand: Stand) -> None:
    stand.start([sys.executable, "-S", "-c", PLAYER])
    seen = stand.attach(cols=1, rows=1)
    for cols, rows in ((1, 1), (2, 2), (500, 200), (1, 1), (COLS, ROWS)):
        seen.resize(cols, rows)
        eventually(lambda cols=cols: of_the_daemon(stand)["cols"] == cols, f"it is {cols} wide")  # type: ignore[misc]
        assert seen.process.poll() is None
    seen.until(lambda lines: lines[0].strip(), "what it printed is there, as it was wrapped")
    seen.type(b"\x1d\x1d")
    assert seen.process.wait(60) == 0
