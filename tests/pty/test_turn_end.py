"""Playbooks of the turn machine: when a turn is over, and with which answer or error."""

from typing import Any

import pytest

from synapsed.model.agent import Activity
from synapsed.model.facts import ChannelFact, PromptAccepted, TurnFailed
from synapsed.model.link import LinkTurnAccepted, LinkTurnEnded, LinkUndelivered
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import AnswerSpec, Composer
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_types import (
    EMPTY_UNTOLD_S,
    UNKNOWN,
    UNTOLD_UNSEEN_S,
    FindAnswer,
    Phase,
    Recall,
    Save,
    TurnState,
    Type,
)
from tests.pty.playbook import (
    LINES,
    accepted,
    ended,
    kind,
    ns,
    says_accepted,
    says_ended,
    says_failed,
    says_undelivered,
    seen,
    submitted,
    turn,
)


def test_a_hook_ends_the_turn_exactly() -> None:
    machine = submitted()
    accepted = PromptAccepted(channel="hooks", at_ns=ns(1.05))
    assert machine.told(accepted, 1.05) == [Save(), says_accepted("hooks: prompt accepted")]
    assert machine.told(ended(2.0), 2.0) == [says_ended("answer", True, "hooks: turn ended")]
    assert machine.over


def test_a_message_that_a_hook_refused_is_not_delivered_whatever_its_channel_calls_that() -> None:
    machine = submitted()
    assert machine.told(ended(2.0, answer=None), 2.0) == [FindAnswer(ns(1.0))]
    found = LinkUndelivered("t", "Not yet.")
    assert machine.found(found, 2.1) == [says_undelivered("Not yet.")]
    assert machine.over


def test_a_report_from_before_the_submission_is_of_another_turn() -> None:
    machine = submitted()
    assert machine.told(ended(0.5), 1.1) == []
    assert not machine.over


def test_a_report_of_another_turn_of_the_program_is_not_ours() -> None:
    machine = submitted()
    machine.told(PromptAccepted(channel="hooks", at_ns=ns(1.1), turn="ours"), 1.1)
    assert machine.told(ended(1.5, turn_id="theirs"), 1.5) == []
    assert machine.told(ended(1.6, turn_id="ours"), 1.6) == [says_ended("answer", True, "hooks: turn ended")]


def test_what_the_program_says_of_another_prompt_is_neither_our_acceptance_nor_our_end() -> None:
    """It may prompt itself, or have other clients, at the very moment of the submission."""
    machine = submitted()
    assert machine.told(accepted(1.1, "A task in the background has ended.", "other"), 1.1) == []
    assert machine.told(ended(1.2, "of the other", "other"), 1.2) == []
    assert machine.state.phase is Phase.SUBMITTED
    assert machine.told(accepted(1.3, " hello\n", "ours"), 1.3) == [Save(), says_accepted("hooks: prompt accepted")]
    assert machine.told(ended(1.4, "of the other", "other"), 1.4) == []
    assert machine.told(ended(1.5, "ours", "ours"), 1.5) == [says_ended("ours", True, "hooks: turn ended")]


def test_a_person_who_joins_in_the_turn_does_not_take_its_end() -> None:
    machine = submitted()
    machine.told(accepted(1.1, "hello", "ours"), 1.1)
    assert machine.told(accepted(1.2, "and be quick", "ours"), 1.2) == []
    assert machine.told(ended(1.5, "both", "ours"), 1.5) == [says_ended("both", True, "hooks: turn ended")]


def test_a_report_that_overtakes_the_keepers_word_is_kept() -> None:
    machine = turn(state=TurnState(phase=Phase.SUBMITTING, submitted=True, submit_ns=ns(1.0)))
    assert machine.begin(5.0) == [Recall("submit", b"\r")]
    assert machine.told(ended(2.0), 5.0) == []
    assert machine.recalled("submit", 20, 5.1) == [Save(), says_ended("answer", True, "hooks: turn ended")]


def test_ready_without_a_report_waits_for_the_channel_and_then_looks_the_answer_up() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    assert machine.seen(seen(3.0, offset=90)) == []
    assert machine.deadline == pytest.approx(4.5)
    assert machine.seen(seen(4.6, offset=90)) == [FindAnswer(ns(1.0))]
    assert machine.found(LinkTurnEnded("t", "text", False, "screen"), 5.0) == [says_ended("text", False, "screen")]


def test_a_silent_gap_is_not_the_end() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    machine.seen(seen(2.0, offset=40))
    assert machine.seen(seen(2.5, activity=Activity.BUSY, offset=50)) == []
    assert machine.seen(seen(4.0, offset=60)) == []
    assert machine.seen(seen(5.0, offset=60)) == []
    assert machine.state.phase is Phase.WORKING


