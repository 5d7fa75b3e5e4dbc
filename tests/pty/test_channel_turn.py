"""The machine of a turn over a channel, played without any: given once, looked up before it is given again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.interfaces import FoundTurn, Reach, Submitted
from synapsed.model.facts import (
    AssistantSaid,
    ChannelFact,
    PromptAccepted,
    TurnEnded,
    TurnFailed,
    TurnInterrupted,
)
from synapsed.model.link import (
    LinkTurnAccepted,
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnInterrupted,
    LinkTurnProgress,
    LinkUndelivered,
)
from synapsed.pty.channel_turn import KEY_KEEPS_S, LOST_S, SENDING_S, ChannelTurn, ChannelTurnState
from synapsed.pty.turn_types import (
    NEXT,
    Command,
    GiveMessage,
    LookUp,
    Phase,
    RenewKey,
    Save,
    Say,
    StopTurn,
)
from tests.pty.playbook import delivery_of

NOW = 1000.0

SETTLES = 15.0


def turn(settles_s: float = 0.0, **state: Any) -> ChannelTurn:
    fields = {"channel": "server", "key": "k1", "minted_at": NOW, **state}
    delivery = delivery_of("the message", task="task")
    return ChannelTurn(delivery, ChannelTurnState(**fields), denial="it was denied", settles_s=settles_s)


def working(**state: Any) -> ChannelTurn:
    return turn(phase=Phase.WORKING, turn="t1", taken=True, **state)


def told(kind: type[ChannelFact], **fields: Any) -> Any:
    return kind(**{"channel": "server", "at_ns": 1, "turn": "t1", **fields})


def events(commands: list[Command]) -> list[Any]:
    return [command.event for command in commands if isinstance(command, Say)]


def test_a_question_that_was_not_answered_is_asked_once_more_and_only_until_another_is() -> None:
    """By time where the channel is reached all the same; not behind a message that was given meanwhile: the program may
    not show it yet."""
    it = turn()
    assert it.begin(fresh=False) == [LookUp("k1")]
    assert it.unsent("500", sent=True, now=NOW) == []
    assert it.waited(NOW + 1.0) == [LookUp("k1")]
    assert it.unsent("500", sent=True, now=NOW + 1.0) == []
    assert it.reached("idle") == [LookUp("k1")]
    assert it.found(None, "idle", NOW + 1.5) == [GiveMessage("k1", "the message")]
    it.submitted(Submitted(turn="t1"), NOW + 1.6)
    assert it.waited(NOW + 10.0) == []


def test_a_message_is_given_and_its_answer_told() -> None:
    it = turn()
    assert it.begin(fresh=True) == [GiveMessage("k1", "the message")]
    save, accepted = it.submitted(Submitted(turn="t1"), NOW)
    assert save == Save()
    assert events([accepted]) == [LinkTurnAccepted("task", "server: turn begun")]
    assert events(it.told(told(AssistantSaid, message_id="m", text="first"), NOW)) == [
        LinkTurnProgress("task", "m", "first")
    ]
    assert events(it.told(told(TurnEnded, answer="done"), NOW)) == [
        LinkTurnEnded("task", "done", True, "server: turn ended")
    ]
    assert it.over


def test_an_end_that_comes_before_the_answer_to_the_submission_is_kept() -> None:
    it = turn()
    it.begin(fresh=True)
    assert it.told(told(TurnEnded, answer="of another", turn="t0"), NOW) == []
    assert it.told(told(TurnEnded, answer="fast"), NOW) == []
    commands = it.submitted(Submitted(turn="t1"), NOW)
    assert [type(event) for event in events(commands)] == [LinkTurnAccepted, LinkTurnEnded]
    assert events(commands)[1].answer == "fast"


def test_the_prompt_s_key_says_whose_turn_it_is() -> None:
    it = turn()
    it.begin(fresh=True)
    assert it.told(told(PromptAccepted, key="other", turn="t0"), NOW) == []
    assert events(it.told(told(PromptAccepted, key="k1"), NOW)) == [LinkTurnAccepted("task", "server: prompt accepted")]
    assert it.submitted(Submitted(turn="t1"), NOW) == []
    assert it.told(told(TurnEnded, answer="x", turn="t0"), NOW) == []
    assert not it.over


def test_one_that_joined_a_turn_of_the_person_says_so() -> None:
    it = turn()
    it.begin(fresh=True)
    (said,) = events(it.submitted(Submitted(turn="t1", joined=True), NOW))
    assert said.evidence == "server: joined a turn of the person's"


def joining(**state: Any) -> ChannelTurn:
    """A turn whose message was given into a turn of the person's, and does not stand in it yet."""
    it = turn(settles_s=SETTLES, **state)
    it.begin(fresh=True)
    it.submitted(Submitted(turn="t1", joined=True), NOW)
    return it


