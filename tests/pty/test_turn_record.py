"""What is on record of a turn: daemons before and after this one read it, while its program lives."""

from typing import Any

import pytest

from synapsed.pty.channel_turn import ChannelTurnState
from synapsed.pty.turn_types import UNASKED, KeptTurn, TurnState
from tests.pty.playbook import says_failed, turn

TYPED = {
    "phase": "working",
    "submitted": True,
    "submit_ns": 7,
    "submit_offset": 20,
    "busy_seen": True,
    "resubmitted": True,
    "refused": True,
    "interrupting": True,
    "turn": "t1",
    "leg": 1,
    "shown": "hello",
    "marks": [1, 2],
    "located": True,
    "left": True,
    "taken": True,
    "worked_without": True,
    "typings": 2,
    "lag": 3.0,
    "prompt": "> ",
    "before": [7, 8],
    "stood": [9],
    "at_prompt": True,
    "shown_there": True,
    "typed_from": 10,
    "reader": 4,
    "edited": True,
    "note": "It was refused.",
}
GIVEN = {
    "by": "channel",
    "channel": "server",
    "phase": "sending",
    "key": "k1",
    "minted_at": 1000.0,
    "submitted": True,
    "taken": True,
    "turn": "t1",
    "leg": 1,
    "note": "It was refused.",
    "interrupting": True,
    "joining": True,
    "refused_at": 1001.0,
}


@pytest.mark.parametrize(("kind", "record"), [(TurnState, TYPED), (ChannelTurnState, GIVEN)])
def test_a_record_of_another_daemon_is_read_and_written_as_it_was(kind: type[KeptTurn], record: dict[str, Any]) -> None:
    assert kind.model_validate(record).model_dump(mode="json") == record


def test_a_message_that_only_a_channel_can_be_asked_about_fails_where_the_profile_has_none_any_more() -> None:
    """It is not typed: the program may have it."""
    machine = turn(state=TurnState.model_validate(GIVEN))
    assert machine.begin(1000.0) == [says_failed("TIMEOUT", UNASKED, "no channel")]
