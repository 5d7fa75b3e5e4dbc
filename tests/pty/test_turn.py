"""Playbooks of the turn machine, facts in and commands out: the message on its way to the program, restarts, and what
holds whatever happens."""

import functools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsed.model.agent import Activity
from synapsed.model.facts import PromptAccepted, TurnEnded, TurnInterrupted
from synapsed.model.link import LinkTurnAccepted, LinkTurnEnded, LinkTurnFailed
from synapsed.profiles.profile import Profile
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_types import UNANSWERED_S, Clear, Phase, Recall, Save, Seen, TakeOut, TurnState, Type
from synapsed.terminal.delivery import type_message
from tests.pty.playbook import (
    ASKED,
    LINES,
    OUTCOMES,
    TAKEN_BACK,
    TUI,
    accepted,
    delivery_of,
    ended,
    kind,
    ns,
    pasted,
    says_accepted,
    says_ended,
    says_interrupted,
    says_undelivered,
    seen,
    submitted,
    turn,
)


def test_nothing_is_typed_before_the_program_can_receive() -> None:
    machine = turn()
    machine.begin(0.0)
    for look in (
        seen(0.0, activity=Activity.STARTING),
        seen(0.1, composer="draft"),
        seen(0.2, activity=Activity.WAITING, asked=ASKED),
        seen(0.3, activity=Activity.BUSY),
    ):
        assert machine.seen(look) == []
    assert machine.state.phase is Phase.PREPARED


def test_a_paste_that_was_recorded_with_the_turn_is_typed_at_once() -> None:
    machine = turn(state=TurnState(phase=Phase.PASTING))
    assert machine.begin(0.0, fresh=True) == [Type("paste", b"hello")]
    assert machine.held(0.1) == []
    assert machine.seen(seen(0.2)) == [Save()]
    assert machine.saved() == [Type("paste", b"hello")]


def test_a_paste_that_was_recorded_before_a_restart_is_asked_for_first() -> None:
    machine = turn(state=TurnState(phase=Phase.PASTING))
    assert machine.begin(0.0) == [Recall("paste", b"hello")]


def test_a_person_who_types_between_the_decision_and_the_paste_holds_it() -> None:
    machine = turn()
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    assert machine.held(0.1) == []
    assert machine.seen(seen(0.2, composer="draft")) == []
    assert machine.seen(seen(0.3)) == [Save()]


def test_the_record_is_durable_before_the_paste_and_before_the_submit_key() -> None:
    submitted()  # its own assertions are the order


def test_an_unaccepted_message_gets_one_more_submit_key_and_is_then_taken_back() -> None:
    machine = submitted()
    assert machine.seen(seen(2.0, composer="draft")) == []
    assert machine.seen(seen(3.1, composer="draft", text="hello")) == [Save(), Type("submit2", b"\r")]
    assert machine.seen(seen(4.0, composer="draft")) == []
    assert machine.seen(seen(5.2, composer="draft")) == [TakeOut()]


@pytest.mark.parametrize("offset", [15, 20])
def test_a_program_that_has_printed_nothing_since_the_submit_key_may_not_have_it_yet(offset: int) -> None:
    """A second one would answer the question that the program asks about the first: `Proceed? (y/n)`."""
    machine = submitted()
    stands = {"composer": "draft", "text": "hello", "offset": offset}
    assert machine.seen(seen(3.1, **stands)) == []
    assert machine.deadline == pytest.approx(1.0 + UNANSWERED_S)
    assert machine.seen(seen(1.0 + UNANSWERED_S - 0.1, **stands)) == []
    assert machine.seen(seen(1.0 + UNANSWERED_S, **stands)) == [Save(), Type("submit2", b"\r")]
    assert machine.seen(seen(3.1 + UNANSWERED_S, **stands)) == [TakeOut()]


def test_a_canceled_message_does_not_wait_for_a_program_that_prints_nothing() -> None:
    machine = submitted()
    assert machine.interrupt() == [Save()]
    assert Clear() in machine.seen(seen(3.1, composer="draft", text="hello", offset=20))


def test_the_submit_key_is_not_pressed_again_where_something_else_stands() -> None:
    """What the program asks by then may have a default."""
    machine = submitted()
    assert machine.seen(seen(3.1, composer="draft", text="(1) delete all (2) keep [1]:")) == [Save()]