def test_a_line_program_ends_when_its_prompt_is_back() -> None:
    machine = submitted(LINES, channels=False)
    assert machine.seen(seen(1.01, composer="draft", offset=20)) == []
    commands = machine.seen(seen(1.1, offset=60))
    assert [kind(command) for command in commands] == [Save, LinkTurnAccepted, FindAnswer]


def test_a_program_that_worked_between_two_looks_is_done_at_once() -> None:
    """So says its status record, written after the message was submitted (at offset 20)."""
    machine = submitted(channels=False)
    assert machine.seen(seen(1.1, offset=60, worked_until=20)) == []
    commands = machine.seen(seen(1.2, offset=60, worked_until=40))
    assert [kind(command) for command in commands] == [Save, LinkTurnAccepted, FindAnswer]


def test_a_line_program_that_has_written_nothing_since_is_not_done() -> None:
    machine = submitted(LINES, channels=False)
    assert machine.seen(seen(1.01, offset=20)) == []
    assert machine.state.phase is Phase.SUBMITTED


def test_the_programs_own_error_fails_the_turn() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    machine.seen(seen(2.0, offset=50, error=("MODEL_ERROR", "API Error: 400")))
    (command,) = machine.seen(seen(3.6, offset=50, error=("MODEL_ERROR", "API Error: 400")))
    assert command == says_failed("MODEL_ERROR", "API Error: 400", "test")


def test_a_reported_failure_fails_the_turn() -> None:
    machine = submitted()
    failure = TurnFailed(channel="hooks", at_ns=ns(2.0), code="RATE_LIMITED", message="429")
    assert machine.told(failure, 2.0) == [says_failed("RATE_LIMITED", "429", "hooks: turn failed")]


BOX = Profile(
    name="box",
    command="box",
    composer=Composer(line="┃ (?P<text>.*)", at_cursor=True),
    answer=AnswerSpec(mode="blocks"),
)


def test_an_empty_composer_of_a_full_screen_program_is_no_prompt_that_came_back() -> None:
    machine = submitted(BOX)
    assert machine.seen(seen(1.5, offset=50)) == []
    assert machine.state.phase is Phase.SUBMITTED
    assert machine.seen(seen(4.0, offset=60, echoed=True))[1:] == [
        says_accepted("screen: the message left the composer")
    ]


def test_a_program_that_is_slow_to_begin_is_not_done() -> None:
    machine = submitted(BOX)
    assert machine.told(PromptAccepted(channel="c", at_ns=int(1.1e9)), 1.1)[1:] == [says_accepted("c: prompt accepted")]
    machine.seen(seen(1.2, offset=50))
    assert machine.seen(seen(1.2 + UNTOLD_UNSEEN_S - 0.1, offset=50)) == []
    assert machine.seen(seen(8.0, activity=Activity.BUSY, offset=60)) == []
    assert machine.seen(seen(9.0, offset=70)) == []
    wait = BOX.answer.channel_wait_ms / 1000
    assert [type(command) for command in machine.seen(seen(9.1 + wait, offset=70))] == [FindAnswer]


def test_a_composer_that_is_out_of_sight_is_no_sign_of_work() -> None:
    """It is drawn again, or the daemon has just come back: the program may be about to begin."""
    machine = submitted(BOX)
    machine.seen(seen(1.1, activity=Activity.BUSY, source="composer", composer="absent", offset=30))
    assert machine.state.phase is Phase.WORKING
    machine.seen(seen(1.2, offset=50))
    assert machine.seen(seen(1.2 + UNTOLD_UNSEEN_S - 0.1, offset=50)) == []


def test_a_turn_that_nobody_saw_or_told_ends_at_last() -> None:
    machine = submitted(BOX)
    machine.told(PromptAccepted(channel="c", at_ns=int(1.1e9)), 1.1)
    machine.seen(seen(1.2, offset=50))
    assert [type(c) for c in machine.seen(seen(1.3 + UNTOLD_UNSEEN_S, offset=50))] == [FindAnswer]


def untold(**more: Any) -> tuple[PtyTurn, float]:
    """A turn whose message the program took and put off, as far as its screen tells, and when that looks done."""
    machine = submitted(BOX, **more)
    machine.seen(seen(1.5, activity=Activity.BUSY, offset=50))
    found = machine.seen(seen(2.0, offset=60))
    assert (found or machine.seen(seen(machine.deadline or 0.0, offset=60))) == [FindAnswer(ns(1.0))]
    return machine, 2.0


NOTHING = LinkTurnEnded("t", " \n", False, "screen")


def test_no_answer_of_a_turn_that_no_channel_tells_of_is_not_its_end() -> None:
    machine, since = untold()
    assert machine.found(NOTHING, 5.0) == []
    assert machine.state.phase is Phase.WORKING
    assert machine.seen(seen(since + EMPTY_UNTOLD_S - 0.1, offset=60)) == []
    assert machine.told(accepted(40.0, "hello", "t1"), 40.0) == [Save()]
    assert machine.told(ended(50.0, "Late.", "t1"), 50.0) == [says_ended("Late.", True, "hooks: turn ended")]


