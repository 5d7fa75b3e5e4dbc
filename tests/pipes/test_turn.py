"""The machine of a turn on pipes: what differs from one over a channel. No daemon."""

from typing import Any

import pytest

from synapsed.interfaces import FoundTurn, Submitted
from synapsed.model.facts import ChannelFact, TurnEnded, TurnFailed, TurnInterrupted
from synapsed.model.link import LinkTurnEnded, LinkTurnFailed, LinkTurnInterrupted
from synapsed.pipes.acp_link import ON_PIPES, of_before
from synapsed.pty.channel_turn import ChannelTurn, ChannelTurnState
from synapsed.pty.turn_types import Command, GiveMessage, LookUp, Phase, Say, StopTurn
from tests.pty.playbook import delivery_of

NOW = 1000.0


def turn(**state: Any) -> ChannelTurn:
    fields = {"channel": "acp", "key": "k", "minted_at": NOW, **state}
    return ChannelTurn(delivery_of("the message"), ChannelTurnState(**fields), denial="it was denied", rules=ON_PIPES)


def working(**state: Any) -> ChannelTurn:
    it = turn(**state)
    it.begin(fresh=True)
    it.submitted(Submitted(turn="k"), NOW)
    return it


def over(it: ChannelTurn, kind: type[ChannelFact], **fields: Any) -> Any:
    return event_of(it.told(kind(**{"channel": "acp", "at_ns": 1, "turn": "k", **fields}), NOW))


def event_of(commands: list[Command]) -> Any:
    (event,) = [command.event for command in commands if isinstance(command, Say)]
    return event


def test_what_was_said_is_the_answer_though_the_turn_was_told_to_stop() -> None:
    it = working()
    assert StopTurn("k") in it.interrupt()
    assert over(it, TurnEnded, answer="All of it.", truncated=True) == LinkTurnEnded(
        "t", "All of it.", True, "acp: turn ended", True
    )


@pytest.mark.parametrize("kind", [TurnEnded, TurnFailed, TurnInterrupted])
def test_any_other_end_of_a_turn_that_was_told_to_stop_is_its_stop(kind: type[ChannelFact]) -> None:
    """Programs that answer a cancel with the error by which they stopped have not failed."""
    it = working()
    it.interrupt()
    said = {"answer": ""} if kind is TurnEnded else {}
    assert over(it, kind, **said).reason == "interrupted"
    assert isinstance(over(working(), TurnFailed), LinkTurnFailed)


def test_a_refusal_counts_until_the_turn_ends_and_is_told_to_nobody() -> None:
    it = working()
    assert it.refuse("a note", NOW)
    assert it.works_on() == it.waited(NOW + 3600) == []
    assert isinstance(told := over(it, TurnInterrupted), LinkTurnInterrupted)
    assert told.reason == "refused"


def test_a_message_that_the_keeper_does_not_confirm_is_waited_for() -> None:
    it = turn()
    assert it.begin(fresh=True) == [GiveMessage("k", "the message")]
    assert it.unsent("silent", sent=True, now=NOW) == it.waited(NOW + 3600) == []
    assert it.phase is Phase.SENDING


@pytest.mark.parametrize("phase", [Phase.SENDING, Phase.WORKING])
def test_a_keeper_that_did_not_answer_is_asked_again(phase: Phase) -> None:
    """It may have been stopped for a while when this daemon came; else the turn's end would not be told."""
    it = turn(phase=phase, turn="k", taken=True)
    assert it.begin(fresh=False) == [LookUp("k", "k")]
    assert it.unsent("silent", sent=True, now=NOW) == []
    assert it.waited(NOW + 1.0) == [LookUp("k", "k")]
    it.found(FoundTurn(turn="k"), "away", NOW + 1.0)
    assert it.waited(NOW + 3600) == []
    assert it.phase is Phase.WORKING


@pytest.mark.parametrize("more", [{}, {"submit_offset": 7}, {"interrupting": True}, {"refused": True}])
def test_a_turn_that_a_version_before_has_begun_is_gone_on_with(more: dict[str, Any]) -> None:
    it = turn(**of_before({"prompt": "t.1", "submitted": True, **more}))
    assert it.begin(fresh=False) == [LookUp("t.1")]
    found = it.found(FoundTurn(turn="t.1"), "away", NOW)
    assert (StopTurn("t.1") in found) is ("interrupting" in more)
    ends = {"interrupting": "interrupted", "refused": "refused"}
    told = over(it, TurnInterrupted, turn="t.1")
    assert told.reason == next((ends[name] for name in more if name in ends), "person")
    assert of_before(it.record.link) == it.record.link


def test_one_that_was_given_up_before_the_program_had_it_is_stopped() -> None:
    it = turn()
    it.begin(fresh=True)
    it.interrupt()
    assert over(it, TurnInterrupted).reason == "interrupted"