def test_a_message_that_is_taken_with_the_second_submit_key_is_not_waited_for_longer() -> None:
    """It stands above the composer. Only one that is nowhere to be seen may have been taken by a program that is slow
    to show it."""
    machine, vanished = submitted(), submitted()
    for one in (machine, vanished):
        assert one.seen(seen(3.1, composer="draft", text="hello")) == [Save(), Type("submit2", b"\r")]
    assert says_accepted("screen: the message left the composer") in machine.seen(seen(5.2, echoed=True))
    assert vanished.seen(seen(5.2)) == []


def test_a_program_that_may_still_come_to_the_submit_key_gets_no_second_one() -> None:
    """The second key is held back, again and again; at last the message is taken back."""
    machine = submitted()
    for at in (3.1, 6.0, 12.0):
        assert machine.seen(seen(at, composer="draft", text="hello")) == [Save(), Type("submit2", b"\r")]
        assert machine.held(at) == [Save()]
        assert not machine.state.resubmitted
    assert machine.seen(seen(30.0, composer="draft", text="hello")) == [Save(), Type("submit2", b"\r")]
    assert machine.held(30.0) == []
    assert machine.seen(seen(33.0, composer="draft")) == [TakeOut()]


def test_a_submit_key_that_did_something_else_is_pressed_once_more() -> None:
    """The screen moved, and the message still stands in the composer."""
    machine = submitted()
    moves = seen(1.1, activity=Activity.BUSY, source="quiet", composer="draft", offset=25, settled=False)
    assert machine.seen(moves) == []
    assert machine.state.phase is Phase.SUBMITTED
    assert Type("submit2", b"\r") in machine.seen(seen(4.0, composer="draft", text="hello", offset=25))


def test_a_program_has_its_time_from_when_it_has_read_the_submit_key() -> None:
    """It is stopped, or the machine swaps: a second key would be submitted too, and what is not read not taken back."""
    machine = submitted()
    for at in (2.0, 9.0, 300.0):
        assert machine.seen(seen(at, composer="draft", unread=True)) == []
    assert machine.seen(seen(300.1, composer="draft")) == []
    assert machine.seen(seen(302.2, composer="draft", text="hello")) == [Save(), Type("submit2", b"\r")]


def test_a_paste_that_is_not_read_is_undelivered_and_told_so() -> None:
    machine = pasted()
    (command,) = machine.seen(seen(9.0, unread=True))
    assert command == says_undelivered("the program does not read what is typed")


QUOTED = "what do you say of this\nhe wrote: what do you say of this"


@pytest.mark.parametrize(
    ("text", "row", "submits"),
    [
        ("tell me the time of day", "the message beforetell me the time of day", False),
        ("tell me the time of day, in words of more than a row", "before tell me the time of day, in wo", False),
        ("tell me the time of day", "tell me the time of day", True),
        ("tell me the time of day", "[Pasted text #1 +20 lines]", True),
        ("tell me the time of day", "! tell me the time of day", True),
        ("ok", "is it ok", True),
        (QUOTED, "he wrote: what do you say of this", True),
    ],
)
def test_a_message_behind_other_text_is_not_submitted_with_it(text: str, row: str, submits: bool) -> None:
    """A stopped program gave back what it had while the next message was on its way: that one is taken out again."""
    machine = pasted(text)
    (command,) = machine.seen(seen(1.0, composer="draft", offset=15, changed_at=0.12, text=row))
    if submits:
        assert command == Save()
    else:
        assert command == says_undelivered("other text stood before it in the composer")


@pytest.mark.parametrize("unread", [True, False])
def test_a_program_that_gets_little_of_a_busy_machine_is_waited_for(unread: bool) -> None:
    """It is about to read the message, or to show it, and would have it while its sender was told that it has not."""
    machine = pasted()
    for at in (4.0, 9.0, 60.0):
        assert machine.seen(seen(at, unread=unread, computes=True)) == []
        assert at < (machine.deadline or 0.0) < at + 1.0
    assert machine.seen(seen(60.05, composer="draft", offset=15, changed_at=59.0)) == [Save()]
    assert machine.state.phase is Phase.SUBMITTING