@pytest.mark.parametrize("sending", [True, False])
def test_what_a_turn_said_before_the_message_joined_it_is_no_answer(sending: bool) -> None:
    """Neither where it came before the program's word that it has the message."""
    it = turn()
    it.begin(fresh=True)
    said = told(AssistantSaid, message_id="m", text="to the person")
    if sending:
        assert it.told(said, NOW) == []
    else:
        it.submitted(Submitted(turn="t1", joined=True), NOW)
        assert it.told(said, NOW) == []
    commands = it.told(told(PromptAccepted, key="k1"), NOW)
    assert [type(event) for event in events(commands)] == ([LinkTurnAccepted] if sending else [])
    assert Save() in commands, "the next daemon knows it, too"
    assert events(it.told(told(AssistantSaid, message_id="m", text="to ours"), NOW)) == [
        LinkTurnProgress("task", "m", "to ours")
    ]
    assert events(it.told(told(TurnEnded, answer="ours"), NOW))[0].answer == "ours"


@pytest.mark.parametrize("kind", [TurnEnded, TurnFailed])
def test_the_end_of_a_turn_in_which_the_message_does_not_stand_yet_is_another_s(kind: type[ChannelFact]) -> None:
    it = joining()
    more = {"answer": "to the person"} if kind is TurnEnded else {"message": "no"}
    assert it.told(told(kind, **more), NOW) == [LookUp("k1")], "by its key alone"
    assert it.found(None, "idle", NOW) == []
    assert it.told(told(PromptAccepted, key="k1", turn="t2"), NOW) == [Save()]
    assert events(it.told(told(TurnEnded, answer="ours", turn="t2"), NOW))[0].answer == "ours"


def test_a_message_that_was_given_into_another_s_turn_and_never_stands_there_is_lost() -> None:
    it = joining()
    it.told(told(TurnEnded, answer="to the person"), NOW)
    it.found(None, "idle", NOW)
    assert it.waited(NOW + SETTLES) == [LookUp("k1")]
    (event,) = events(it.found(None, "idle", NOW + SETTLES))
    assert (type(event), event.code) == (LinkTurnFailed, "INTERRUPTED")


def test_the_next_daemon_asks_for_the_message_and_not_for_the_turn_that_it_joined() -> None:
    it = turn(phase=Phase.WORKING, turn="t1", taken=True, joining=True)
    assert it.begin(fresh=False) == [LookUp("k1")]
    over = told(TurnEnded, answer="ours", turn="t2")
    commands = it.found(FoundTurn(turn="t2", over=over), "idle", NOW)
    assert events(commands)[0].answer == "ours"


def test_a_person_who_stops_their_turn_stops_the_message_that_has_joined_it() -> None:
    """codex 0.169.0 drops it then."""
    (event,) = events(joining().told(told(TurnInterrupted), NOW))
    assert (type(event), event.reason) == (LinkTurnInterrupted, "person")


def test_a_joined_turn_that_is_stopped_ends_with_it() -> None:
    it = joining()
    assert it.interrupt() == [Save(), StopTurn("t1")]
    (event,) = events(it.told(told(TurnInterrupted), NOW))
    assert (type(event), event.reason) == (LinkTurnInterrupted, "interrupted")


# --- a daemon, or a connection, that ended ---------------------------------------------------------------------------


def test_after_a_restart_the_program_is_asked_before_anything_is_delivery_of() -> None:
    assert turn().begin(fresh=False) == [LookUp("k1")]
    assert working().begin(fresh=False) == [LookUp("k1", "t1")]


def test_what_the_program_has_is_not_given_again() -> None:
    it = turn()
    it.begin(fresh=False)
    commands = it.found(FoundTurn(turn="t1", over=told(TurnEnded, answer="it is")), "idle", NOW)
    assert GiveMessage not in map(type, commands)
    assert [type(event) for event in events(commands)] == [LinkTurnAccepted, LinkTurnEnded]


def test_what_it_does_not_have_is_given_once_it_rests() -> None:
    it = turn()
    it.begin(fresh=False)
    assert it.found(None, "busy", NOW) == []
    assert it.reached("busy") == [LookUp("k1")]
    assert it.found(None, "idle", NOW) == [GiveMessage("k1", "the message")]