def test_it_is_not_known_what_became_of_one_that_has_no_answer_for_long() -> None:
    machine, since = untold()
    machine.found(NOTHING, 5.0)
    machine.seen(seen(since + 1, offset=60))
    end = since + EMPTY_UNTOLD_S
    assert machine.seen(seen(end, offset=60)) == [FindAnswer(ns(1.0))]
    assert machine.found(NOTHING, end) == [says_failed("TIMEOUT", UNKNOWN, "screen")]


def silent() -> PtyTurn:
    """A turn without channels whose message left the composer and stands above it, and nothing else does yet."""
    machine = submitted(BOX, channels=False)
    assert machine.seen(seen(4.0, offset=40, echoed=True))[1:] == [
        says_accepted("screen: the message left the composer")
    ]
    assert machine.seen(seen(5.0, offset=40, echoed=True)) == [FindAnswer(ns(1.0))]
    assert machine.found(NOTHING, 5.0) == []
    return machine


def test_silence_after_the_submit_key_is_no_answer() -> None:
    """The program is slow to show that it works; what it draws then may be the answer."""
    machine = silent()
    assert machine.seen(seen(4.0 + EMPTY_UNTOLD_S - 0.1, offset=40)) == []
    assert machine.seen(seen(124.5, offset=50, settled=False)) == []
    assert machine.state.phase is Phase.WORKING
    machine = silent()
    assert machine.seen(seen(30.0, offset=50)) == [FindAnswer(ns(1.0))]
    assert machine.found(LinkTurnEnded("t", "Hi.", False, "screen"), 30.0) == [says_ended("Hi.", False, "screen")]


def test_a_clock_is_no_answer_and_keeps_no_turn_open() -> None:
    machine = silent()
    for at in (30, 60, 90):
        assert machine.seen(seen(at, offset=at + 20)) == [FindAnswer(ns(1.0))]
        assert machine.found(NOTHING, at) == []
    assert machine.seen(seen(4.0 + EMPTY_UNTOLD_S, offset=150)) == [FindAnswer(ns(1.0))]
    assert machine.found(NOTHING, 4.0 + EMPTY_UNTOLD_S) == [says_failed("TIMEOUT", UNKNOWN, "screen")]


def test_a_silent_program_that_was_seen_at_work_may_have_no_answer() -> None:
    machine = silent()
    assert machine.seen(seen(30.0, activity=Activity.BUSY, offset=50)) == []
    assert machine.seen(seen(40.0, offset=60)) == [FindAnswer(ns(1.0))]
    assert machine.found(NOTHING, 40.0) == [says_ended(" \n", False, "screen")]


def test_an_answer_on_the_screen_counts_where_no_channel_tells() -> None:
    machine, since = untold()
    machine.found(NOTHING, 5.0)
    machine.seen(seen(since + EMPTY_UNTOLD_S, offset=60))
    assert machine.found(LinkTurnEnded("t", "Hi.", False, "screen"), 5.0) == [says_ended("Hi.", False, "screen")]


@pytest.mark.parametrize("more", [{"command": True}, {"channels": False}], ids=["a command", "no channel"])
def test_a_turn_of_which_nothing_is_told_may_have_no_answer(more: dict[str, bool]) -> None:
    machine, _ = untold(**more)
    assert machine.found(NOTHING, 5.0) == [says_ended(" \n", False, "screen")]


@pytest.mark.parametrize("told", [accepted(1.6, "hello", "t1"), ended(1.6, None)], ids=["accepted", "ended"])
def test_a_turn_that_was_told_may_have_no_answer(told: ChannelFact) -> None:
    machine = submitted(BOX)
    machine.seen(seen(1.5, activity=Activity.BUSY, offset=50))
    machine.told(told, 1.7)
    if machine.state.phase is not Phase.READING:
        machine.seen(seen(2.0, offset=60))
        assert machine.deadline is not None
        machine.seen(seen(machine.deadline, offset=60))
    assert machine.found(NOTHING, 5.0) == [says_ended(" \n", False, "screen")]


def test_a_message_that_stands_in_the_composer_is_not_answered_by_what_stands_below_it() -> None:
    """Its screen moved for a while, and the composer was not to be seen meanwhile: the submit key was passed over."""
    machine = submitted(BOX, shown="hello")
    moved = machine.seen(seen(9.0, activity=Activity.BUSY, source="quiet", composer="absent", offset=30))
    assert [kind(command) for command in moved] == [Save, LinkTurnAccepted]
    assert machine.seen(seen(10.0, composer="draft", text="hello", offset=40)) == []
    commands = machine.seen(seen(12.1, composer="draft", text="hello", offset=40))
    assert commands == [Save(), Type("submit2", b"\r")]