def test_a_submit_key_that_such_a_program_has_read_is_not_pressed_again() -> None:
    """Nor its message told to have failed, which it is about to work on."""
    machine = submitted()
    for at in (3.1, 9.0, 60.0):
        assert machine.seen(seen(at, composer="draft", computes=True)) == []
        assert at < (machine.deadline or 0.0) < at + 1.0
    assert kind(machine.seen(seen(60.5, activity=Activity.BUSY, composer="empty", offset=25))[1]) is LinkTurnAccepted


def test_a_program_that_computes_for_ever_gets_the_key_again_and_is_then_given_up() -> None:
    machine = submitted()
    assert machine.seen(seen(61.1, composer="draft", text="hello", computes=True)) == [Save(), Type("submit2", b"\r")]
    assert machine.seen(seen(64.0, composer="draft", computes=True)) == [TakeOut()]


def test_a_program_that_computes_for_ever_is_not_waited_for_that_long() -> None:
    machine = pasted()
    (command,) = machine.seen(seen(60.2, unread=True, computes=True))
    assert command == says_undelivered("the program does not read what is typed")


def test_a_message_that_left_the_composer_and_is_nowhere_may_have_been_taken() -> None:
    """Undelivered is what may be sent again."""
    machine = submitted()
    assert machine.seen(seen(3.1)) == [Save()]
    assert machine.seen(seen(4.0)) == []
    assert machine.seen(seen(23.0)) == [], "a busy machine: the next message must not come upon its work"
    (command,) = machine.seen(seen(23.2))
    assert kind(command) is LinkTurnFailed
    assert command.event.code == "TIMEOUT"
    assert "not known" in command.event.message


def test_a_program_that_is_slow_to_show_its_work_is_waited_for() -> None:
    machine = submitted()
    assert machine.seen(seen(3.1)) == [Save()]
    assert machine.seen(seen(9.0)) == []
    assert machine.seen(seen(9.1, activity=Activity.BUSY))[:2] == [Save(), says_accepted("test")]


def test_a_message_that_comes_back_into_the_composer_is_taken_back_at_once() -> None:
    machine = submitted()
    assert machine.seen(seen(3.1)) == [Save()]
    assert machine.seen(seen(5.2, composer="draft")) == [TakeOut()]


def test_a_cancel_of_a_message_that_shows_nothing_does_not_wait_for_it() -> None:
    machine = submitted()
    assert machine.seen(seen(3.1)) == [Save()]
    machine.interrupt()
    commands = machine.seen(seen(5.2))
    assert commands[-1] == says_interrupted("interrupted", "not taken")


def test_the_end_of_another_prompts_turn_is_not_this_ones() -> None:
    """A program that was slow to begin ends what it was sent before, when this has been sent already."""
    machine = submitted()
    assert machine.told(replace(ended(2.0, "another's answer"), prompt="what came before"), 2.0) == []
    (command,) = machine.told(replace(ended(3.0), prompt="hello"), 3.0)
    assert kind(command) is LinkTurnEnded
    assert command.event.answer == "answer"


def test_a_message_that_stands_above_the_composer_was_taken() -> None:
    machine = submitted()
    commands = machine.seen(seen(3.1, echoed=True))
    assert commands[:2] == [Save(), says_accepted("screen: the message left the composer")]


def test_a_paste_that_never_shows_is_taken_out_and_never_submitted() -> None:
    machine = pasted()
    assert machine.seen(seen(1.0, offset=11)) == []
    assert machine.seen(seen(3.2, offset=11)) == [TakeOut()]
    assert not machine.state.submitted
    assert machine.withdrawn(False, 14.0) == [says_undelivered("the program did not take the text into its composer")]


def test_a_program_that_does_not_echo_gets_its_submit_key() -> None:
    machine = turn(LINES)
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    machine.typed("paste", 10, 0.1)
    assert machine.seen(seen(3.2, composer="absent")) == [Save()]
    assert machine.state.phase is Phase.SUBMITTING


