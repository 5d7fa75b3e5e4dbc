"""A message that the program did not take: it stands in the composer, or is nowhere, and is ours. It is submitted once
more, or taken out and typed again; never while it may have been taken."""

import asyncio
from typing import Any

import pytest

from synapsed.model.agent import Activity
from synapsed.model.link import LinkTurnAccepted, LinkTurnRecord, LinkUndelivered
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_types import TYPED_AGAIN_AFTER_S, Clear, Phase, Save, TakeOut, TurnState, Type
from tests.fakes.clock import until
from tests.pty.playbook import (
    LINES,
    accepted,
    ended,
    kind,
    pasted,
    says_accepted,
    says_ended,
    says_interrupted,
    says_undelivered,
    seen,
    submitted,
    turn,
)
from tests.pty.turn_terminal import Terminal

STANDS: dict[str, Any] = {"composer": "draft", "text": "hello"}
WORKS: dict[str, Any] = {"activity": Activity.BUSY, "source": "title", "settled": False}
AGAIN = [Save(), Type("submit2", b"\r")]


def taken_out(machine: PtyTurn, at: float = 6.0, *, begins: float = 3.1) -> None:
    """Both submit keys were passed over, and the message is out of the composer."""
    assert machine.seen(seen(begins, offset=130, **STANDS)) == AGAIN
    assert machine.seen(seen(begins + 2.1, offset=130, **STANDS)) == [TakeOut()]
    assert machine.withdrawn(True, at) == [Save()]
    assert machine.state.phase is Phase.PREPARED


# --- it stands there ---


@pytest.mark.parametrize("channels", [True, False])
def test_a_composer_that_is_drawn_again_has_not_given_the_message(channels: bool) -> None:
    """codex 0.151.0 at the end of its start-up: the submit key is passed over, the composer is empty for a moment, and
    its title says that it works while it starts its servers."""
    machine = submitted(shown="hello", channels=channels)
    assert machine.seen(seen(1.1, offset=30, settled=False)) == []
    assert machine.seen(seen(1.2, offset=40, **STANDS, **WORKS)) == []
    assert machine.seen(seen(1.9, offset=50, **STANDS, **WORKS)) == []
    assert machine.seen(seen(2.2, offset=60, **STANDS)) == []
    assert machine.seen(seen(4.0, offset=60, **STANDS)) == AGAIN
    assert machine.seen(seen(4.2, offset=70, **WORKS))[:2] == [Save(), says_accepted("test")]


def test_a_program_that_was_taken_to_work_on_it_gets_the_submit_key_again() -> None:
    """gemini 0.61.0 on a busy machine: its composer was away for longer than it takes to draw it."""
    machine = submitted(shown="hello")
    moves = {"activity": Activity.BUSY, "source": "quiet", "composer": "absent", "settled": False}
    assert machine.seen(seen(1.5, offset=30, **STANDS)) == []
    assert machine.seen(seen(2.0, offset=40, **moves)) == []
    assert [kind(one) for one in machine.seen(seen(3.0, offset=50, **moves))] == [Save, LinkTurnAccepted]
    assert machine.seen(seen(4.0, offset=60, **STANDS)) == []
    assert machine.state.phase is Phase.SUBMITTED
    assert machine.seen(seen(6.1, offset=60, **STANDS)) == AGAIN
    assert machine.told(accepted(6.2, "hello"), 6.2) == [Save(), says_accepted("hooks: prompt accepted")]
    assert machine.told(ended(7.0), 7.0) == [says_ended("answer", True, "hooks: turn ended")]


def test_the_same_message_of_an_earlier_turn_proves_nothing_where_a_channel_tells() -> None:
    """A conversation that is gone on with is drawn while the message stands in the composer."""
    machine = submitted(shown="hello")
    assert machine.seen(seen(1.1, offset=30, echoed=True, **WORKS))[:1] == [Save()]
    assert machine.seen(seen(2.0, offset=40, echoed=True, **STANDS)) == []
    assert machine.seen(seen(4.1, offset=40, echoed=True, **STANDS)) == AGAIN


