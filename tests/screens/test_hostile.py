"""A process that was taken over may lie about its screens, and do nothing else: what cannot be ends it."""

import asyncio
import json
import math
import time
from collections.abc import Callable
from typing import Any

import pytest

from synapsed import own_python
from synapsed.screens import checked_replies, protocol
from synapsed.screens.pool import ScreenPool
from synapsed.screens.protocol import LOOK, FrameKind, ScreenFrame, ScreenFrameError, ScreenFrameReader, encode
from synapsed.screens.worker import Screens
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.look import TerminalReply
from synapsed.terminal.queries import answer, is_answer
from synapsed.terminal.scanner import QueryReceived, Scanner
from synapsed.terminal.screen_messages import Ask, Drawn
from tests.fakes.screens import FakeScreenProcess
from tests.screens.conftest import PATIENT_S, MakePool, MakeProgram

LIE = b"LIE"
"""Output with this takes the process over that draws it."""


def changed(**changes: Any) -> Callable[[ScreenFrame], ScreenFrame]:
    return lambda frame: frame._replace(**changes)


def of_look(change: Callable[[list[Any]], object]) -> Callable[[ScreenFrame], ScreenFrame]:
    """A look that `change` has changed: what is judged, and the modes."""

    def lie(frame: ScreenFrame) -> ScreenFrame:
        if frame.kind != FrameKind.ANSWER:
            return frame
        look = json.loads(frame.text)
        change(look)
        return frame._replace(text=json.dumps(look).encode())

    return lie


def asks(*asked: Any) -> Callable[[list[Any]], object]:
    prompt = {"prompt_id": "x", "type": "confirmation", "prompt": "y"}
    return lambda look: look[0].__setitem__(1, [prompt if one is ... else one for one in asked])


def head(place: int, value: float) -> Callable[[ScreenFrame], ScreenFrame]:
    """A look with another value at the beginning of its bytes."""

    def lie(frame: ScreenFrame) -> ScreenFrame:
        told = list(LOOK.unpack_from(frame.blob))
        told[place] = value
        return frame._replace(blob=LOOK.pack(*told) + frame.blob[LOOK.size :])

    return lie


def bytes_of(old: bytes, new: bytes) -> Callable[[ScreenFrame], ScreenFrame]:
    def lie(frame: ScreenFrame) -> ScreenFrame:
        assert old in frame.blob
        return frame._replace(blob=frame.blob.replace(old, new, 1))

    return lie


def types(keys: bytes) -> Callable[[ScreenFrame], ScreenFrame]:
    told = protocol.write_replies([TerminalReply(0, keys)])
    return lambda frame: ScreenFrame(FrameKind.DRAWN, frame.agent, offset=frame.offset, text=told)


