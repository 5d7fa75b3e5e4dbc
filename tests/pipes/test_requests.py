"""Requests of a program on pipes, and the word to stop: answered and told once, by whichever daemon. No keeper."""

import pytest

from synapsed.model.link import LinkTurnFailed
from synapsed.pipes.commands import PipesCommand, ShowText, Write
from synapsed.pipes.kept_session import KeptSession
from synapsed.pipes.permission_request import answer_id
from synapsed.pipes.program_requests import REFUSED_MAX, SAVE_EVERY
from tests.pipes.test_pure import Played, asks, prompt_of, saved

READ = {"method": "fs/read_text_file", "params": {}}


def answered(played: Played, input_id: str | None) -> None:
    """The keeper has written it."""
    assert input_id is not None
    played.done += played.session.given(input_id, 1, at=played.at)


def back(played: Played, *known: str | None) -> list[str | None]:
    """What the daemon writes that has read all of before, from a keeper that knows these inputs."""
    for request, names in played.session.unsure:
        if any(name in known for name in names):
            played.done += played.session.was_answered(request)
    played.done.clear()
    played.done += played.session.take_up()
    return played.written


@pytest.mark.parametrize("kept", [True, False])
def test_the_next_daemon_answers_what_was_not_answered_and_nothing_twice(*, kept: bool) -> None:
    """Also where the keeper has forgotten what it wrote; and an id that comes again is another request."""
    first = Played().opened()
    first.done.clear()
    requests = [{"id": 1, **READ}] * (SAVE_EVERY + 3)
    for number, request in enumerate(requests):
        first.line(**request)
        if number < SAVE_EVERY:
            answered(first, first.written[-1])
    assert len({*first.written}) == len(first.written) == len(requests)
    forgotten = first.written[: SAVE_EVERY - 2] if kept else []
    played = Played(kept=saved(first) if kept else KeptSession(session="s")).opened(back=True)
    for request in requests:
        played.line(**request)
    lost = first.written[SAVE_EVERY + 2]
    assert back(played, *(one for one in first.written if one not in forgotten and one != lost)) == [lost]


def test_what_a_version_before_has_answered_is_not_answered_again() -> None:
    played = Played(kept=KeptSession(session="s")).opened(back=True)
    played.line(id=5, **READ)
    played.line(**asks())
    assert back(played, answer_id(5), answer_id("p")) == []
    assert played.session.waiting is None


def test_a_permission_whose_answer_the_keeper_has_forgotten_does_not_wait_again() -> None:
    first = Played().opened()
    first.deliver(fresh=True)
    first.line(**asks())
    first.done += first.session.answer("yes", None)
    answered(first, first.written[-1])
    first.line(**asks("q"))
    for number in range(SAVE_EVERY):
        first.line(id=number, **READ)
        answered(first, first.written[-1])
    played = Played(kept=saved(first)).opened(back=True)
    for request in (asks(), asks("q")):
        played.line(**request)
    back(played)
    assert [request.id for request in played.session._requests.all_waiting] == ["q"]


def test_one_that_asks_and_does_not_read_is_not_answered_without_end() -> None:
    played = Played().opened()
    played.done.clear()
    for number in range(2 * REFUSED_MAX):
        played.line(id=number, **READ)
    assert len(played.written) == REFUSED_MAX


def test_what_the_keeper_did_not_take_is_answered_again() -> None:
    played = Played().opened()
    played.line(id=5, **READ)
    refused = played.done[-1]
    assert isinstance(refused, Write)
    assert refused.input_id is not None
    played.session.unwritten(refused.input_id)
    assert played.session.waited(1.0) == [refused]
    assert played.session.waited(2.0) == []


@pytest.mark.parametrize("words", ["yes", "no"])
def test_a_question_stands_again_whose_answer_the_keeper_did_not_take(words: str) -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    played.line(**asks())
    played.line(**asks("q"))
    asked = prompt_of(played)
    played.done += played.session.answer(words, asked.prompt_id)
    answer = next(c for c in reversed(played.done) if isinstance(c, Write))
    assert prompt_of(played) != asked
    assert answer.input_id is not None
    played.done += played.session.unwritten(answer.input_id)
    assert prompt_of(played) == asked
    again = [c for c in played.session.answer(words, asked.prompt_id) if isinstance(c, Write)]
    assert again == [answer]
    played.session.unwritten(answer.input_id)
    played.line(id="t.1", result={"stopReason": "end_turn"})
    (over,) = played.told  # not a refused one: the program was not told so
    assert isinstance(over, LinkTurnFailed)