@pytest.mark.parametrize("channels", [True, False])
def test_a_title_that_changes_before_the_composer_is_drawn_proves_nothing(channels: bool) -> None:
    """For a moment the program seems to work without the message."""
    machine = submitted(shown="hello", channels=channels)
    assert machine.seen(seen(1.1, offset=30, **WORKS))[0] == Save()
    assert machine.seen(seen(1.2, offset=40, **STANDS, **WORKS)) == []
    assert machine.seen(seen(2.2, offset=60, **STANDS)) == []
    assert machine.seen(seen(4.3, offset=60, **STANDS)) == AGAIN


@pytest.mark.parametrize(
    ("channels", "proof"), [(True, "told"), (True, "person"), (False, "person"), (False, "echoed"), (True, "both")]
)
def test_what_a_program_took_and_gives_back_is_not_submitted_again(channels: bool, proof: str) -> None:
    machine = submitted(shown="hello", channels=channels)
    if proof == "told":
        machine.told(accepted(1.1, "hello"), 1.1)
    machine.seen(seen(1.2, offset=30, echoed=proof in ("echoed", "both"), **WORKS))
    person = proof in ("person", "both")
    assert machine.seen(seen(2.0, offset=40, person=person, **STANDS)) in ([], GIVEN_BACK)
    assert machine.over or machine.seen(seen(4.0, offset=40, person=person, **STANDS)) == GIVEN_BACK


GIVEN_BACK = [Clear(), says_interrupted("person", "composer: the message was given back")]


def test_a_message_that_was_taken_is_not_submitted_again_where_that_is_drawn_late() -> None:
    machine = submitted(shown="hello")
    machine.told(accepted(1.1, "hello"), 1.1)
    assert machine.seen(seen(5.0, offset=21, **STANDS)) == []
    assert machine.state.phase is Phase.WORKING


# --- it is taken out ---


def test_a_message_that_was_taken_out_is_typed_again_a_few_times_and_then_undelivered() -> None:
    machine, at = submitted(shown="hello"), 6.0
    for number, pause in enumerate(TYPED_AGAIN_AFTER_S):
        taken_out(machine, at, begins=at - 3.0)
        assert machine.state.typings == number + 1
        assert not machine.state.submitted
        if pause:
            assert machine.seen(seen(at + pause - 0.1)) == []
            assert machine.deadline == pytest.approx(at + pause)
        at += pause
        assert machine.seen(seen(at)) == [Save()]
        assert machine.saved() == [Type("paste", b"hello")]
        assert machine.typed("paste", 100, at) == []
        assert machine.seen(seen(at + 1.0, offset=110, changed_at=at, **STANDS)) == [Save()]
        assert machine.saved() == [Type("submit", b"\r")]
        assert machine.typed("submit", 120, at + 1.0) == [Save()]
        at += 6.1
    assert machine.seen(seen(at - 3.0, offset=130, **STANDS)) == AGAIN
    assert machine.seen(seen(at, offset=130, **STANDS)) == [TakeOut()]
    (command,) = machine.withdrawn(True, at)
    assert (kind(command), command.left) == (LinkUndelivered, False)


def test_what_was_taken_out_waits_for_what_a_message_waits_for() -> None:
    machine = submitted(shown="hello")
    taken_out(machine)
    for look in (seen(7.0, **WORKS), seen(8.0, composer="draft", text="a person's"), seen(9.0, can_receive=False)):
        assert machine.seen(look) == []
    assert machine.seen(seen(10.0)) == [Save()]


def test_a_paste_that_was_lost_is_typed_again() -> None:
    machine = pasted()
    assert machine.seen(seen(3.2, offset=11)) == [TakeOut()]
    assert machine.withdrawn(True, 14.0) == [Save()]
    assert machine.seen(seen(14.1)) == [Save()]
    assert machine.saved() == [Type("paste", b"hello")]


