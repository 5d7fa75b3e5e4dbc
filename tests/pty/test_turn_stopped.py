"""Playbooks of the turn machine: a turn that somebody stops, or whose permission is refused."""

import pytest

from synapsed.model.agent import Activity
from synapsed.model.facts import ChannelFact, PromptAccepted, TurnInterrupted
from synapsed.model.link import LinkTurnEnded, LinkTurnInterrupted
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_types import Clear, FindAnswer, Phase, Recall, Save, TakeOut, TurnState, Type
from tests.pty.playbook import (
    ASKED,
    TAKEN_BACK,
    UNTYPED,
    accepted,
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


def test_a_refusal_before_the_submission_is_no_word_on_the_turn() -> None:
    machine = turn(channels=False)
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    machine.typed("paste", 10, 0.1)
    machine.seen(seen(1.0, activity=Activity.WAITING, composer="absent", asked=ASKED, offset=40))
    assert machine.refuse("It was refused.", 0.0) == []
    machine.seen(seen(2.0, composer="draft", offset=50))
    machine.saved()
    machine.typed("submit", 50, 2.1)
    machine.seen(seen(2.2, activity=Activity.BUSY, offset=60))
    assert machine.seen(seen(4.0, offset=70)) == [FindAnswer(ns(2.0))]


def test_interrupting_before_the_submission_takes_the_text_back() -> None:
    machine = pasted()
    assert machine.interrupt() == [TAKEN_BACK]


@pytest.mark.parametrize("how", ["typed", "held", "saved", "recalled", "never written"])
def test_interrupting_while_the_paste_is_on_its_way_waits_for_what_comes_of_it(how: str) -> None:
    machine = turn()
    machine.begin(0.0)
    machine.seen(seen(0.0))
    assert machine.interrupt() == []
    assert not machine.over
    match how:
        case "typed":
            end = machine.typed("paste", 10, 0.1)
        case "held":
            end = machine.held(0.1)
        case "saved":
            end = machine.saved()
        case "recalled":
            end = machine.recalled("paste", 10, 0.1)
        case _:
            end = machine.recalled("paste", None, 0.1)
    written = how in ("typed", "recalled")
    assert end == [TAKEN_BACK if written else UNTYPED]
    assert machine.over


def test_a_message_that_is_canceled_is_not_submitted_again() -> None:
    machine = submitted()
    assert machine.interrupt() == [Save()]
    assert machine.seen(seen(2.0, composer="draft")) == []
    stopped = says_interrupted("interrupted", "not taken")
    assert machine.seen(seen(3.1, composer="draft")) == [Clear(), stopped]


def test_a_message_that_was_not_read_yet_is_not_said_to_be_canceled() -> None:
    machine = submitted()
    machine.interrupt()
    assert machine.seen(seen(9.0, composer="draft", unread=True)) == []
    assert machine.seen(seen(9.1, activity=Activity.BUSY, offset=40)) == [Save(), says_accepted("test")]


@pytest.mark.parametrize("stop", [False, True])
def test_a_program_that_stops_reading_half_way_is_told(stop: bool) -> None:
    machine = turn(state=TurnState(phase=Phase.PASTING))
    assert machine.begin(0.0, fresh=True) == [Type("paste", b"hello")]
    if stop:
        machine.interrupt()
    (command,) = machine.unread()
    assert command == (TAKEN_BACK if stop else says_undelivered("the program does not read what is typed"))
    assert machine.over
    assert machine.unread() == []


def test_interrupting_a_running_turn_ends_it_when_the_program_is_ready() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    assert machine.interrupt() == [Save()]
    assert machine.seen(seen(1.3, activity=Activity.BUSY, offset=35)) == []
    assert machine.seen(seen(1.4, offset=40)) == [says_interrupted("interrupted", "test")]


def test_the_rest_before_the_program_drew_anything_is_not_that_after_an_interrupt() -> None:
    machine = submitted()
    assert machine.told(PromptAccepted(channel="hooks", at_ns=ns(1.05)), 1.1) == [
        Save(),
        says_accepted("hooks: prompt accepted"),
    ]
    machine.interrupt()
    assert machine.seen(seen(1.2, composer="draft", offset=20)) == []
    assert machine.seen(seen(1.4, offset=40)) == [says_interrupted("interrupted", "test")]


def test_a_moment_of_rest_after_an_interrupt_that_did_nothing_is_not_its_end() -> None:
    """A program that had put the message off rests for a moment before it begins."""
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    machine.interrupt()
    assert machine.seen(seen(1.3, settled=False, offset=35)) == []
    assert machine.deadline is not None
    assert machine.seen(seen(1.4, activity=Activity.BUSY, offset=40)) == []
    assert machine.told(ended(1.5), 1.5) != []


def test_a_program_that_says_that_it_was_interrupted_has_stopped_before_it_rests() -> None:
    """It may be slow to come to rest: its hooks run."""
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    assert machine.seen(seen(1.3, activity=Activity.BUSY, offset=40, interrupted=True)) == [], "nobody asked"
    machine.interrupt()
    told = machine.seen(seen(1.4, activity=Activity.BUSY, offset=40, interrupted=True))
    assert told == [says_interrupted("interrupted", "screen: interrupted")]


def test_what_a_program_has_not_read_did_not_stop_it() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    machine.interrupt()
    assert machine.seen(seen(2.5, offset=40, unread=True)) == []
    assert machine.deadline is not None
    assert machine.seen(seen(2.6, offset=40)) == [says_interrupted("interrupted", "test")]


def test_what_a_program_that_was_not_stopped_answers_is_the_answer() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    machine.interrupt()
    assert machine.go_on() == [Save()]
    assert machine.told(ended(1.5), 1.5) == [says_ended("answer", True, "hooks: turn ended")]
    assert machine.go_on() == []


def test_a_report_of_the_end_after_an_interrupt_is_the_interrupts() -> None:
    machine = submitted()
    machine.told(PromptAccepted(channel="hooks", at_ns=ns(1.1)), 1.1)
    machine.interrupt()
    assert machine.told(ended(1.5, answer="partial"), 1.5) == [says_interrupted("interrupted", "hooks: turn ended")]


@pytest.mark.parametrize("by_report", [True, False])
def test_a_person_who_stops_the_turn_in_the_terminal(by_report: bool) -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    if by_report:
        clear, command = machine.told(TurnInterrupted(channel="status", at_ns=ns(2.0)), 2.0)
    else:
        clear, command = machine.seen(seen(2.0, offset=50, interrupted=True))
    assert clear == Clear()
    assert kind(command) is LinkTurnInterrupted
    assert command.event.reason == "person"


@pytest.mark.parametrize(("shown", "back"), [("hello", "hello"), ("[Pasted #1 +9 lines]", "[Pasted #2 +9 lines]")])
def test_a_message_that_the_program_gives_back_was_stopped_and_is_cleared(shown: str, back: str) -> None:
    machine = submitted(shown=shown)
    machine.told(accepted(1.1, "hello"), 1.1)
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    assert machine.seen(seen(1.3, composer="draft", text=back, offset=40, settled=False)) == []
    assert machine.seen(seen(1.6, composer="draft", text=back, offset=40)) == []
    assert machine.deadline == pytest.approx(2.8), "a hook may have refused it, which a channel then tells"
    assert machine.seen(seen(2.9, composer="draft", text=back, offset=40)) == [
        Clear(),
        says_interrupted("person", "composer: the message was given back"),
    ]
    assert machine.holds(back)
    assert not machine.holds(f"{back} and a person's words")


HELD_OPEN = {"activity": Activity.BUSY, "source": "hooks", "composer": "draft", "text": "hello", "changed_at": 5.0}
"""The program was stopped before it said anything, and has told nobody; the message stands in its composer again."""


def held_open(*, left: bool) -> PtyTurn:
    machine = submitted(shown="hello")
    machine.told(accepted(1.1, "hello"), 1.1)
    if left:
        machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    return machine


def test_a_message_that_is_given_back_ends_an_interrupt_at_once_though_a_channel_has_the_turn_open() -> None:
    machine = held_open(left=True)
    machine.interrupt()
    assert machine.seen(seen(5.1, offset=40, **HELD_OPEN)) == []
    assert machine.deadline == pytest.approx(5.25), "it is drawn"
    returned = says_interrupted("interrupted", "composer: the message was given back")
    assert machine.seen(seen(5.3, offset=40, **HELD_OPEN)) == [returned]


@pytest.mark.parametrize("left", [True, False])
def test_a_message_that_is_given_back_late_ends_a_turn_that_a_channel_has_open(left: bool) -> None:
    """Its stop was given up as not confirmed; a screen that is behind shows the message for a moment only."""
    machine = held_open(left=left)
    machine.interrupt()
    machine.go_on()
    assert machine.seen(seen(5.1, offset=40, **HELD_OPEN)) == []
    assert machine.deadline == pytest.approx(15.0)
    assert machine.seen(seen(15.1, offset=40, **HELD_OPEN)) == [
        Clear(),
        says_interrupted("person", "composer: the message was given back"),
    ]
    assert machine.asked_to_stop


def test_a_draft_of_a_persons_does_not_end_a_turn_that_a_channel_has_open() -> None:
    machine = held_open(left=True)
    assert machine.seen(seen(30.0, offset=40, **{**HELD_OPEN, "text": "hello there"})) == []
    assert machine.state.phase is Phase.WORKING


@pytest.mark.parametrize(
    ("row", "holds"),
    [
        ("hello", True),
        ("hello there", False),
        ("", False),
        ("[Pasted #9 +9 lines]", True),
    ],
)
def test_a_placeholder_may_be_given_back_in_full(row: str, holds: bool) -> None:
    assert submitted(shown="[Pasted #1 +9 lines]").holds(row) is holds


def test_a_row_of_a_wrapped_message_is_known_again() -> None:
    machine = turn(text="a message of one line that is longer than its composer is wide\nand another")
    assert machine.holds("a message of one line that is longer than its")
    assert not machine.holds("a message")
    assert not machine.holds("a message of one line that is longer than mine")


def test_a_persons_draft_after_a_turn_is_not_the_message_given_back() -> None:
    machine = submitted(shown="hello")
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    assert machine.seen(seen(2.0, composer="draft", text="my own", offset=40)) == []
    assert machine.told(ended(2.5), 2.5) == [says_ended("answer", True, "hooks: turn ended")]


def test_a_message_that_was_never_seen_to_leave_the_composer_is_not_given_back() -> None:
    machine = submitted(shown="hello")
    machine.told(PromptAccepted(channel="hooks", at_ns=ns(1.1)), 1.1)
    assert machine.seen(seen(1.2, composer="draft", text="hello", offset=21)) == []
    assert machine.state.phase is Phase.WORKING


OLD_SIGN = {"activity": Activity.BUSY, "source": "screen", "settled": False}


@pytest.mark.parametrize("composer", ["draft", "absent"])
def test_what_a_slow_program_still_shows_of_the_turn_before_ends_no_turn(composer: str) -> None:
    """Its screen is behind: it draws the last turn's sign of work, and takes that away, before it reads the submit key;
    its composer is hidden for a moment."""
    machine = submitted(shown="hello")
    assert machine.seen(seen(1.2, composer=composer, text="hello", offset=30, **OLD_SIGN)) == []
    assert machine.state.phase is Phase.SUBMITTED
    assert machine.seen(seen(1.6, composer="draft", text="hello", offset=40)) == []
    assert machine.seen(seen(1.9, composer="draft", text="hello", offset=40)) == []
    assert machine.told(accepted(1.8, "hello"), 2.0) == [Save(), says_accepted("hooks: prompt accepted")]
    machine.seen(seen(2.1, activity=Activity.BUSY, source="hooks", composer="draft", text="hello", offset=45))
    assert machine.seen(seen(2.5, composer="draft", text="hello", offset=45)) == [], "it may still be behind"
    assert machine.told(ended(2.6), 2.6) == [says_ended("answer", True, "hooks: turn ended")]


def test_a_mark_of_the_turn_before_that_is_drawn_late_stops_no_turn() -> None:
    machine = submitted(shown="hello")
    machine.told(accepted(1.1, "hello"), 1.1)
    assert machine.seen(seen(1.4, composer="draft", text="hello", offset=40, interrupted=True)) == []
    clear, command = machine.seen(seen(1.6, offset=50, interrupted=True))
    assert (clear, command) == (Clear(), says_interrupted("person", "test")), (
        "this one is of the message that was taken"
    )


def test_a_program_at_work_on_what_it_had_before_has_its_time_to_take_the_message() -> None:
    machine = submitted(shown="hello")
    for at in (2.0, 30.0, 60.0):
        assert machine.seen(seen(at, composer="draft", text="hello", offset=30, **OLD_SIGN)) == []
    assert machine.seen(seen(61.0, composer="draft", text="hello", offset=40)) == []
    assert machine.seen(seen(62.1, composer="draft", text="hello", offset=40)) == [Save(), Type("submit2", b"\r")]


def test_a_composer_that_stays_away_while_the_program_works_has_given_the_message() -> None:
    machine = submitted(shown="hello")
    assert machine.seen(seen(1.5, composer="absent", offset=30, **OLD_SIGN)) == []
    assert machine.seen(seen(2.1, composer="absent", offset=40, **OLD_SIGN)) == [Save(), says_accepted("test")]


def test_a_status_record_of_a_stopped_turn_ends_it_as_stopped() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    assert machine.seen(seen(1.4, offset=40, stopped=True)) == []
    assert machine.seen(seen(3.5, offset=40, stopped=True)) == [Clear(), says_interrupted("person", "test")]


def test_a_refused_permission_that_stops_the_turn_is_no_answer() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.WAITING, asked=ASKED, offset=30))
    assert machine.refuse(None, 0.0) == [Save()]
    assert machine.seen(seen(2.0, offset=40)) == []
    (command,) = machine.seen(seen(3.6, offset=40))
    assert command == says_interrupted("refused", "test")