LIES: dict[str, Callable[[ScreenFrame], ScreenFrame]] = {
    "escape in a line": bytes_of(b"\nbefore", b"\n\x1b]52;c;aGk=\x07"),
    "escape in a title": bytes_of(b"\nbefore", b"\x1b[2J\nbefore"),
    "escape in the evidence": of_look(lambda look: look[0][0].__setitem__(1, "\x1b[2J")),
    "too many rows": head(10, 60_000),
    "no rows": head(10, 0),
    "more rows than it says": bytes_of(b"\nbefore", b"\nbefore\nmore"),
    "fewer rows than it says": bytes_of(b"\nbefore", b""),
    "a row that is too long": bytes_of(b"\nbefore", b"\n" + b"x" * 70_000),
    "cursor elsewhere": head(11, 900),
    "cursor to the right": head(12, 900),
    "no columns": head(9, 0),
    "no screen": changed(blob=b"x" * 60),
    "no verdict": of_look(lambda look: look.__setitem__(0, None)),
    "no modes": of_look(lambda look: look.__setitem__(1, None)),
    "neither verdict nor modes": changed(text=b""),
    "rows that were not told": bytes_of(b"\xff\xff", b"\0\0"),
    "unknown activity": of_look(lambda look: look[0][0].__setitem__(0, "hungry")),
    "a time that is not a number": head(2, math.nan),
    "a time without end": head(2, math.inf),
    "times without end": head(2, -math.inf),
    "a dialog of its own": of_look(asks(..., 77, [], False, None)),
    "a dialog in its own words": of_look(asks(..., {"type": "confirmation"}, [], False, None)),
    "a prompt with an escape": of_look(
        asks({"prompt_id": "x", "type": "confirmation", "prompt": "\x1b[2J"}, None, [], False, None)
    ),
    "a mark beside its menu": of_look(
        asks(..., None, [], False, [["q"], [["1", "a", 0, 0]], 5, 0, 1, False, False, "space", None])
    ),
    "a menu without options": of_look(asks(..., None, [], False, [["q"], [], -1, 0, 1, False, False, "space", None])),
    "a window's focus beside its buttons": of_look(
        asks(
            ...,
            None,
            [],
            False,
            [["q"], [], -1, 0, 1, False, False, "space", [[["ok", "OK", 0, 0]], 7, False, True, "", False]],
        )
    ),
    "keys of its own": of_look(
        asks(..., None, [], False, [["q"], [["1", "a", 0, 0]], 0, 0, 1, False, True, "rm -rf ~\r", None])
    ),
    "more than it is asked": of_look(lambda look: look.append("more")),
    "kinds of other characters": lambda frame: frame._replace(blob=frame.blob[:-1]),
    "keys": types(b"rm -rf ~\r"),
    "keys behind an answer": types(b"\x1b[0n\r"),
    "more than was fed": changed(kind=FrameKind.DRAWN, offset=1 << 40, text=b""),
    "less than was drawn": changed(kind=FrameKind.DRAWN, offset=0, text=b""),
    "an answer that nobody asked for": changed(kind=FrameKind.ANSWER, number=4711, text=b"null"),
    "a kind that there is not": changed(kind=99),
    "what only the daemon says": changed(kind=FrameKind.FEED),
    "no JSON": changed(text=b"\xff[[["),
    "deep JSON": changed(text=b"[" * 100_000),
    "another answer": changed(kind=FrameKind.ANSWER, text=b'{"version": 1}'),
}