def test_a_key_that_is_old_is_replaced_durably_first() -> None:
    it = turn()
    it.begin(fresh=False)
    late = NOW + KEY_KEEPS_S + 1
    assert it.found(None, "idle", late) == [RenewKey(0)]
    assert it.keyed("k2", late) == [Save(), GiveMessage("k2", "the message")]
    assert it.state.key == "k2"


def test_a_submission_that_was_cut_off_is_looked_up() -> None:
    it = turn()
    it.begin(fresh=True)
    assert it.unsent("reset", sent=True, now=NOW) == []
    assert it.reached("away") == []
    assert it.reached("idle") == [LookUp("k1")]
    assert it.reached("idle") == []  # it was asked already
    assert events(it.found(FoundTurn(turn="t1"), "busy", NOW)) == [
        LinkTurnAccepted("task", "server: it has the message")
    ]


def test_where_it_cannot_be_looked_up_it_is_never_given_again() -> None:
    it = turn()
    it.begin(fresh=True)
    it.unsent("reset", sent=True, now=NOW)
    assert it.waited(NOW + SENDING_S - 1) == []
    (event,) = events(it.waited(NOW + SENDING_S))
    assert isinstance(event, LinkTurnFailed)
    assert event.code == "TIMEOUT"
    assert it.over


def test_an_end_that_was_missed_is_asked_for() -> None:
    it = working()
    assert it.lost(NOW) == []
    assert it.reached("idle") == [LookUp("k1", "t1")]
    assert events(it.found(FoundTurn(turn="t1", over=told(TurnEnded, answer="meanwhile")), "idle", NOW)) == [
        LinkTurnEnded("task", "meanwhile", True, "server: turn ended")
    ]


def test_an_end_without_its_answer_is_asked_for() -> None:
    it = working()
    assert it.told(told(TurnEnded), NOW) == [LookUp("k1", "t1")]


def test_a_conversation_that_has_it_no_more() -> None:
    it = working()
    it.begin(fresh=False)
    (event,) = events(it.found(None, "idle", NOW))
    assert (type(event), event.code) == (LinkTurnFailed, "INTERRUPTED")


@pytest.mark.parametrize("reach", ["idle", "busy"])
def test_a_turn_that_is_not_shown_yet_is_looked_for_again(reach: Reach) -> None:
    """So is one that codex 0.157.0 has begun with: it lists it seconds later, and its message seconds after that."""
    it = working(settles_s=SETTLES)
    it.begin(fresh=False)
    assert it.found(None, reach, NOW) == []
    assert it.waited(NOW + 0.5) == []
    assert it.waited(NOW + 1.0) == [LookUp("k1", "t1")]
    assert it.found(None, reach, NOW + SETTLES - 1) == []
    assert it.waited(NOW + 2 * SETTLES) == [LookUp("k1", "t1")]
    commands = it.found(None, reach, NOW + 2 * SETTLES)
    assert [type(event) for event in events(commands)] == ([] if reach == "busy" else [LinkTurnFailed])
    assert [event.code for event in events(it.found(None, reach, NOW + LOST_S) or commands)] == ["INTERRUPTED"]


def test_a_turn_that_is_shown_late_goes_on() -> None:
    it = working(settles_s=SETTLES)
    it.begin(fresh=False)
    it.found(None, "idle", NOW)
    it.waited(NOW + 1.0)
    assert it.found(FoundTurn(turn="t1"), "busy", NOW + 2.0) == []
    assert it.waited(NOW + LOST_S) == []
    assert not it.over


def test_a_look_that_is_not_answered_is_not_the_last() -> None:
    it = working(settles_s=SETTLES)
    it.begin(fresh=False)
    it.found(None, "idle", NOW)
    assert it.waited(NOW + 1.0) == [LookUp("k1", "t1")]
    it.unsent("it does not answer", sent=True, now=NOW + 11.0)
    assert it.waited(NOW + 12.0) == [LookUp("k1", "t1")]
    assert it.found(None, "idle", NOW + 2 * SETTLES) == [], "nobody knew since when it is not shown"
    assert not it.over


def test_while_the_program_is_away_nobody_looks_for_its_turn() -> None:
    it = working(settles_s=SETTLES)
    it.begin(fresh=False)
    it.found(None, "idle", NOW)
    it.lost(NOW + 0.5)
    assert it.waited(NOW + 60.0) == []
    assert it.reached("idle") == [LookUp("k1", "t1")]
    assert it.found(None, "idle", NOW + 61.0) == []
    assert not it.over