def test_an_id_that_comes_again_is_another_question() -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    answers = []
    for _ in range(2):
        played.line(**asks())
        asked = prompt_of(played)
        played.done += played.session.answer("yes", asked.prompt_id)
        answers.append((asked.prompt_id, played.written[-1]))
    assert len({*answers}) == len({name for _, name in answers}) == 2


def test_what_nobody_can_ask_for_is_not_kept() -> None:
    """A program may talk by itself for days, and its output be too much to be read."""
    played = Played().opened()
    played.deliver(fresh=True)
    played.line(id="t.1", result={"stopReason": "end_turn"})
    played.said("by itself", "1")
    assert ShowText("by itself") in played.done
    (message,) = played.session._heard.speech.messages
    assert (message.text, message._marks) == ("", [])
    played.done.clear()
    played.deliver(fresh=True, at=played.at)
    played.session.missed()
    played.said("so", "2")
    (message,) = played.session._turn.speech.messages
    assert (message.text, message._marks) == ("so", [])
    played.line(id="t.1", result={"stopReason": "end_turn"})
    assert [(event.answer, event.truncated) for event in played.told] == [("so", True)]


def cancels(commands: list[PipesCommand]) -> list[str | None]:
    found = [c for c in commands if isinstance(c, Write) and c.message.get("method") == "session/cancel"]
    return [command.input_id for command in found]


def test_a_turn_is_told_to_stop_once_and_once_more_before_its_program_is_ended() -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    played.said("so", "1")
    told = [(now, cancels(played.session.interrupt(now))) for now in (0.0, 0.1, 1.0, 2.0, 4.9, 5.0, 6.0, 9.9)]
    assert [now for now, names in told if names] == [0.0, 5.0]
    assert len({name for _, names in told for name in names}) == 2


@pytest.mark.parametrize("begun", [True, False])
def test_one_that_goes_on_or_begins_only_then_is_told_to_stop_again(*, begun: bool) -> None:
    played = Played().opened()
    played.deliver(fresh=True, at=played.at)
    if begun:
        played.said("so", "1")
    assert played.session.has_begun is begun
    assert len(cancels(played.session.interrupt(0.0))) == 1
    assert cancels(played.session.interrupt(1.0)) == []
    played.line(method="session/update", params={"update": {"sessionUpdate": "user_message_chunk"}})
    assert played.session.has_begun
    assert len(cancels(played.session.interrupt(1.0))) == 1


def test_one_that_begins_late_is_told_to_stop_then() -> None:
    """It may have read the words of before without heed; and whoever asks for the stop again has it told again."""
    played = Played().opened()
    played.deliver(fresh=True, at=played.at)
    told = []
    for now in range(60):
        if now == 20:
            played.line(method="session/update", params={"update": {"sessionUpdate": "user_message_chunk"}})
        if now == 50:
            played.session.asked_to_stop()
        told += [(now, name) for name in cancels(played.session.interrupt(float(now)))]
    assert [now for now, _ in told] == [0, 20, 25, 50, 55]
    assert len({name for _, name in told}) == 5


def test_a_word_to_stop_that_the_keeper_did_not_take_is_given_again() -> None:
    played = Played().opened()
    played.deliver(fresh=True)
    (first,) = cancels(played.session.interrupt(0.0))
    assert first is not None
    played.session.unwritten(first)
    assert cancels(played.session.interrupt(0.1)) == [first]


def test_the_next_daemon_tells_it_to_stop_by_the_same_id() -> None:
    names = []
    for _ in range(2):
        played = Played().opened()
        played.deliver(fresh=False, interrupting=True)
        names += cancels(played.session.interrupt(0.0))
    assert len(names) == 2
    assert len({*names}) == 1
