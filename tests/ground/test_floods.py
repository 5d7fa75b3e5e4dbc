"""Programs that flood their terminal, each with something else: whoever ends or interrupts one does not wait for what
it writes, others are answered meanwhile, and after `restart` it answers exactly."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, Reached, living_somewhere
from tests.support.daemon import PATIENCE_S, Ctl, eventually

pytestmark = [pytest.mark.night, pytest.mark.timeout(10 * PATIENCE_S)]

FLOODED_BYTES = 4 << 20
"""Written before anything is done about it: more than is drawn by then of what is dear."""

BOUND_S = PATIENCE_S
"""For a verb: the seconds are in `make bench`; here it must only not hang on all that waits to be drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """What is written once, and then again and again."""

    name: str
    first: bytes = b""
    again: bytes
    ours: bool = True
    """False: the issue has it."""


FLOODS = (
    Flood(
        name="repeats",
        again=b"X\x1b[9999999b\x1b[99999S\x1b[99999L\x1b[2J\x1b[3J\x1b[8;9999;9999t\x1b[?3h\x1b[99999P\x1b[99999@",
        ours=False,
    ),
    Flood(name="sixel", again=b'\x1bPq"1;1;30000;30000#1!30000~$-!30000~\x1b\\', ours=False),
    Flood(name="the clipboard", again=b"\x1b]52;c;ZXZpbA==\x07\x1b]5522;x\x07\x1b]1337;Copy=:ZXZpbA==\x07", ours=False),
    Flood(name="titles", again=b"\x1b]0;title\x07\x1b]2;another\xe2\x80\xae\x07\x1b]1;icon\x07\x1b[22t\x1b[23t"),
    Flood(name="bells", again=b"\x07"),
    Flood(name="notifications", again=b"\x1b]9;told\x07\x1b]777;notify;title;body\x07\x1b]99;i=1;told\x1b\\"),
    Flood(name="progress, and states", again=b"\x1b]9;4;1;50\x07\x1b]7501;state=busy\x07\x1b]133;A\x07\x1b]133;C\x07"),
    Flood(name="a DCS that never ends", first=b"\x1bP1;2;3q", again=b"#0;2;0;0;0!9999~-"),
    Flood(name="an APC that never ends", first=b"\x1b_Ga=T,f=24,s=9999,v=9999;", again=b"QUJD"),
    Flood(name="an OSC that never ends", first=b"\x1b]0;", again=b"A"),
    Flood(name="a CSI that never ends", first=b"\x1b[", again=b"1;"),
    Flood(name="hyperlinks of a megabyte", again=b"\x1b]8;;http://a/" + b"a" * (1 << 20) + b"\x07x\x1b]8;;\x07"),
    Flood(name="marks on one letter", first=b"e", again=b"\xcc\x81"),
    Flood(name="joined figures", first=b"\xf0\x9f\x91\xa8", again=b"\xe2\x80\x8d\xf0\x9f\x91\xa9"),
    Flood(name="cursor reports", again=b"\x1b[6n\x1b[c\x1b[?6n\x1b]11;?\x07\x1bP$qm\x1b\\"),
    Flood(name="the other screen, and back", again=b"\x1b[?1049hx\x1b[?1049l"),
    Flood(name="a frame that never ends", first=b"\x1b[?2026h", again=b"never shown \r\n"),
    Flood(name="frames of nothing", again=b"\x1b[?2026h\x1b[?2026l"),
    Flood(name="NUL bytes", again=b"\0"),
    Flood(name="carriage returns", again=b"x\r"),
    Flood(name="bytes that are no UTF-8", again=b"\xff\xfe\xc3\xc0\x80\xed\xa0\x80\xf8"),
    Flood(name="one line that never ends", again=b"x"),
    Flood(name="tabs and backspaces", again=b"\t\t\b\b\x1bH\x1b[3g"),
    Flood(name="resets", again=b"\x1bc\x1b[!p\x1b#8"),
    Flood(
        name="modes of the mouse and of the keyboard",
        again=b"\x1b[?1000;1003;1006h\x1b[>31u\x1b[<u\x1b[?2004h\x1b[?2004l",
    ),
    Flood(name="prompts", again=b"\rDo you want to proceed? (y/n) \r\n\x1b[2J\x1b[H"),
)

VERBS = ("stop", "kill", "restart", "cancel")


@pytest.fixture(scope="module")
def person(installed: Installed) -> Iterator[Person]:
    """One whose daemon runs, with another agent beside the one that floods."""
    with living_somewhere(installed) as person:
        person.with_dummy("d")
        yield person


def written(person: Person, agent: str) -> int:
    """The end of its output: the segments of its spool are named by their offsets, and the oldest go."""
    end = 0
    for file in (person.state / "agents" / agent / "spool").iterdir():
        with contextlib.suppress(FileNotFoundError):
            end = max(end, int(file.stem) + file.stat().st_size if file.stem.isdigit() else 0)
    return end


def program(person: Person, flood: Flood) -> Path:
    """It writes so until it is ended."""
    path = person.home / "flood.py"
    path.write_text(
        "import os\ndef w(b):\n    while b: b = b[os.write(1, b):]\n"
        f"w({flood.first!r})\nagain = {flood.again!r}\nagain *= max(1, 65536 // len(again))\nwhile True: w(again)\n"
    )
    return path


def in_time(person: Person, *words: str) -> Ctl:
    began = time.monotonic()
    done = person.ctl(*words)
    assert "Traceback" not in done.err, done
    assert time.monotonic() - began < BOUND_S, (words, done)
    return done


@pytest.mark.parametrize("flood", FLOODS, ids=attrgetter("name"))
def test_a_flood_holds_nobody_up(flood: Flood, person: Person) -> None:
    """Every verb upon a program that has written much and goes on, with another agent beside it."""
    daemon, run = Reached(person), f"{person.installed.python} {program(person, flood)}"
    assert in_time(person, "start", "generic", "--name", "f", "--", "sh", "-i").code == 0
    try:
        agent = str(daemon.ready("f")["id"])
        for verb in VERBS:
            daemon.ready("f")
            begins, task = written(person, agent), daemon.send(run, "f")
            eventually(lambda begins=begins: written(person, agent) >= begins + FLOODED_BYTES, "it has written much")
            for path in ("/agents", "/agents/f/status?detail=1&explain=1", "/agents/f/screen?format=json", "/inbox"):
                began = time.monotonic()
                assert daemon.get(path).status == 200, path
                assert time.monotonic() - began < BOUND_S, path
            assert daemon.answer("d", "echo beside").rstrip("\n") == "beside"
            assert in_time(person, verb, task if verb == "cancel" else "f").code == 0
            if verb != "restart":
                assert in_time(person, "restart", "f").code == 0
            daemon.ready("f")
            assert daemon.answer("f", f"printf 'after %s\\n' {verb}").rstrip("\n") == f"after {verb}"
    finally:
        in_time(person, "stop", "f", "--remove")


def test_there_are_enough_of_them() -> None:
    names = [one.name for one in FLOODS]
    assert len(names) == len(set(names))
    assert len([one for one in FLOODS if one.ours]) >= 16