@pytest.mark.parametrize("late", [1.0, SETTLES - 1.0])
@pytest.mark.parametrize("asks", ["found", "unshown"])
def test_what_may_not_be_shown_yet_is_not_given_twice(asks: str, late: float) -> None:
    """Nor told as not delivered; `late`: how long after its key was made a daemon looks for the first time."""
    it = turn(settles_s=SETTLES)
    it.begin(fresh=False)
    looks = NOW + late
    for now in (looks, looks + SETTLES - 1):
        assert (it.found(None, "idle", now) if asks == "found" else it.unshown("not yet", now)) == []
        assert it.waited(now + SETTLES) == [LookUp("k1")]
    last = it.found(None, "idle", looks + SETTLES) if asks == "found" else it.unshown("no", looks + SETTLES)
    given = last == [GiveMessage("k1", "the message")]
    assert given is (asks == "found")
    assert given or events(last) == [LinkUndelivered("task", "no")]


def test_a_clock_that_was_set_back_does_not_keep_a_message() -> None:
    it = turn(settles_s=SETTLES, minted_at=NOW + 86_400)
    it.begin(fresh=False)
    assert it.found(None, "idle", NOW) == []
    assert it.waited(NOW + SETTLES) == [LookUp("k1")]
    assert it.found(None, "idle", NOW + SETTLES) == [GiveMessage("k1", "the message")]


# --- how else it ends ------------------------------------------------------------------------------------------------


def test_a_refused_message_is_undelivered() -> None:
    it = turn()
    it.begin(fresh=True)
    assert events(it.refused("too long")) == [LinkUndelivered("task", "too long")]


def test_a_failure_has_its_code() -> None:
    assert events(working().told(told(TurnFailed, code="RATE_LIMITED", message="slow down"), NOW)) == [
        LinkTurnFailed("task", "RATE_LIMITED", "slow down", "server: turn failed")
    ]


def test_a_server_that_is_gone_takes_the_turn_with_it() -> None:
    (event,) = events(working().gone("its server ended"))
    assert (event.code, event.message) == ("AGENT_EXITED", "its server ended")


def test_who_stopped_it() -> None:
    stopped = told(TurnInterrupted)
    assert events(working().told(stopped, NOW))[0].reason == "person"
    it = working()
    assert it.interrupt() == [Save(), StopTurn("t1")]
    (event,) = events(it.told(stopped, NOW))
    assert (type(event), event.reason) == (LinkTurnInterrupted, "interrupted")


def test_one_that_is_stopped_before_it_is_taken_is_stopped_then() -> None:
    it = turn()
    it.begin(fresh=True)
    assert it.interrupt() == [Save()]
    assert it.submitted(Submitted(turn="t1"), NOW)[-1] == StopTurn("t1")


def test_one_that_was_not_stopped_goes_on() -> None:
    it = working()
    it.interrupt()
    assert it.go_on() == [Save()]
    assert events(it.told(told(TurnEnded, answer="all the same"), NOW))[0].answer == "all the same"


def test_a_denial_that_stopped_it_is_told_to_the_model_once() -> None:
    it = working()
    assert it.told(told(TurnInterrupted, refused=True), NOW) == [RenewKey(1)]
    assert it.keyed("k2", NOW) == [Save(), GiveMessage("k2", "it was denied")]
    it.submitted(Submitted(turn="t2"), NOW)
    (event,) = events(it.told(told(TurnInterrupted, refused=True, turn="t2"), NOW))
    assert event.reason == "refused"


def test_a_refusal_on_the_terminal_that_stopped_it_is_told_to_the_model_once() -> None:
    it = working()
    assert it.refuse("it was refused", NOW) == [Save()]
    assert it.told(told(TurnInterrupted), NOW) == [RenewKey(1)]
    assert it.keyed("k2", NOW) == [Save(), GiveMessage("k2", "it was refused")]
    it.submitted(Submitted(turn="t2"), NOW)
    assert it.refuse("it was refused", NOW) == [Save()]
    (event,) = events(it.told(told(TurnInterrupted, turn="t2"), NOW))
    assert event.reason == "refused"


def test_a_refusal_on_the_terminal_survives_the_daemon() -> None:
    it = working()
    it.refuse("it was refused", NOW)
    after = ChannelTurn(delivery_of("the message"), ChannelTurnState.model_validate(it.state.model_dump(mode="json")))
    after.begin(fresh=False)
    after.reached("idle")
    assert after.found(FoundTurn(turn="t1", over=told(TurnInterrupted)), "idle", NOW) == [RenewKey(1)]


