"""The worker that performs the turn's commands: what it types, and what it looks at before it does."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from synapsed.keepers.keeper_messages import KeeperRefused
from synapsed.model.agent import Activity
from synapsed.model.facts import TurnEnded
from synapsed.model.link import (
    LinkEvent,
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnInterrupted,
    LinkUndelivered,
)
from synapsed.profiles.screen_spec import (
    AnswerSpec,
    DeliverySpec,
    ErrorPattern,
    Interrupt,
    Ready,
)
from synapsed.pty.keyboard import BACKSPACE
from synapsed.pty.session import HANDS_OFF_S
from synapsed.pty.stopped_turn import KeptStop
from synapsed.pty.turn_types import EMPTY_UNTOLD_S, UNANSWERED_S, UNKNOWN, WORKED_UNSEEN_S, Phase, Save
from synapsed.screens.harmful_output import HarmRecord
from synapsed.screens.pool import ScreenPool
from synapsed.screens.protocol import FrameKind
from synapsed.screens.remote_screen import RemoteStage
from synapsed.terminal.verdict import STALE_S
from tests.fakes.clock import FakeClock, until
from tests.fakes.screens import FakeScreenProcess
from tests.pty.turn_terminal import LINES, PROFILE, Terminal


@pytest.fixture
async def terminal() -> AsyncIterator[Terminal]:
    """The message is pasted and shown."""
    terminal = Terminal()
    worker = await terminal.begin()
    await until(terminal.driver.turn.idle.is_set)
    assert terminal.typed == [b"hello"]
    terminal.draw("> hello")
    yield terminal
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_a_dialog_that_comes_up_while_the_record_is_written_gets_no_submit_key(terminal: Terminal) -> None:
    await terminal.judge(1.0)
    assert terminal.phase is Phase.SUBMITTING
    terminal.draw("Allow it?")
    await terminal.record()
    assert (terminal.typed, terminal.phase) == ([b"hello"], Phase.SETTLING)
    terminal.draw("> hello")
    await terminal.judge(1.0)
    await terminal.record()
    assert (terminal.typed, terminal.phase) == ([b"hello", b"\r"], Phase.SUBMITTED)


async def test_answers_of_the_terminal_are_wiped_before_the_message_is_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program asked its terminal and was gone when the answer came: the shell's line editor has it."""
    terminal = Terminal()
    draw, write = terminal.draw, terminal.write

    async def wiped(data: bytes, input_id: str | None = None) -> object:
        if data == b"\x15":
            draw("> ")
        return await write(data, input_id)

    monkeypatch.setattr(terminal.driver._program.keeper(), "write", wiped)
    monkeypatch.setattr(terminal, "draw", lambda *rows: draw("> 62;22c1;10;0c" if rows == ("> ",) else rows[0]))
    worker = await terminal.begin()
    await until(terminal.driver.turn.idle.is_set)
    assert terminal.typed == [b"\x15", b"hello"]
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_what_is_given_back_while_the_record_is_written_is_not_submitted_with_the_message() -> None:
    terminal = Terminal()
    worker = await terminal.begin("tell me the time")
    await until(terminal.driver.turn.idle.is_set)
    terminal.draw("> tell me the time")
    await terminal.judge(1.0)
    assert terminal.phase is Phase.SUBMITTING
    terminal.draw("> what was stopped tell me the time")
    await terminal.record()
    await terminal.judge(1.0)
    await terminal.record()
    await until(lambda: any(isinstance(event, LinkUndelivered) for event in terminal.events))
    assert b"\r" not in terminal.typed
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


@pytest.mark.parametrize("meanwhile", ["Allow it?", "working", "> ", "> hello"])
async def test_a_second_submit_key_is_for_a_composer_that_still_has_the_message(
    terminal: Terminal, meanwhile: str
) -> None:
    await terminal.judge(1.0)
    await terminal.record()
    await terminal.judge(UNANSWERED_S)  # nothing has happened: the second key is decided on
    terminal.draw(meanwhile)
    await terminal.record()
    assert terminal.typed == [b"hello", b"\r", *([b"\r"] if meanwhile == "> hello" else [])]