@pytest.mark.parametrize(
    ("row", "submits"), [("a message of one line", True), ("a message of one linea message of one line", False)]
)
def test_a_paste_that_comes_after_all_is_not_submitted_with_the_second(row: str, submits: bool) -> None:
    machine = turn(text="a message of one line", state=TurnState(phase=Phase.SETTLING, typings=1))
    machine.begin(0.0)
    machine.recalled("paste", 10, 0.1)
    (command,) = machine.seen(seen(1.0, composer="draft", offset=15, changed_at=0.12, text=row))
    assert command == (Save() if submits else says_undelivered("other text stood before it in the composer"))


def test_a_cancel_while_it_is_taken_out_or_kept_types_nothing_more() -> None:
    kept, leaving = submitted(shown="hello"), pasted()
    taken_out(kept)
    assert kept.interrupt() == [says_interrupted("interrupted", "not yet typed")]
    leaving.seen(seen(3.2, offset=11))
    assert leaving.interrupt() == [says_interrupted("interrupted", "not yet submitted", left=True)]
    assert leaving.withdrawn(True, 14.0) == []


def test_the_prompt_of_a_program_without_a_composer_is_typed_at_once_only() -> None:
    machine = turn(LINES, state=TurnState(phase=Phase.SUBMITTED, submitted=True, shown="hello", resubmitted=True))
    machine.begin(0.0)
    assert machine.seen(seen(9.0, **STANDS)) == [TakeOut()]
    (command,) = machine.withdrawn(True, 10.0)
    assert kind(command) is LinkUndelivered


# --- it was taken all the same ---


def test_a_report_that_comes_when_it_is_out_is_of_the_message_as_it_was_typed_before() -> None:
    kept = submitted(shown="hello")
    taken_out(kept)
    assert kept.told(accepted(1.1, "another prompt"), 6.1) == []
    assert kept.told(accepted(0.5, "hello"), 6.1) == [], "of an earlier turn"
    commands = kept.told(accepted(1.1, "hello"), 6.2)
    assert commands == [Clear(), Save(), says_accepted("hooks: prompt accepted")]
    assert kept.told(ended(7.0), 7.0) == [says_ended("answer", True, "hooks: turn ended")]


def test_the_same_message_of_an_earlier_turn_is_no_sign_that_it_was_taken_while_it_is_taken_out() -> None:
    machine = submitted(shown="hello")
    machine.seen(seen(3.1, echoed=True, **STANDS))
    assert machine.seen(seen(5.2, echoed=True, **STANDS)) == [TakeOut()]
    assert machine.seen(seen(5.4, echoed=True)) == []
    assert machine.withdrawing


def test_a_report_of_another_prompt_does_not_end_the_taking_out() -> None:
    machine = submitted(shown="hello")
    machine.seen(seen(3.1, **STANDS))
    machine.seen(seen(5.2, **STANDS))
    assert machine.told(accepted(5.3, "a person's own"), 5.3) == []
    assert machine.withdrawing


# --- on a terminal ---


@pytest.mark.parametrize("comes_back", [True, False])
async def test_nothing_is_submitted_that_left_the_composer_while_the_record_was_written(comes_back: bool) -> None:
    """A program that has started draws its composer again, empty. Where the message does not come back it is typed
    again, under another id."""
    terminal = Terminal()
    worker = await terminal.begin()
    await until(terminal.driver.turn.idle.is_set)
    terminal.draw("> hello")
    await terminal.judge()
    terminal.draw("started", "> ")
    await terminal.record()
    assert terminal.typed == [b"hello"]
    if comes_back:
        terminal.draw("started", "> hello")
        await terminal.judge(0.1)
        await terminal.record()
        assert terminal.typed == [b"hello", b"\r"]
    else:
        await terminal.judge(4.0)
        await until(lambda: terminal.phase is Phase.PREPARED)
        await terminal.record()
        await terminal.judge()
        await terminal.record()
        assert terminal.typed == [b"hello", b"hello"]
        assert {"t.1.paste", "t.1.paste.again1"} <= terminal.known
    assert [event for event in terminal.events if not isinstance(event, LinkTurnRecord)] == []
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
