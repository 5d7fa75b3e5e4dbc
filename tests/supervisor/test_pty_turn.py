"""Playbooks of the turn machine: facts in, commands out, no clock but the one passed in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsed.model.agent import Activity
from synapsed.model.facts import PromptAccepted, TurnEnded, TurnFailed, TurnInterrupted
from synapsed.model.task import Prompt
from synapsed.profiles import Answer, Composer, Profile
from synapsed.supervisor.pty_turn import UNTOLD_UNSEEN_S, PtyTurn
from synapsed.supervisor.turn_steps import (
    Accepted,
    AnswerFound,
    Clear,
    Ended,
    Failed,
    FindAnswer,
    Interrupted,
    Phase,
    Recall,
    Save,
    Seen,
    TurnState,
    Type,
    Undelivered,
)
from synapsed.terminal.delivery import Typed
from synapsed.terminal.prompts import Asked
from synapsed.terminal.verdict import Verdict

TUI = Profile(name="tui", command="tui", composer=Composer(line="> (?P<text>.*)"))
LINES = Profile(name="lines", command="lines", composer=Composer(line="^> (?P<text>.*)$", at_cursor=True))
ASKED = Asked(Prompt(prompt_id="p", type="permission", prompt="May I?"), None)


def turn(profile: Profile = TUI, *, channels: bool = True, state: TurnState | None = None) -> PtyTurn:
    return PtyTurn(profile, "hello", compose, state or TurnState(), channels_tell=channels)


def compose(text: str) -> Typed:
    return Typed(text, text.encode(), b"\r")


def seen(
    now: float,
    *,
    activity: Activity = Activity.READY,
    composer: str = "empty",
    offset: int = 0,
    changed_at: float = 0.0,
    settled: bool = True,
    can_receive: bool | None = None,
    asked: Asked | None = None,
    error: tuple[str, str] | None = None,
    interrupted: bool = False,
    echoed: bool = False,
    text: str = "",
    stopped: bool = False,
) -> Seen:
    receives = activity is Activity.READY and composer == "empty" if can_receive is None else can_receive
    verdict = Verdict(
        activity=activity, evidence="test", source="test", settled=settled, can_receive=receives, asked=asked
    )
    return Seen(
        verdict=verdict,
        composer=composer,
        offset=offset,
        now=now,
        changed_at=changed_at,
        error=error,
        interrupted=interrupted,
        echoed=echoed,
        text=text,
        stopped=stopped,
    )


def pasted() -> PtyTurn:
    """A turn whose paste was written at 0.1 s, at offset 10."""
    machine = turn()
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    machine.typed("paste", 10, 0.1)
    return machine


def submitted(profile: Profile = TUI, *, channels: bool = True, shown: str = "") -> PtyTurn:
    """A turn whose submit key was written at 1.0 s, at offset 20; its message stood in the composer as `shown`."""
    machine = turn(profile, channels=channels)
    assert machine.begin(0.0) == []
    assert machine.seen(seen(0.0)) == [Save()]
    assert machine.saved() == [Type("paste", b"hello")]
    assert machine.typed("paste", 10, 0.1) == []
    assert machine.seen(seen(0.15, composer="draft", offset=15, changed_at=0.12)) == []
    assert machine.seen(seen(1.0, composer="draft", offset=15, changed_at=0.12, text=shown)) == [Save()]
    assert machine.state.submitted
    assert machine.saved() == [Type("submit", b"\r")]
    assert machine.typed("submit", 20, 1.0) == [Save()]
    assert machine.phase is Phase.SUBMITTED
    return machine


def ns(seconds: float) -> int:
    return int(seconds * 1e9)


def ended(at: float, answer: str | None = "answer", turn_id: str | None = None) -> TurnEnded:
    return TurnEnded(channel="hooks", at_ns=ns(at), answer=answer, turn=turn_id)


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
    assert machine.phase is Phase.PREPARED


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


def test_a_hook_ends_the_turn_exactly() -> None:
    machine = submitted()
    accepted = PromptAccepted(channel="hooks", at_ns=ns(1.05))
    assert machine.told(accepted, 1.05) == [Save(), Accepted("hooks: prompt accepted")]
    assert machine.told(ended(2.0), 2.0) == [Ended("answer", True, "hooks: turn ended")]
    assert machine.over


def test_a_report_from_before_the_submission_is_of_another_turn() -> None:
    machine = submitted()
    assert machine.told(ended(0.5), 1.1) == []
    assert not machine.over


def test_a_report_of_another_turn_of_the_program_is_not_ours() -> None:
    machine = submitted()
    machine.told(PromptAccepted(channel="hooks", at_ns=ns(1.1), turn="ours"), 1.1)
    assert machine.told(ended(1.5, turn_id="theirs"), 1.5) == []
    assert machine.told(ended(1.6, turn_id="ours"), 1.6) == [Ended("answer", True, "hooks: turn ended")]


def accepted(at: float, prompt: str | None, turn_id: str | None = None) -> PromptAccepted:
    return PromptAccepted(channel="hooks", at_ns=ns(at), prompt=prompt, turn=turn_id)


def test_what_the_program_says_of_another_prompt_is_neither_our_acceptance_nor_our_end() -> None:
    """It may prompt itself, or have other clients, at the very moment of the submission."""
    machine = submitted()
    assert machine.told(accepted(1.1, "A task in the background has ended.", "other"), 1.1) == []
    assert machine.told(ended(1.2, "of the other", "other"), 1.2) == []
    assert machine.phase is Phase.SUBMITTED
    assert machine.told(accepted(1.3, " hello\n", "ours"), 1.3) == [Save(), Accepted("hooks: prompt accepted")]
    assert machine.told(ended(1.4, "of the other", "other"), 1.4) == []
    assert machine.told(ended(1.5, "ours", "ours"), 1.5) == [Ended("ours", True, "hooks: turn ended")]


def test_a_person_who_joins_in_the_turn_does_not_take_its_end() -> None:
    machine = submitted()
    machine.told(accepted(1.1, "hello", "ours"), 1.1)
    assert machine.told(accepted(1.2, "and be quick", "ours"), 1.2) == []
    assert machine.told(ended(1.5, "both", "ours"), 1.5) == [Ended("both", True, "hooks: turn ended")]


def test_a_report_that_overtakes_the_keepers_word_is_kept() -> None:
    machine = turn(state=TurnState(phase=Phase.SUBMITTING, submitted=True, submit_ns=ns(1.0)))
    assert machine.begin(5.0) == [Recall("submit", b"\r")]
    assert machine.told(ended(2.0), 5.0) == []
    assert machine.recalled("submit", 20, 5.1) == [Save(), Ended("answer", True, "hooks: turn ended")]


def test_ready_without_a_report_waits_for_the_channel_and_then_looks_the_answer_up() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    assert machine.seen(seen(3.0, offset=90)) == []
    assert machine.deadline == pytest.approx(4.5)
    assert machine.seen(seen(4.6, offset=90)) == [FindAnswer(ns(1.0), "test")]
    assert machine.found(AnswerFound("text", False, "screen")) == [Ended("text", False, "screen")]


def test_a_silent_gap_is_not_the_end() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    machine.seen(seen(2.0, offset=40))
    assert machine.seen(seen(2.5, activity=Activity.BUSY, offset=50)) == []
    assert machine.seen(seen(4.0, offset=60)) == []
    assert machine.seen(seen(5.0, offset=60)) == []
    assert machine.phase is Phase.WORKING


def test_a_line_program_ends_when_its_prompt_is_back() -> None:
    machine = submitted(LINES, channels=False)
    assert machine.seen(seen(1.01, composer="draft", offset=20)) == []
    commands = machine.seen(seen(1.1, offset=60))
    assert [type(command) for command in commands] == [Save, Accepted, FindAnswer]


def test_a_line_program_that_has_written_nothing_since_is_not_done() -> None:
    machine = submitted(LINES, channels=False)
    assert machine.seen(seen(1.01, offset=20)) == []
    assert machine.phase is Phase.SUBMITTED


def test_an_unaccepted_message_gets_one_more_submit_key_and_then_fails() -> None:
    machine = submitted()
    assert machine.seen(seen(2.0, composer="draft")) == []
    assert machine.seen(seen(3.1, composer="draft")) == [Save(), Type("submit2", b"\r")]
    assert machine.seen(seen(4.0, composer="draft")) == []
    (command,) = machine.seen(seen(5.2, composer="draft"))
    assert isinstance(command, Undelivered)
    assert command.left


def test_a_message_that_left_the_composer_and_is_nowhere_was_not_taken() -> None:
    machine = submitted()
    assert machine.seen(seen(3.1)) == [Save()]
    assert machine.seen(seen(4.0)) == []
    (command,) = machine.seen(seen(5.2))
    assert isinstance(command, Undelivered)
    assert not command.left


def test_a_message_that_stands_above_the_composer_was_taken() -> None:
    machine = submitted()
    commands = machine.seen(seen(3.1, echoed=True))
    assert commands[:2] == [Save(), Accepted("screen: the message left the composer")]


def test_a_paste_that_never_shows_is_undelivered_and_never_submitted() -> None:
    machine = pasted()
    assert machine.seen(seen(1.0, offset=11)) == []
    commands = machine.seen(seen(3.2, offset=11))
    assert [type(command) for command in commands] == [Undelivered]
    assert not machine.state.submitted


def test_a_program_that_does_not_echo_gets_its_submit_key() -> None:
    machine = turn(LINES)
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    machine.typed("paste", 10, 0.1)
    assert machine.seen(seen(3.2, composer="absent")) == [Save()]
    assert machine.phase is Phase.SUBMITTING


def test_a_dialog_that_comes_up_after_the_paste_is_not_answered_by_the_submit_key() -> None:
    machine = pasted()
    dialog = seen(9.0, activity=Activity.WAITING, composer="absent", asked=ASKED, offset=40)
    assert machine.seen(dialog) == []
    assert machine.phase is Phase.SETTLING


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
    assert machine.saved() == [Clear(), Interrupted("interrupted", "not yet submitted")]


def test_a_refusal_before_the_submission_is_no_word_on_the_turn() -> None:
    machine = turn(channels=False)
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    machine.typed("paste", 10, 0.1)
    machine.seen(seen(1.0, activity=Activity.WAITING, composer="absent", asked=ASKED, offset=40))
    assert machine.refuse("It was refused.") == []
    machine.seen(seen(2.0, composer="draft", offset=50))
    machine.saved()
    machine.typed("submit", 50, 2.1)
    machine.seen(seen(2.2, activity=Activity.BUSY, offset=60))
    assert machine.seen(seen(4.0, offset=70)) == [FindAnswer(ns(2.0), "test")]


def test_interrupting_before_the_submission_takes_the_text_back() -> None:
    machine = pasted()
    assert machine.interrupt() == [Clear(), Interrupted("interrupted", "not yet submitted")]


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
    stopped = Interrupted("interrupted", "not yet submitted" if written else "not yet typed")
    assert end == ([Clear(), stopped] if written else [stopped])
    assert machine.over


def test_a_message_that_is_canceled_is_not_submitted_again() -> None:
    machine = submitted()
    assert machine.interrupt() == [Save()]
    assert machine.seen(seen(2.0, composer="draft")) == []
    stopped = Interrupted("interrupted", "not taken")
    assert machine.seen(seen(3.1, composer="draft")) == [Clear(certain=False), stopped]


def test_interrupting_a_running_turn_ends_it_when_the_program_is_ready() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    assert machine.interrupt() == [Save()]
    assert machine.seen(seen(1.3, activity=Activity.BUSY, offset=35)) == []
    assert machine.seen(seen(1.4, offset=40)) == [Interrupted("interrupted", "test")]


def test_the_rest_before_the_program_drew_anything_is_not_that_after_an_interrupt() -> None:
    machine = submitted()
    assert machine.told(PromptAccepted(channel="hooks", at_ns=ns(1.05)), 1.1) == [
        Save(),
        Accepted("hooks: prompt accepted"),
    ]
    machine.interrupt()
    assert machine.seen(seen(1.2, composer="draft", offset=20)) == []
    assert machine.seen(seen(1.4, offset=40)) == [Interrupted("interrupted", "test")]


def test_a_moment_of_rest_after_an_interrupt_that_did_nothing_is_not_its_end() -> None:
    """A program that had put the message off rests for a moment before it begins."""
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    machine.interrupt()
    assert machine.seen(seen(1.3, settled=False, offset=35)) == []
    assert machine.deadline is not None
    assert machine.seen(seen(1.4, activity=Activity.BUSY, offset=40)) == []
    assert machine.told(ended(1.5), 1.5) != []


def test_what_a_program_that_was_not_stopped_answers_is_the_answer() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    machine.interrupt()
    assert machine.go_on() == [Save()]
    assert machine.told(ended(1.5), 1.5) == [Ended("answer", True, "hooks: turn ended")]
    assert machine.go_on() == []


def test_a_report_of_the_end_after_an_interrupt_is_the_interrupts() -> None:
    machine = submitted()
    machine.told(PromptAccepted(channel="hooks", at_ns=ns(1.1)), 1.1)
    machine.interrupt()
    assert machine.told(ended(1.5, answer="partial"), 1.5) == [Interrupted("interrupted", "hooks: turn ended")]


@pytest.mark.parametrize("by_report", [True, False])
def test_a_person_who_stops_the_turn_in_the_terminal(by_report: bool) -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    if by_report:
        clear, command = machine.told(TurnInterrupted(channel="status", at_ns=ns(2.0)), 2.0)
    else:
        clear, command = machine.seen(seen(2.0, offset=50, interrupted=True))
    assert clear == Clear(certain=False)
    assert isinstance(command, Interrupted)
    assert command.reason == "person"


@pytest.mark.parametrize(("shown", "back"), [("hello", "hello"), ("[Pasted #1 +9 lines]", "[Pasted #2 +9 lines]")])
def test_a_message_that_the_program_gives_back_was_stopped_and_is_cleared(shown: str, back: str) -> None:
    machine = submitted(shown=shown)
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    assert machine.seen(seen(1.3, composer="draft", text=back, offset=40, settled=False)) == []
    assert machine.seen(seen(1.6, composer="draft", text=back, offset=40)) == [
        Clear(certain=False),
        Interrupted("person", "composer: the message was given back"),
    ]
    assert machine.holds(back)
    assert not machine.holds(f"{back} and a person's words")


def test_a_persons_draft_after_a_turn_is_not_the_message_given_back() -> None:
    machine = submitted(shown="hello")
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    assert machine.seen(seen(2.0, composer="draft", text="my own", offset=40)) == []
    assert machine.told(ended(2.5), 2.5) == [Ended("answer", True, "hooks: turn ended")]


def test_a_message_that_was_never_seen_to_leave_the_composer_is_not_given_back() -> None:
    machine = submitted(shown="hello")
    machine.told(PromptAccepted(channel="hooks", at_ns=ns(1.1)), 1.1)
    assert machine.seen(seen(1.2, composer="draft", text="hello", offset=21)) == []
    assert machine.phase is Phase.WORKING


def test_a_status_record_of_a_stopped_turn_ends_it_as_stopped() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    assert machine.seen(seen(1.4, offset=40, stopped=True)) == []
    assert machine.seen(seen(3.5, offset=40, stopped=True)) == [Clear(certain=False), Interrupted("person", "test")]


def test_a_refused_permission_that_stops_the_turn_is_no_answer() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.WAITING, asked=ASKED, offset=30))
    assert machine.refuse() == [Save()]
    assert machine.seen(seen(2.0, offset=40)) == []
    (command,) = machine.seen(seen(3.6, offset=40))
    assert command == Interrupted("refused", "test")


def test_a_refusal_after_which_the_model_goes_on_gives_its_answer() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.WAITING, asked=ASKED, offset=30))
    machine.refuse()
    assert machine.told(ended(2.0, answer="As you wish."), 2.0) == [Ended("As you wish.", True, "hooks: turn ended")]


def test_a_refusal_is_told_to_the_model_in_a_second_leg() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.WAITING, asked=ASKED, offset=30))
    assert machine.refuse("It was refused.") == [Save()]
    machine.seen(seen(2.0, offset=40))
    assert machine.seen(seen(3.6, offset=40)) == [Save()]
    assert (machine.phase, machine.text) == (Phase.PREPARED, "It was refused.")
    assert machine.told(ended(3.7, answer=""), 3.7) == []
    assert machine.seen(seen(3.8, offset=40)) == [Save()]
    assert machine.saved() == [Type("paste", b"It was refused.")]
    machine.typed("paste", 41, 3.9)
    assert machine.seen(seen(4.5, composer="draft", offset=50, changed_at=4.0)) == [Save()]
    assert machine.saved() == [Type("submit", b"\r")]
    machine.typed("submit", 50, 4.6)
    assert machine.told(ended(5.0, answer="I could not."), 5.0) == [Ended("I could not.", True, "hooks: turn ended")]


def test_a_second_leg_that_cannot_be_typed_ends_as_refused() -> None:
    machine = turn(state=TurnState(phase=Phase.SETTLING, submitted=True, leg=1, note="No."))
    assert machine.begin(0.0) == [Recall("paste", b"No.")]
    machine.recalled("paste", 5, 0.0)
    clear, command = machine.seen(seen(9.0, offset=6))
    assert clear == Clear()
    assert isinstance(command, Interrupted)
    assert machine.state.submitted


def test_what_the_shell_finds_of_a_turn_that_was_interrupted_meanwhile_changes_nothing() -> None:
    machine = turn()
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    machine.interrupt()
    assert machine.held(0.1) == [Interrupted("interrupted", "not yet typed")]
    assert machine.held(0.1) == []
    assert machine.typed("paste", 1, 0.1) == []
    assert machine.recalled("paste", None, 0.1) == []
    assert machine.saved() == []


def test_the_programs_own_error_fails_the_turn() -> None:
    machine = submitted()
    machine.seen(seen(1.2, activity=Activity.BUSY, offset=30))
    machine.seen(seen(2.0, offset=50, error=("MODEL_ERROR", "API Error: 400")))
    (command,) = machine.seen(seen(3.6, offset=50, error=("MODEL_ERROR", "API Error: 400")))
    assert command == Failed("MODEL_ERROR", "API Error: 400", "test")


def test_a_reported_failure_fails_the_turn() -> None:
    machine = submitted()
    failure = TurnFailed(channel="hooks", at_ns=ns(2.0), code="RATE_LIMITED", message="429")
    assert machine.told(failure, 2.0) == [Failed("RATE_LIMITED", "429", "hooks: turn failed")]


@pytest.mark.parametrize("phase", [Phase.PASTING, Phase.SETTLING])
@pytest.mark.parametrize("written", [True, False])
def test_a_restart_around_the_paste_asks_the_keeper(phase: Phase, *, written: bool) -> None:
    machine = turn(state=TurnState(phase=phase))
    assert machine.begin(100.0) == [Recall("paste", b"hello")]
    assert machine.recalled("paste", 10 if written else None, 100.0) == []
    assert machine.phase is (Phase.SETTLING if written else Phase.PREPARED)


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
    assert machine.told(ended(50.0), 100.0) == [Ended("answer", True, "hooks: turn ended")]


def test_an_illegal_step_raises_and_changes_nothing() -> None:
    machine = turn()
    with pytest.raises(ValueError, match="does not go"):
        machine._go(Phase.WORKING)
    assert machine.phase is Phase.PREPARED


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
    ),
    st.sampled_from(["saved", "held", "interrupt", "refuse", "found", "typed-paste", "typed-submit"]),
    st.builds(ended, st.floats(0, 50), st.sampled_from([None, "", "text"]), st.sampled_from([None, "a", "b"])),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(FACTS, max_size=30), st.booleans(), st.sampled_from([TUI, LINES]))
def test_whatever_happens_a_turn_pastes_and_submits_at_most_once_and_ends_once(
    facts: list[object], channels: bool, profile: Profile
) -> None:
    machine = turn(profile, channels=channels)
    machine.begin(0.0)
    typed: list[str] = []
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
            case TurnEnded():
                commands = list(machine.told(fact, now))
            case "saved" if machine.phase in (Phase.PASTING, Phase.SUBMITTING) and pending is None:
                commands = list(machine.saved())
            case "held" if pending is not None:
                commands = list(machine.held(now))
                pending = None
                typed.pop()
            case "interrupt" if not machine.over:
                commands = list(machine.interrupt())
            case "refuse" if not machine.over:
                commands = list(machine.refuse())
            case "found":
                commands = list(machine.found(AnswerFound("t", False, "screen")))
            case "typed-paste" | "typed-submit" if pending is not None:
                commands = list(machine.typed(pending, 10, now))
                pending = None
        for command in commands:
            if isinstance(command, Type):
                typed.append(command.part)
                pending = command.part if command.part != "submit2" else pending
            ends += isinstance(command, Ended | Failed | Interrupted | Undelivered)
    assert all(typed.count(part) <= 1 for part in ("paste", "submit", "submit2"))
    assert "submit" not in typed or typed.index("paste") < typed.index("submit")
    assert ends == (1 if machine.over else 0)


BOX = Profile(
    name="box", command="box", composer=Composer(line="┃ (?P<text>.*)", at_cursor=True), answer=Answer(mode="blocks")
)


def test_an_empty_composer_of_a_full_screen_program_is_no_prompt_that_came_back() -> None:
    machine = submitted(BOX)
    assert machine.seen(seen(1.5, offset=50)) == []
    assert machine.phase is Phase.SUBMITTED
    assert machine.seen(seen(4.0, offset=60, echoed=True))[1:] == [Accepted("screen: the message left the composer")]


def test_a_program_that_is_slow_to_begin_is_not_done() -> None:
    machine = submitted(BOX)
    assert machine.told(PromptAccepted(channel="c", at_ns=int(1.1e9)), 1.1)[1:] == [Accepted("c: prompt accepted")]
    machine.seen(seen(1.2, offset=50))
    assert machine.seen(seen(1.2 + UNTOLD_UNSEEN_S - 0.1, offset=50)) == []
    assert machine.seen(seen(8.0, activity=Activity.BUSY, offset=60)) == []
    assert machine.seen(seen(9.0, offset=70)) == []
    wait = BOX.answer.channel_wait_ms / 1000
    assert [type(command) for command in machine.seen(seen(9.1 + wait, offset=70))] == [FindAnswer]


def test_a_turn_that_nobody_saw_or_told_ends_at_last() -> None:
    machine = submitted(BOX)
    machine.told(PromptAccepted(channel="c", at_ns=int(1.1e9)), 1.1)
    machine.seen(seen(1.2, offset=50))
    assert [type(c) for c in machine.seen(seen(1.3 + UNTOLD_UNSEEN_S, offset=50))] == [FindAnswer]