@pytest.mark.parametrize("meanwhile", ["Allow it?", "> a draft", "working", None])
async def test_nothing_is_pasted_by_a_look_that_is_older_than_what_the_program_wrote(
    meanwhile: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at a program that rests is kept for long, and nothing is asked of the process that draws it; what comes at
    the last moment before the paste is looked at all the same."""
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)
    pool = ScreenPool(1)
    stage = RemoteStage(
        pool,
        agent_id="a",
        profile=PROFILE,
        size=(80, 10),
        launch_start=0,
        checkpoint=None,
        kept=AsyncMock(return_value=None),
        spool=tmp_path / "spool",
        harms=await HarmRecord.of(tmp_path, "0123456789abcdef"),
        clock=FakeClock(),
    )
    stage.open(lambda _event: None)
    looks: list[FrameKind] = []
    ask = stage._ask

    async def asked(read: Any, kind: FrameKind, *given: Any, **named: Any) -> Any:
        looks.extend([kind] if kind is FrameKind.LOOK else [])
        return await ask(read, kind, *given, **named)

    monkeypatch.setattr(stage, "_ask", asked)
    terminal = Terminal(stage=stage)

    async def drawing() -> Any:
        if meanwhile is not None:
            terminal.draw(meanwhile)
        return await Terminal.ping(terminal)

    monkeypatch.setattr(terminal.driver._program.keeper(), "ping", drawing)
    worker = await terminal.begin(rested=1000.0)
    assert len(looks) == 1, "the one of when it came to rest"
    await until(terminal.driver.turn.idle.is_set)
    assert terminal.typed == ([b"hello"] if meanwhile is None else [])
    assert len(looks) == (1 if meanwhile is None else 2)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    await stage.close()
    await pool.close()


async def test_nothing_is_pasted_while_something_is_unread() -> None:
    """A stopped program would show both at once, when it goes on."""
    terminal = Terminal()
    terminal.unread = 3
    worker = await terminal.begin()
    await until(terminal.driver.turn.idle.is_set)
    assert (terminal.typed, terminal.phase) == ([], Phase.PREPARED)
    terminal.unread = 0
    await terminal.driver.unread.ask()
    await terminal.judge(HANDS_OFF_S)  # it has shown by then what it has read
    await terminal.record()
    assert (terminal.typed, terminal.phase) == ([b"hello"], Phase.SETTLING)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_a_keeper_that_is_silent_for_a_while_is_asked_again() -> None:
    """It stood still, or waited for its disk: the message is not held for ever."""
    terminal = Terminal()
    terminal.silent = 1
    worker = await terminal.begin()
    await until(terminal.driver.turn.idle.is_set)
    assert (terminal.typed, terminal.phase) == ([], Phase.PREPARED)
    await terminal.judge()
    await terminal.record()
    assert (terminal.typed, terminal.phase) == ([b"hello"], Phase.SETTLING)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_a_half_written_paste_is_finished_after_a_silence_of_the_keeper(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not what was typed before, for which the message would have to wait."""
    monkeypatch.setattr("synapsed.pty.turn_worker.STALLED_S", 0.01)
    terminal = Terminal()
    terminal.writing.clear()
    worker = await terminal.begin()
    await until(lambda: terminal.typed)
    terminal.unread, terminal.silent = 30_000, 1
    await until(lambda: not terminal.silent)
    terminal.writing.set()
    await until(terminal.driver.turn.idle.is_set)
    assert (terminal.typed, terminal.phase) == ([b"hello"], Phase.SETTLING)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_a_paste_that_is_shown_before_it_is_known_to_be_written_is_nobodys_draft() -> None:
    """On a busy machine the program may be faster than the keeper's answer."""
    terminal = Terminal()
    terminal.writing.clear()
    worker = await terminal.begin()
    assert not terminal.session.pasted
    await until(lambda: terminal.typed)
    terminal.draw("> hello")
    assert (terminal.phase, terminal.session.pasted) == (Phase.PASTING, True)
    terminal.writing.set()
    await until(terminal.driver.turn.idle.is_set)
    assert (terminal.phase, terminal.session.pasted) == (Phase.SETTLING, True)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


@pytest.mark.parametrize("computes", [True, False])
async def test_the_second_submit_key_is_held_back_while_the_program_computes(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, computes: bool
) -> None:
    """It itself, or a hook for which it waits."""
    monkeypatch.setattr("synapsed.pty.foreground.Foreground.acts", lambda self, group, since: computes)
    terminal.reader = (None, 7)
    for after in (2.0, UNANSWERED_S):
        await terminal.judge(after)
        await terminal.record()
    assert terminal.typed == [b"hello", b"\r", *([] if computes else [b"\r"])]
    assert terminal.phase is Phase.SUBMITTED


@pytest.mark.parametrize("computes", [True, False])
async def test_a_message_that_a_starved_program_does_not_read_yet_is_not_given_up(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, computes: bool
) -> None:
    """The kernel is asked while the message is half typed."""
    monkeypatch.setattr("synapsed.pty.foreground.Foreground.computes", lambda self, group: computes)
    terminal.reader = (None, 7)
    terminal.draw("> ")
    terminal.unread = 5
    terminal.clock.advance(9.0)
    assert terminal.driver.kernel.asks_again
    await terminal.driver.kernel.ask_again()
    await terminal.judge()
    await until(lambda: computes or bool(terminal.events))
    assert [type(event) for event in terminal.events] == ([] if computes else [LinkUndelivered])


async def test_what_is_left_is_taken_back_after_a_silence_of_the_keeper(terminal: Terminal) -> None:
    terminal.silent = 2
    terminal.draw("> ")
    await terminal.judge(100.0)
    await until(lambda: not terminal.silent)
    terminal.draw("> hello")
    await until(lambda: terminal.session.turn is None)
    assert [type(event) for event in terminal.events] == [LinkUndelivered], "told once"


async def test_a_paste_that_the_program_stops_reading_is_told_and_taken_back_when_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("synapsed.pty.turn_worker.STALLED_S", 0.01)
    monkeypatch.setattr("synapsed.pty.screen_looks.ASK_AGAIN_S", 0.001)
    terminal = Terminal()
    terminal.writing.clear()
    worker = await terminal.begin()
    await until(lambda: terminal.typed)
    terminal.unread = 30_000
    await until(lambda: any(isinstance(event, LinkUndelivered) for event in terminal.events))
    assert terminal.session.turn is not None
    terminal.writing.set()
    terminal.draw("> hello")
    terminal.unread = 0
    await until(lambda: terminal.session.turn is None)
    keys = {DeliverySpec().clear.encode(), BACKSPACE.encode()}
    assert set(terminal.typed[1:]) == keys, "the composer is emptied"
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_a_program_that_ends_before_the_submit_key_did_not_refuse_the_message(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its exit is told, and what was not submitted goes to the next program."""
    tried = []

    async def write(data: bytes, _id: str | None = None) -> Any:
        tried.append(data)
        raise KeeperRefused("the program has ended", reason="exited")

    monkeypatch.setattr(terminal.driver._program.keeper(), "write", write)
    await terminal.judge(1.0)
    await terminal.record()
    assert tried == [b"\r"]
    assert not any(isinstance(event, LinkUndelivered) for event in terminal.events)


@pytest.mark.parametrize(
    ("typed_at", "works"), [((False, 7), (True, 7)), ((False, 7), (True, 8)), ((True, 7), (True, 8))]
)
async def test_a_prompt_that_is_printed_ends_no_turn(typed_at: tuple[bool, int], works: tuple[bool, int]) -> None:
    """The kernel knows that the line editor is gone, or that another program has the terminal."""
    terminal = Terminal(LINES)
    terminal.reader = typed_at
    worker = await terminal.begin()
    await until(terminal.driver.turn.idle.is_set)
    assert terminal.session.turn is not None
    assert terminal.session.turn.state.prompt == "> ", "that is where it was typed"
    terminal.draw("> hello")
    await terminal.judge(1.0)
    await terminal.record()
    terminal.reader = works
    terminal.draw("> hello", "> ")
    await terminal.judge()
    await terminal.record()
    assert (terminal.phase, (await terminal.look()).verdict.activity) == (Phase.WORKING, Activity.BUSY)
    terminal.reader = typed_at
    assert not await terminal.driver.kernel.works()
    await terminal.judge()
    await terminal.record()
    assert [event.answer for event in terminal.events if isinstance(event, LinkTurnEnded)] == ["hi"]
    assert terminal.session.given_back is None
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


@pytest.mark.parametrize(("reader", "believed"), [(7, False), (8, True)])
async def test_a_command_may_have_a_prompt_without_a_line_editor(reader: int, believed: bool) -> None:
    """It is believed when it has stood for a while; the program itself is known to have an editor."""
    terminal = Terminal(LINES)
    terminal.reader = (False, 7)
    worker = await terminal.begin()
    await until(terminal.driver.turn.idle.is_set)
    terminal.draw("> hello")
    await terminal.judge(1.0)
    await terminal.record()
    terminal.reader = (True, reader)
    terminal.draw("> hello", "> ")
    await terminal.judge()
    await terminal.record()
    assert terminal.phase is Phase.WORKING
    await terminal.judge(STALE_S + 1)
    await terminal.record()
    assert any(isinstance(event, LinkTurnEnded) for event in terminal.events) is believed
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_a_prompt_between_lines_of_the_message_ends_no_turn() -> None:
    """The program has not read the last ones."""
    terminal = Terminal(LINES)
    terminal.reader = (True, 7)
    worker = await terminal.begin()
    await until(terminal.driver.turn.idle.is_set)
    terminal.draw("> hello")
    await terminal.judge(1.0)
    await terminal.record()
    terminal.unread = 3
    terminal.draw("> hello", "> ")
    await terminal.judge()
    await terminal.record()
    assert terminal.phase is Phase.WORKING
    terminal.unread = 0
    await terminal.judge()
    await terminal.record()
    assert any(isinstance(event, LinkTurnEnded) for event in terminal.events)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


MARKED = PROFILE.model_copy(
    update={
        "interrupt": Interrupt(keys="\x1b", screen="^! cancelled"),
        "error": [ErrorPattern(pattern="^x .*")],
        "answer": AnswerSpec(mode="blocks", start="^\\* ", channel_wait_ms=0),
    }
)
OLD = ("  before", "! cancelled", "  before that", "x it failed")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((f"one{character}two", "onetwo") for character in "\x00\x07\x08\x1b\x7f\x85\x9b\ufeff"),
        ("one\ttwo", "one    two"),
        ("\x1b[31mone\x1b[0m", "[31mone[0m"),
        ("cafe\u0301 \ufb01n", "caf\u00e9 fin"),
        ("one\u200btwo", "onetwo"),
        ("one", "[Pasted text #1]"),
        ("!one", " !one"),
    ],
    ids=ascii,
)
async def test_marks_of_earlier_turns_are_no_word_on_a_message_that_is_shown_in_another_way(
    text: str, shown: str
) -> None:
    terminal = Terminal(MARKED)
    worker = await terminal.begin(text)
    await until(terminal.driver.turn.idle.is_set)
    terminal.draw(*OLD, f"> {shown}")
    await terminal.judge(1.0)
    await terminal.record()
    assert terminal.phase is Phase.SUBMITTED
    terminal.draw(*OLD, f"  {shown}", "working")
    await terminal.judge(5.0)
    await terminal.record()
    terminal.draw(*OLD, f"  {shown}", "* the answer", "> ")
    await terminal.judge(10.0)
    await terminal.record()
    await terminal.judge(10.0)
    await terminal.record()
    assert [type(event) for event in terminal.events][-1] is LinkTurnEnded, terminal.events
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


@pytest.mark.parametrize("shown", ["one", "[Pasted text #1]"])
@pytest.mark.parametrize(("mark", "event"), [("! cancelled", LinkTurnInterrupted), ("x it failed", LinkTurnFailed)])
async def test_a_new_mark_below_old_ones_is_a_word_on_the_turn(shown: str, mark: str, event: type) -> None:
    terminal = Terminal(MARKED)
    worker = await terminal.begin("one")
    await until(terminal.driver.turn.idle.is_set)
    terminal.draw(*OLD, f"> {shown}")
    await terminal.judge(1.0)
    await terminal.record()
    terminal.draw(*OLD, f"  {shown}", "working")
    await terminal.judge(5.0)
    await terminal.record()
    terminal.draw(*OLD, f"  {shown}", mark, "> ")
    await terminal.judge(10.0)
    await terminal.record()
    await terminal.judge(10.0)
    await terminal.record()
    assert [type(told) for told in terminal.events][-1] is event, terminal.events
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_the_mark_of_an_earlier_turn_is_no_word_on_a_message_that_was_taken_off_the_screen() -> None:
    """It was seen, and is given back into the composer when its turn is stopped."""
    terminal = Terminal(MARKED)
    worker = await terminal.begin("one")
    await until(terminal.driver.turn.idle.is_set)
    terminal.draw(*OLD, "> one")
    await terminal.judge(1.0)
    await terminal.record()
    terminal.draw(*OLD, "  one", "working")
    await terminal.judge(5.0)
    await terminal.record()
    assert terminal.session.turn is not None
    terminal.driver.turn.add(terminal.session.turn.interrupt())
    await terminal.record()
    terminal.draw(*OLD, "working")
    await terminal.judge(0.1)
    await terminal.record()
    assert terminal.phase is Phase.WORKING
    terminal.draw(*OLD, "! cancelled", "working")
    await terminal.judge(0.1)
    await terminal.record()
    assert type(terminal.events[-1]) is LinkTurnInterrupted
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_the_message_of_a_stopped_turn_is_kept_before_its_end_is_reported(tmp_path: Path) -> None:
    """With the report its record ends, and the program may give the message back to the next daemon."""
    terminal, kept = Terminal(), KeptStop(tmp_path / "stopped.json", "l")
    terminal.driver.turn._kept_stop = kept
    known: list[object] = []

    def emit(event: LinkEvent) -> None:
        terminal.emit(event)
        known.extend([kept._path.exists()] if isinstance(event, LinkTurnInterrupted) else [])

    terminal.driver._program.emit = emit
    worker = await terminal.begin()
    await until(terminal.driver.turn.idle.is_set)
    terminal.draw("> hello")
    await terminal.judge(1.0)
    await terminal.record()
    terminal.draw("working")
    await terminal.judge(1.0)
    await terminal.record()
    assert terminal.session.turn is not None
    terminal.driver.turn.add(terminal.session.turn.interrupt())
    await terminal.record()
    terminal.draw("> hello")
    await terminal.judge(10.0)
    await until(lambda: known)
    assert known == [True]
    left = await KeptStop(kept._path, "l").load()
    assert left is not None
    assert left.is_in("hello")
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


@pytest.mark.parametrize(("pressed", "reason"), [(True, "person"), (False, "program")])
async def test_an_end_without_an_answer_is_none_where_the_screen_says_that_the_turn_was_stopped(
    pressed: bool, reason: str
) -> None:
    """Hooks tell of an end after a person's Esc, too; before the first request nothing else is recorded of it. A person
    is named only where one pressed a key."""
    terminal = Terminal(MARKED)
    worker = await terminal.begin("one")
    await until(terminal.driver.turn.idle.is_set)
    terminal.draw(*OLD, "> one")
    await terminal.judge(1.0)
    await terminal.record()
    terminal.draw(*OLD, "  one", "working")
    await terminal.judge(5.0)
    await terminal.record()
    if pressed:
        terminal.session.pressed(terminal.clock.monotonic())
    turn = terminal.session.turn
    assert turn is not None
    terminal.draw(*OLD, "  one", "! cancelled", "> ")
    ended = TurnEnded(channel="hooks", at_ns=int(terminal.clock.monotonic() * 1e9), answer=None)
    terminal.driver.turn.add(turn.told(ended, terminal.clock.monotonic()))
    await terminal.record()
    assert [event.reason for event in terminal.events if isinstance(event, LinkTurnInterrupted)] == [reason]
    assert not any(isinstance(event, LinkTurnEnded) for event in terminal.events)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_a_turn_that_is_over_is_not_recorded_any_more() -> None:
    """A daemon that is killed before the end is on record would leave a turn that is over, and never ends (seed 1369 of
    the simulated world)."""
    terminal = Terminal()
    worker = await terminal.begin()
    await until(terminal.driver.turn.idle.is_set)
    assert terminal.session.turn is not None
    before, terminal.session.turn.state.phase = terminal.wanted, Phase.OVER
    terminal.driver.turn.add([Save()])
    await until(terminal.driver.turn.idle.is_set)
    assert terminal.wanted == before
    worker.cancel()


@pytest.mark.parametrize("drawn", [False, True])
async def test_what_stood_above_the_composer_before_the_message_is_no_answer_to_it(drawn: bool) -> None:
    """opencode does not show a message that is dated before those of before the clock was set back, and answers it with
    no word: the answer to another one was taken for its own, when the daemon was killed meanwhile."""
    old = ("Line 1 of an answer.", "Line 2 of it.")
    blocks = {"answer": AnswerSpec(mode="blocks"), "ready": Ready(quiet_ms=200)}
    terminal = Terminal(PROFILE.model_copy(update=blocks))
    worker = await terminal.begin(rested=1.0)
    await until(terminal.driver.turn.idle.is_set)
    terminal.draw(*old, "> hello")
    await terminal.judge(1.0)
    await terminal.record()
    assert terminal.session.turn is not None
    terminal.driver.turn.add(terminal.session.turn._accept("quiet: the screen moves", terminal.clock.monotonic()))
    await terminal.record()
    terminal.draw(*old, *(["Line 3."] if drawn else []), "> ")
    for _ in range(4):
        await terminal.judge(EMPTY_UNTOLD_S)
        await terminal.record()
    (end,) = [event for event in terminal.events if isinstance(event, LinkTurnEnded | LinkTurnFailed)]
    if drawn:
        assert isinstance(end, LinkTurnEnded)
        assert end.answer.rstrip("> \n") == "\n".join([*old, "Line 3."])
    else:
        assert isinstance(end, LinkTurnFailed)
        assert (end.code, end.message) == ("TIMEOUT", UNKNOWN)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_a_conversation_that_is_printed_again_is_no_answer_while_the_program_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """qwen, starved, showed an empty composer below the older half of its conversation, which it was asked to draw
    again, and took the message eight seconds after the submit key: the last answer shown was taken for its own."""
    blocks = {"answer": AnswerSpec(mode="blocks", start=re.compile("^✦ ")), "ready": Ready(quiet_ms=200)}
    terminal = Terminal(PROFILE.model_copy(update=blocks))
    worker = await terminal.begin(rested=1.0)
    await until(terminal.driver.turn.idle.is_set)
    terminal.draw("> second", "✦ Done.", "> hello")
    await terminal.judge(1.0)
    await terminal.record()
    assert terminal.session.turn is not None
    terminal.driver.turn.add(terminal.session.turn._accept("quiet: the screen changes", terminal.clock.monotonic()))
    await terminal.record()
    monkeypatch.setattr(terminal.driver.turn._kernel, "comes_to_rest", AsyncMock(return_value=False))
    terminal.draw("> first", "✦ Hi.", "> ")
    await terminal.judge(WORKED_UNSEEN_S)
    await terminal.judge(STALE_S)
    await terminal.record()
    assert not [event for event in terminal.events if isinstance(event, LinkTurnEnded | LinkTurnFailed)]
    terminal.draw("> second", "✦ Done.", "> hello", "✦ Hello.", "> ")
    for _ in range(2):
        await terminal.judge(STALE_S)
        await terminal.record()
    (end,) = [event for event in terminal.events if isinstance(event, LinkTurnEnded | LinkTurnFailed)]
    assert isinstance(end, LinkTurnEnded)
    assert end.answer == "Hello.\n>"
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