def test_a_refusal_that_a_later_answer_overrules_is_not_told_to_the_model() -> None:
    """The program did not take its key; what the person then allowed was done, and the turn ended as any other."""
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.WAITING, asked=ASKED, offset=30))
    machine.refuse("It was refused.", 0.0)
    assert machine.overrule() == [Save()]
    assert (machine.state.refused, machine.state.note) == (False, None)
    assert machine.overrule() == []
    machine.seen(seen(2.0, activity=Activity.BUSY, offset=40))
    machine.seen(seen(3.0, offset=50))
    assert machine.seen(seen(5.0, offset=50)) == [FindAnswer(ns(1.0))]


def test_a_program_that_works_on_was_not_refused() -> None:
    """A person may have allowed it in the terminal at the same moment."""
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.WAITING, asked=ASKED, offset=30))
    machine.refuse("It was refused.", 0.0)
    works = {"activity": Activity.BUSY, "source": "title", "composer": "absent"}
    assert machine.seen(seen(2.0, offset=40, **works)) == []
    assert machine.deadline is not None
    assert machine.seen(seen(machine.deadline, offset=50, **works)) == [Save()]
    machine.seen(seen(9.0, offset=60))
    assert machine.seen(seen(11.0, offset=60)) == [FindAnswer(ns(1.0))]