@pytest.mark.parametrize("how", LIES)
async def test_what_cannot_be_costs_the_screen_it_is_told_of_and_no_other(
    pool: ScreenPool, make_program: MakeProgram, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: set[int] = set()
    draws = Screens._feed

    def feed(self: Screens, frame: ScreenFrame, seat: Any) -> Any:
        if LIE in frame.blob:
            taken.add(frame.agent)
        return draws(self, frame, seat)

    def lie(frame: ScreenFrame) -> list[ScreenFrame]:
        return [LIES[how](frame) if frame.agent in taken else frame]

    async def survives(*_: object, **__: object) -> bool:
        return False

    async def harm_end(_: object, output: bytes) -> int:
        return output.index(LIE) + len(LIE)

    # What takes a process over does so in the trial too: that is no part of this test.
    monkeypatch.setattr("synapsed.screens.harmful_output.survives", survives)
    monkeypatch.setattr("synapsed.screens.harmful_output.harm_end", harm_end)
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    monkeypatch.setattr(Screens, "_feed", feed)
    monkeypatch.setattr(FakeScreenProcess, "lie", staticmethod(lie))
    one, other = await make_program(pool, "one"), await make_program(pool, "other")
    other.prints(b"spared\r\n")
    one.prints(b"before\r\n")
    await other.look()
    one.prints(b"LIE\r\n")  # at its first look, of which all is told
    look = await one.stage.look(Ask(now=time.monotonic(), kinds=True))
    assert look is not None
    assert "its output ended the terminal emulator" in look.screen.lines[0]
    assert len(one.harmed) == 1
    assert await other.lines() == ["spared"]
    assert not other.harmed
    drawn = [event for program in (one, other) for event in program.events if isinstance(event, Drawn)]
    assert not any(event.replies for event in drawn)
    one.prints(b"goes on")
    assert (await one.lines())[-1] == "goes on"


async def test_a_real_process_that_breaks_the_protocol_is_ended(pool: ScreenPool, make_program: MakeProgram) -> None:
    program = await make_program(pool)
    await program.look()
    (process,) = pool._processes
    pid = pool.pids[0]
    process.data_received(b"\xff" * 1000)
    assert process.ended
    assert (await program.look()).offset == 0
    assert pid not in pool.pids


FOREVER = """
import os, sys
from synapsed.screens.protocol import ScreenFrame, FrameKind, encode
while True:
    os.write(0, encode(ScreenFrame(FrameKind.ALIVE)))
"""


async def test_one_that_says_for_ever_that_it_works_is_ended(
    make_pool: MakePool, make_program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synapsed.screens.screen_process.ALIVE_CPU_S", 0.5)
    monkeypatch.setattr("synapsed.screens.screen_process.BEGINS_CPU_S", 0.5)
    pool = make_pool(1, own_python.alone("-c", FOREVER))
    program = await make_program(pool)
    asked = asyncio.ensure_future(program.look())
    async with asyncio.timeout(PATIENT_S):
        while not pool.pids:
            await asyncio.sleep(0.01)
        first = pool.pids[0]
        while first in pool.pids:
            await asyncio.sleep(0.01)
    pool._program = own_python.command("synapsed.screens.worker")
    assert await asked


@pytest.mark.parametrize("cut", [1, 7, 38, 64, 10_000])
def test_frames_come_cut_anywhere(cut: int) -> None:
    frames = [
        ScreenFrame(FrameKind.FEED, 1, 2, 3, 4.5, 1, b"text", b"blob" * 100),
        ScreenFrame(FrameKind.ALIVE),
        ScreenFrame(FrameKind.ANSWER, 7, 8, 9, text=b"[]"),
    ]
    data = b"".join(map(encode, frames)) * 20
    decoder = ScreenFrameReader()
    came = [frame for start in range(0, len(data), cut) for frame in decoder.feed(data[start : start + cut])]
    assert came == frames * 20


def test_a_frame_that_is_too_long_is_not_waited_for() -> None:
    with pytest.raises(ScreenFrameError):
        list(ScreenFrameReader().feed(b"\xff" * 64))


QUERIES = (
    b"\x1b[c\x1b[>c\x1b[>q\x1b[5n\x1b[6n\x1b[?6n\x1b[?996n\x1b[?2004$p\x1b[4$p\x1b[14t\x1b[16t\x1b[18t"
    b"\x1bP$qm\x1b\\\x1bP+q544e;636f\x1b\\\x1b]7501;?\x1b\\\x1b]7501;?\x07"
    b"\x1b]10;?\x07\x1b]11;?\x1b\\\x1b]12;?\x07\x1b]4;1;?;255;?\x07"
)


def test_all_that_a_terminal_answers_passes_and_nothing_that_a_person_types() -> None:
    screen = Screen(80, 24)
    answers = [answer(event, screen.snapshot) for event in Scanner().feed(QUERIES) if isinstance(event, QueryReceived)]
    assert len(answers) >= 18
    assert all(told is not None and is_answer(told) for told in answers)
    typed = (b"", b"a", b"\r", b"\x1b", b"\x1b[A", b"\x1bOP", b"\x1b[200~x\x1b[201~", b"\x1b[0n\r", b"\x1b[5;6~")
    for keys in typed:
        assert not is_answer(keys), keys


def test_a_failure_says_where_and_nothing_of_the_output() -> None:
    with pytest.raises(ValueError, match="secret") as failed:
        int("a secret of the output")
    told = checked_replies.read_failure(ScreenFrame(FrameKind.FAILED, text=protocol.write_failure(failed.value)))
    assert told.startswith("ValueError in test_hostile.py:")