@pytest.mark.parametrize(
    ("profile", "text", "bracketed", "typed_from"),
    [(LINES, "a\nb", False, 10), (LINES, "a\nb", True, None), (LINES, "a", False, None), (TUI, "a\nb", False, None)],
)
def test_the_answer_to_lines_that_are_taken_one_by_one_begins_where_they_are_typed(
    profile: Profile, text: str, bracketed: bool, typed_from: int | None
) -> None:
    compose = functools.partial(type_message, profile.delivery, bracketed=bracketed)
    machine = PtyTurn(profile, delivery_of(text), compose, TurnState(), channels_tell=False)
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    machine.typed("paste", 10, 0.1)
    assert machine.state.typed_from == typed_from


def test_a_line_editor_that_shows_the_last_of_several_lines_gets_its_submit_key_at_once() -> None:
    machine = turn(LINES)
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    machine.typed("paste", 10, 0.1)
    assert machine.seen(seen(0.3, composer="absent", offset=20, changed_at=0.1)) == []
    assert machine.seen(seen(0.3, composer="absent", offset=20, changed_at=0.1, echoed=True)) == [Save()]
    assert machine.state.phase is Phase.SUBMITTING


def test_a_dialog_that_comes_up_after_the_paste_is_not_answered_by_the_submit_key() -> None:
    machine = pasted()
    dialog = seen(9.0, activity=Activity.WAITING, composer="absent", asked=ASKED, offset=40)
    assert machine.seen(dialog) == []
    assert machine.state.phase is Phase.SETTLING


def test_the_composer_may_come_back_some_time_after_the_dialog() -> None:
    machine = pasted()
    machine.seen(seen(60.0, activity=Activity.WAITING, composer="absent", asked=ASKED, offset=40))
    assert machine.seen(seen(60.1, activity=Activity.BUSY, composer="absent", offset=50)) == []
    assert machine.seen(seen(61.0, composer="draft", offset=60)) == [Save()]


def test_a_program_that_waits_is_not_told_to_submit_though_its_dialog_is_not_drawn_yet() -> None:
    machine = pasted()
    assert machine.seen(seen(1.0, activity=Activity.WAITING, composer="draft", offset=40)) == []
    assert machine.seen(seen(2.0, composer="draft", offset=40)) == [Save()]


def test_a_submit_key_that_is_held_is_pressed_later() -> None:
    machine = pasted()
    machine.seen(seen(1.0, composer="draft", offset=15))
    assert machine.saved() == [Type("submit", b"\r")]
    assert machine.held(1.1) == [Save()]
    assert not machine.state.submitted
    assert machine.seen(seen(2.0, composer="draft", offset=15)) == [Save()]
    assert machine.saved() == [Type("submit", b"\r")]


def test_a_submit_key_that_is_held_is_not_pressed_once_somebody_stops_the_turn() -> None:
    machine = pasted()
    machine.seen(seen(1.0, composer="draft", offset=15))
    assert machine.interrupt() == [Save()]
    assert machine.saved() == [TAKEN_BACK]


@pytest.mark.parametrize("phase", [Phase.PASTING, Phase.SETTLING])
@pytest.mark.parametrize("written", [True, False])
def test_a_restart_around_the_paste_asks_the_keeper(phase: Phase, *, written: bool) -> None:
    machine = turn(state=TurnState(phase=phase))
    assert machine.begin(100.0) == [Recall("paste", b"hello")]
    assert machine.recalled("paste", 10 if written else None, 100.0) == []
    assert machine.state.phase is (Phase.SETTLING if written else Phase.PREPARED)


def test_a_restart_before_the_submit_key_was_written_submits_once() -> None:
    machine = turn(state=TurnState(phase=Phase.SUBMITTING, submitted=True, submit_ns=1))
    assert machine.begin(100.0) == [Recall("submit", b"\r")]
    assert machine.recalled("submit", None, 100.0) == [Save()]
    assert not machine.state.submitted
    machine._pasted_at_offset = 0
    assert machine.seen(seen(101.0, composer="draft", offset=5)) == [Save()]
    assert machine.saved() == [Type("submit", b"\r")]


def test_a_restart_while_working_goes_on() -> None:
    machine = turn(state=TurnState(phase=Phase.WORKING, submitted=True, submit_ns=ns(1.0), submit_offset=20))
    assert machine.begin(100.0) == []
    assert machine.told(ended(50.0), 100.0) == [says_ended("answer", True, "hooks: turn ended")]