def test_an_open_turn_alone_is_no_work_after_a_refusal() -> None:
    """Its end may never be told."""
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.WAITING, asked=ASKED, offset=30))
    machine.refuse(None, 0.0)
    for at in (2.0, 9.0):
        assert machine.seen(seen(at, activity=Activity.BUSY, source="hooks", offset=40)) == []
    machine.seen(seen(10.0, offset=40))
    (command,) = machine.seen(seen(12.0, offset=40))
    assert command == says_interrupted("refused", "test")


def test_a_refusal_after_which_the_model_goes_on_gives_its_answer() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.WAITING, asked=ASKED, offset=30))
    machine.refuse(None, 0.0)
    assert machine.told(ended(2.0, answer="As you wish."), 2.0) == [
        says_ended("As you wish.", True, "hooks: turn ended")
    ]


def test_a_refusal_is_told_to_the_model_in_a_second_leg() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.WAITING, asked=ASKED, offset=30))
    assert machine.refuse("It was refused.", 0.0) == [Save()]
    machine.seen(seen(2.0, offset=40))
    assert machine.seen(seen(3.6, offset=40)) == [Save()]
    assert (machine.state.phase, machine.text) == (Phase.PREPARED, "It was refused.")
    assert machine.told(ended(3.7, answer=""), 3.7) == []
    assert machine.seen(seen(3.8, offset=40)) == [Save()]
    assert machine.saved() == [Type("paste", b"It was refused.")]
    machine.typed("paste", 41, 3.9)
    assert machine.seen(seen(4.5, composer="draft", offset=50, changed_at=4.0)) == [Save()]
    assert machine.saved() == [Type("submit", b"\r")]
    machine.typed("submit", 50, 4.6)
    assert machine.told(ended(5.0, answer="I could not."), 5.0) == [
        says_ended("I could not.", True, "hooks: turn ended")
    ]


