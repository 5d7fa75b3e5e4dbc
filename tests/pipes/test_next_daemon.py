"""A daemon that takes up a program on pipes, and what was written before the keeper's word on a prompt. No keeper."""

import pytest

from synapsed.model.facts import TurnEnded
from synapsed.model.link import LinkTold, LinkTurnFailed
from synapsed.pipes.kept_session import KeptSession
from synapsed.pty.keyboard import Emit
from tests.pipes.test_pure import Played, asks, saved, tool


def test_the_next_daemon_knows_that_a_turn_was_stopped_by_the_one_before() -> None:
    played = Played().opened()
    played.line(id="t.1", result={"stopReason": "cancelled"})
    played.deliver(fresh=False, interrupting=True)
    assert [event.reason for event in played.told] == ["interrupted"]


@pytest.mark.parametrize("ended", [True, False])
def test_the_next_daemon_knows_that_a_permission_was_refused(*, ended: bool) -> None:
    """The request and what follows it come again, but not what was answered."""
    played = Played().opened()
    over = {"id": "t.1", "result": {"stopReason": "end_turn"}}
    if ended:
        played.line(**over)
    played.deliver(fresh=False, refused_at=0.0)
    if not ended:
        played.line(**over)
    assert [event.reason for event in played.told] == ["refused"]


def test_the_next_daemon_finds_a_turn_that_ended_meanwhile() -> None:
    played = Played().opened()
    played.said("so", "1")
    played.line(id="t.1", result={"stopReason": "end_turn"})
    played.deliver(fresh=False)
    assert [event.answer for event in played.told] == ["so"]
    assert played.given is None


def test_the_next_daemon_goes_on_with_a_turn_that_runs() -> None:
    played = Played().opened()
    played.said("be", "1")
    played.deliver(fresh=False)
    assert played.given is not None  # the keeper knows whether it was before
    played.said("gun", "1")
    played.line(id="t.1", result={"stopReason": "end_turn"})
    assert [event.answer for event in played.told] == ["begun"]


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("message", ["1", None])
def test_what_was_said_before_a_prompt_is_no_answer_to_the_next_daemon_either(
    *, ended: bool, message: str | None
) -> None:
    """A program may talk while no prompt is open. What it says then may be of the same message as its answer."""
    played = Played().opened()
    played.said("of itself, ", message)
    tool(played)
    at = played.at
    for text in ("so", " it is"):
        played.said(text, message)
    over = {"id": "t.1", "result": {"stopReason": "end_turn"}}
    if ended:
        played.line(**over)
    played.deliver(fresh=False, at=at)
    if not ended:
        played.said(".", message)
        played.line(**over)
    assert [event.answer for event in played.told] == ["so it is" if ended else "so it is."]


def test_a_turn_that_only_did_something_before_its_prompt_ended_without_a_word() -> None:
    played = Played().opened()
    tool(played)
    at = played.at
    played.line(id="t.1", result={"stopReason": "end_turn"})
    played.deliver(fresh=False, at=at)
    assert isinstance(played.told[0], LinkTurnFailed)


def test_a_line_that_was_begun_before_the_prompt_is_no_answer_to_it() -> None:
    played = Played().opened()
    played.said("half of it stood there, ", "1")
    played.said("so", "1")
    played.deliver(fresh=False, at=played.at - 15)
    played.line(id="t.1", result={"stopReason": "end_turn"})
    assert [event.answer for event in played.told] == ["so"]


def test_a_response_that_is_heard_before_the_keepers_word_waits_for_that() -> None:
    played = Played().opened()
    played.done += played.session.deliver("t.1", "text", fresh=True)
    played.said("of before", "1")
    at = played.at
    played.said("so", "1")
    played.line(id="t.1", result={"stopReason": "end_turn"})
    assert not played.session.observation().can_receive
    played.done += played.session.given("t.1", 1, at=at)
    assert [event.answer for event in played.told] == ["so"]
    assert played.session.observation().can_receive


def test_the_place_of_a_prompt_that_the_keeper_has_forgotten_is_kept() -> None:
    first = Played().opened()
    first.said("of before", "1")
    first.deliver(fresh=True, at=first.at)
    played = Played(kept=saved(first)).opened()
    played.said("of before", "1")
    played.said("so", "1")
    played.deliver(fresh=False, at=None)
    played.line(id="t.1", result={"stopReason": "end_turn"})
    assert [event.answer for event in played.told] == ["so"]


def seen(played: Played) -> list[str | None]:
    """The answers of turns of others."""
    told = [
        command.event.fact
        for command in played.done
        if isinstance(command, Emit) and isinstance(command.event, LinkTold)
    ]
    return [fact.answer for fact in told if isinstance(fact, TurnEnded)]


@pytest.mark.parametrize("known", [True, False])
def test_the_next_daemon_knows_a_persons_prompt_that_is_open(*, known: bool) -> None:
    """`known`: it was on record that the program has it. What is said in it is no answer to a task's message."""
    first = Played().opened()
    first.done += first.session.typed("person.1", "hello")
    if known:
        first.done += first.session.given("person.1", 1, at=first.at)
    played = Played(kept=saved(first), told_to=first.at).opened(back=True)
    played.done.clear()
    played.done += played.session.take_up()
    assert played.written == ([] if known else ["person.1"])
    if not known:
        played.done += played.session.given("person.1", 1, at=played.at)
    assert not played.session.observation().can_receive
    played.said("hi", "1")
    played.line(id="person.1", result={"stopReason": "end_turn"})
    assert seen(played) == ["hi"]
    assert played.session.observation().can_receive
    assert saved(played).prompt is None
    played.deliver(fresh=True, at=played.at)
    played.said("so", "2")
    played.line(id="t.1", result={"stopReason": "end_turn"})
    assert [event.answer for event in played.told] == ["so"]


@pytest.mark.parametrize("told", [True, False])
def test_a_persons_prompt_that_ended_meanwhile_is_told_once(*, told: bool) -> None:
    first = Played().opened()
    first.done += first.session.typed("person.1", "hello")
    first.done += first.session.given("person.1", 1, at=first.at)
    played = Played(kept=saved(first), told_to=first.at + 20 if told else first.at).opened(back=True)
    played.said("hi", "1")
    played.line(id="person.1", result={"stopReason": "end_turn"})
    played.done += played.session.take_up()
    assert seen(played) == ([] if told else ["hi"])
    assert played.session.observation().can_receive
    assert saved(played).prompt is None


def test_a_late_response_to_another_prompt_changes_nothing() -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    played.line(**asks())
    played.line(id="t.0", result={"stopReason": "cancelled"})
    assert played.session.waiting is not None
    played.said("so", "1")
    played.line(id="t.1", result={"stopReason": "end_turn"})
    assert [event.answer for event in played.told] == ["so"]


def test_what_was_told_before_is_not_told_again() -> None:
    played = Played(kept=KeptSession(session="s"), told_to=1000)
    played.line(method="session/update", params={"update": {"sessionUpdate": "tool_call", "toolCallId": "c"}})
    played.said("so", "1")
    assert not [c for c in played.done if isinstance(c, Emit)]