def test_an_illegal_step_raises_and_changes_nothing() -> None:
    machine = turn()
    with pytest.raises(ValueError, match="does not go"):
        machine._go(Phase.SUBMITTED)
    assert machine.state.phase is Phase.PREPARED


FACTS = st.one_of(
    st.builds(
        seen,
        st.just(0.0),
        activity=st.sampled_from(Activity),
        composer=st.sampled_from(["empty", "draft", "absent"]),
        offset=st.integers(0, 100),
        settled=st.booleans(),
        can_receive=st.booleans(),
        asked=st.sampled_from([None, ASKED]),
        error=st.sampled_from([None, ("MODEL_ERROR", "x")]),
        interrupted=st.booleans(),
        text=st.sampled_from(["", "hello"]),
        echoed=st.booleans(),
        person=st.booleans(),
    ),
    st.sampled_from(["saved", "held", "interrupt", "refuse", "found", "typed-paste", "typed-submit", "gone", "stays"]),
    st.builds(ended, st.floats(0, 50), st.sampled_from([None, "", "text"]), st.sampled_from([None, "a", "b"])),
    st.builds(accepted, st.floats(0, 50), st.sampled_from([None, "hello", "another"])),
    st.builds(TurnInterrupted, channel=st.just("hooks"), at_ns=st.integers(0, ns(50)), refused=st.booleans()),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(FACTS, max_size=30), st.booleans(), st.sampled_from([TUI, LINES]), st.sampled_from([None, "No."]))
def test_whatever_happens_a_leg_is_typed_once_or_again_when_it_is_out_and_a_turn_ends_once(
    facts: list[object], channels: bool, profile: Profile, note: str | None
) -> None:
    machine = turn(profile, channels=channels, denial=note)
    machine.begin(0.0)
    typed: list[tuple[int, int, str]] = []
    ends = 0
    now = 0.0
    pending: str | None = None
    for fact in facts:
        now += 0.7
        commands: list[object] = []
        match fact:
            case Seen():
                look = Seen(**{**{n: getattr(fact, n) for n in fact.__slots__}, "now": now, "changed_at": now - 0.5})
                commands = list(machine.seen(look))
            case TurnEnded() | TurnInterrupted() | PromptAccepted():
                commands = list(machine.told(fact, now))
            case "saved" if machine.state.phase in (Phase.PASTING, Phase.SUBMITTING) and pending is None:
                commands = list(machine.saved())
            case "held" if pending is not None:
                commands = list(machine.held(now))
                pending = None
                typed.pop()
            case "gone" | "stays" if machine.withdrawing:
                taken_out, typings = fact == "gone", machine.state.typings
                commands = list(machine.withdrawn(taken_out, now))
                assert taken_out or machine.state.typings == typings
            case "interrupt" if not machine.over:
                commands = list(machine.interrupt())
            case "refuse" if not machine.over:
                commands = list(machine.refuse(note, now))
            case "found":
                commands = list(machine.found(LinkTurnEnded("t", "t", False, "screen"), 5.0))
            case "typed-paste" | "typed-submit" if pending is not None:
                commands = list(machine.typed(pending, 10, now))
                pending = None
        for command in commands:
            if isinstance(command, Type):
                typed.append((machine.state.leg, machine.state.typings, command.part))
                pending = command.part if command.part != "submit2" else pending
            ends += kind(command) in OUTCOMES
    assert len(typed) == len(set(typed))
    submitted = [each for *each, part in typed if part == "submit"]
    assert all(typed.index((*each, "paste")) < typed.index((*each, "submit")) for each in submitted)
    assert ends == (1 if machine.over else 0)


def test_a_message_that_the_program_holds_until_it_has_started_is_not_typed_twice() -> None:
    """It stands in the composer; when the program has started it has its time to take it."""
    machine = submitted(shown="hello")
    for at in (4.0, 30.0, 60.0):
        assert machine.seen(seen(at, composer="draft", text="hello", offset=30, starting=True)) == []
    accept = TUI.delivery.accept_ms / 1000
    assert machine.seen(seen(60.0 + accept - 0.1, composer="draft", text="hello", offset=40)) == []
    again = machine.seen(seen(60.0 + accept, composer="draft", text="hello", offset=40))
    assert again == [Save(), Type("submit2", b"\r")]