@pytest.mark.parametrize(
    "late", [ended(2.5, answer=""), TurnInterrupted(channel="hooks", at_ns=ns(2.5))], ids=["end", "stop"]
)
def test_a_refusal_is_told_to_the_model_although_an_answer_is_being_looked_for(late: ChannelFact) -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.WAITING, asked=ASKED, offset=30))
    machine.refuse("It was refused.", 0.0)
    assert machine.told(ended(2.0, answer=None), 2.0) == [FindAnswer(ns(1.0))]
    assert machine.told(late, 2.5) == [Save()]
    assert machine.found(LinkTurnEnded("t", "", False, "screen"), 5.0) == []
    assert (machine.state.phase, machine.text) == (Phase.PREPARED, "It was refused.")


DENIED = TurnInterrupted(channel="server", at_ns=ns(2.0), refused=True)


def test_a_denial_over_which_the_program_stops_is_told_to_the_model() -> None:
    machine = submitted(denial="One was denied.")
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    assert machine.told(DENIED, 2.0) == [Save()]
    assert (machine.state.phase, machine.text, machine.state.leg) == (Phase.PREPARED, "One was denied.", 1)
    after = turn(state=machine.state, denial="One was denied.")  # of the next daemon
    assert after.begin(2.5) == []
    assert after.text == "One was denied."