def test_an_end_without_a_word_after_a_refusal_is_the_refusal_s() -> None:
    it = working()
    it.refuse("it was refused", NOW)
    assert it.told(told(TurnEnded, answer=" "), NOW) == [RenewKey(1)]


def test_what_a_person_refused_is_told_where_their_refusal_refused_other_calls_too() -> None:
    it = working()
    it.refuse("it was refused", NOW)
    it.told(told(TurnInterrupted, refused=True), NOW)
    assert it.text == "it was refused"


def test_a_note_that_the_program_does_not_take_ends_the_turn_as_refused() -> None:
    """The message itself was delivered."""
    it = turn(leg=1, note="it was refused")
    it.begin(fresh=False)
    (event,) = events(it.refused("too long"))
    assert (type(event), event.reason) == (LinkTurnInterrupted, "refused")


def test_a_refusal_that_does_not_stop_it_counts_no_more() -> None:
    """A person's Esc, later, is one."""
    answered, goes_on = working(), working()
    answered.refuse("it was refused", NOW)
    assert answered.overrule() == [Save()]
    goes_on.refuse("it was refused", NOW)
    assert goes_on.waited(NOW + 10) == [], "a busy machine keeps it from reading the key"
    assert goes_on.waited(NOW + 60) == [Save()]
    for it in (answered, goes_on):
        (event,) = events(it.told(told(TurnInterrupted), NOW))
        assert event.reason == "person"


def test_a_channel_s_facts_only() -> None:
    assert working().told(told(TurnEnded, channel="hooks", answer="x"), NOW) == []


FACTS = st.sampled_from(
    [
        told(PromptAccepted, key="k1"),
        told(PromptAccepted, key="other", turn="t0"),
        told(AssistantSaid, text="x"),
        told(TurnEnded, answer="x"),
        told(TurnEnded),
        told(TurnEnded, answer="x", turn="t0"),
        told(TurnFailed),
        told(TurnInterrupted),
        told(TurnInterrupted, refused=True),
    ]
)
STEPS = st.one_of(
    FACTS,
    st.sampled_from(["submitted", "unsent", "lost", "idle", "busy", "found", "none", "stop", "on", "wait", "gone"]),
)


@given(steps=st.lists(STEPS, max_size=30), fresh=st.booleans())
def test_in_any_order_it_is_given_only_where_the_program_said_that_it_has_it_not(steps: list[Any], fresh: bool) -> None:
    it = turn()
    outcomes, allowed, given_ = 0, fresh, 0
    now = NOW
    pending = list(it.begin(fresh=fresh))
    for step in [None, *steps]:
        now += 1
        if step is not None:
            pending = list(_play(it, step, now))
            allowed = allowed or (step == "none" and it.phase is Phase.SENDING)
        for command in pending:
            if isinstance(command, GiveMessage) and command.text == "the message":
                assert allowed, (step, command)
                allowed, given_ = False, given_ + 1
            if isinstance(command, Say) and not isinstance(command.event, LinkTurnAccepted | LinkTurnProgress):
                outcomes += 1
    assert outcomes == it.over
    assert given_ <= 1 + steps.count("none")
    assert it.phase in NEXT


def _play(it: ChannelTurn, step: Any, now: float) -> list[Command]:
    if isinstance(step, ChannelFact):
        return it.told(step, now)
    ways: dict[str, Any] = {
        "submitted": lambda: it.submitted(Submitted(turn="t1"), NOW),
        "unsent": lambda: it.unsent("reset", sent=True, now=now),
        "lost": lambda: it.lost(now),
        "idle": lambda: it.reached("idle"),
        "busy": lambda: it.reached("busy"),
        "found": lambda: it.found(FoundTurn(turn="t1"), "busy", now),
        "none": lambda: it.found(None, "idle", now),
        "stop": it.interrupt,
        "on": it.go_on,
        "wait": lambda: it.waited(now),
        "gone": lambda: it.gone("ended"),
    }
    return list(ways[step]())


@pytest.mark.parametrize("phase", [Phase.WORKING, Phase.OVER])
def test_an_illegal_step_changes_nothing(phase: Phase) -> None:
    it = turn(phase=phase, turn="t1")
    with pytest.raises(ValueError, match="does not go from"):
        it._go(phase)
    assert it.phase is phase