def test_a_denial_without_words_for_the_model_ends_the_turn_as_refused() -> None:
    machine = submitted()
    assert machine.told(DENIED, 2.0) == [says_interrupted("refused", "server: turn interrupted")]


def test_a_person_who_refused_as_well_is_whom_the_model_hears_of() -> None:
    machine = submitted(denial="One was denied.")
    machine.seen(seen(1.2, activity=Activity.WAITING, asked=ASKED, offset=30))
    machine.refuse("It was refused.", 0.0)
    assert machine.told(DENIED, 2.0) == [Save()]
    assert machine.text == "It was refused."


def test_a_denial_is_not_why_a_turn_ends_that_is_being_stopped() -> None:
    machine = submitted(denial="One was denied.")
    machine.interrupt()
    assert machine.told(DENIED, 2.0) == [says_interrupted("interrupted", "server: turn interrupted")]


def test_a_turn_that_a_person_stopped_is_not_stopped_by_a_denial() -> None:
    machine = submitted(denial="One was denied.")
    stopped = TurnInterrupted(channel="server", at_ns=ns(2.0))
    assert machine.told(stopped, 2.0) == [Clear(), says_interrupted("person", "server: turn interrupted")]


def test_a_second_leg_that_cannot_be_typed_ends_as_refused() -> None:
    machine = turn(state=TurnState(phase=Phase.SETTLING, submitted=True, leg=1, note="No."))
    assert machine.begin(0.0) == [Recall("paste", b"No.")]
    machine.recalled("paste", 5, 0.0)
    assert machine.seen(seen(9.0, offset=6)) == [TakeOut()]
    (command,) = machine.withdrawn(False, 9.0)
    assert kind(command) is LinkTurnInterrupted
    assert command.left
    assert machine.state.submitted


def test_what_the_shell_finds_of_a_turn_that_was_interrupted_meanwhile_changes_nothing() -> None:
    machine = turn()
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    machine.interrupt()
    assert machine.held(0.1) == [says_interrupted("interrupted", "not yet typed")]
    assert machine.held(0.1) == []
    assert machine.typed("paste", 1, 0.1) == []
    assert machine.recalled("paste", None, 0.1) == []
    assert machine.saved() == []
