"""A message that was submitted and not taken: undelivered is what is out of the composer, with the program at rest."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from synapsed.model.agent import Activity
from synapsed.model.link import (
    LinkEvent,
    LinkTurnAccepted,
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnRecord,
    LinkUndelivered,
)
from synapsed.profiles.screen_spec import DeliverySpec
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_types import NEVER_AT_REST, NOT_TAKEN, TYPED_AGAIN_AFTER_S, UNANSWERED_S, Clear, Save, TakeOut
from tests.fakes.clock import until
from tests.pty.playbook import accepted, ended, kind, says_accepted, says_failed, says_interrupted, seen, submitted
from tests.pty.turn_terminal import Terminal

CLEAR = DeliverySpec().clear.encode()


def given_up(**more: bool) -> PtyTurn:
    machine = submitted(shown="hello", **more)
    machine.seen(seen(3.1, composer="draft", text="hello"))
    assert machine.seen(seen(5.2, composer="draft", text="hello")) == [TakeOut()]
    return machine


def test_it_is_told_when_it_is_out_of_the_composer() -> None:
    machine = given_up()
    assert machine.seen(seen(60.0, composer="draft", text="hello")) == [], "it is told once"
    assert machine.seen(seen(60.1)) == [], "the screen alone may be of a program that has taken it"
    machine.state.typings = len(TYPED_AGAIN_AFTER_S)
    (command,) = machine.withdrawn(True, 60.0)
    assert (kind(command), command.event.reason, command.left) == (LinkUndelivered, NOT_TAKEN, False)


def test_it_may_yet_be_taken_by_a_program_that_was_not_seen_at_rest() -> None:
    assert given_up().withdrawn(False, 60.0) == [says_failed("TIMEOUT", NEVER_AT_REST, "composer")]


def test_a_program_that_takes_it_meanwhile_has_it() -> None:
    for late in (seen(9.0, echoed=True), seen(9.0, activity=Activity.BUSY), seen(9.0, activity=Activity.WAITING)):
        machine = given_up()
        assert machine.seen(late)[0] == Save()
        assert machine.withdrawn(False, 60.0) == []
    told = given_up()
    assert told.told(accepted(9.0, "hello"), 9.0) == [Save(), says_accepted("hooks: prompt accepted")]
    assert told.withdrawn(True, 60.0) == []
    (command,) = given_up().told(ended(9.0), 9.0)
    assert kind(command) is LinkTurnEnded


def test_what_stands_in_the_composer_still_is_not_taken_by_what_moves() -> None:
    machine = given_up()
    assert machine.seen(seen(9.0, activity=Activity.BUSY, composer="draft", text="hello")) == []
    assert machine.seen(seen(9.1, activity=Activity.BUSY, source="quiet")) == [], "a screen that is redrawn"
    assert machine.withdrawing


def test_a_cancel_of_it_does_not_wait() -> None:
    machine = given_up()
    assert machine.interrupt() == [Save()]
    commands = machine.seen(seen(9.0, composer="draft", text="hello"))
    assert commands == [Clear(), says_interrupted("interrupted", "not taken")]
    assert machine.withdrawn(True, 60.0) == []


class Composing(Terminal):
    """The key that empties its composer shows what the test wants, and it `computes` until the test says so."""

    computes = False
    computes_from_clear = False
    asking_takes = 0.0
    """Seconds, until the kernel has said so."""
    at_clear: tuple[str, ...] = ("> ",)

    async def write(self, data: bytes, input_id: str | None = None) -> Any:
        if data == CLEAR:
            self.computes |= self.computes_from_clear
            self.draw(*self.at_clear)
        return await super().write(data, input_id)

    def asked(self) -> bool:
        self.clock.advance(self.asking_takes)
        return self.computes

    @property
    def told(self) -> list[LinkEvent]:
        return [event for event in self.events if not isinstance(event, LinkTurnRecord)]


@pytest.fixture
async def terminal(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Composing]:
    """The message was submitted twice, and stands in the composer."""
    terminal = Composing()
    terminal.reader = (None, 7)
    monkeypatch.setattr("synapsed.pty.screen_looks.REST_AGAIN_S", 0.0)
    monkeypatch.setattr("synapsed.pty.foreground.Foreground.computes", lambda self, group: terminal.asked())
    worker = await terminal.begin()
    await until(terminal.driver.turn.idle.is_set)
    terminal.draw("> hello")
    for after in (2.0, UNANSWERED_S):
        await terminal.judge(after)
        await terminal.record()
    assert terminal.typed == [b"hello", b"\r", b"\r"]
    yield terminal
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def test_the_sender_hears_of_it_when_the_program_rests_with_an_empty_composer(terminal: Composing) -> None:
    assert terminal.session.turn is not None
    terminal.session.turn.state.typings = len(TYPED_AGAIN_AFTER_S)
    terminal.computes_from_clear = True
    await terminal.judge(2.0)
    await until(lambda: terminal.typed[3:] == [CLEAR])
    await terminal.judge(2.0)
    assert terminal.told == []
    terminal.computes = False
    await until(lambda: terminal.session.turn is None)
    assert [type(event) for event in terminal.told] == [LinkUndelivered]
    assert terminal.typed[3:] == [CLEAR], "its composer is empty already"


async def test_a_program_that_acts_on_the_submit_key_after_all_has_the_message(terminal: Composing) -> None:
    """It had read the key, and got no processor: the key that empties the composer found it about to begin."""
    terminal.computes_from_clear = True
    await terminal.judge(2.0)
    await until(lambda: terminal.typed[3:] == [CLEAR])
    terminal.draw("hello", "working", "> ")
    await terminal.judge(6.0)
    await terminal.record()
    assert [type(event) for event in terminal.told] == [LinkTurnAccepted]


async def test_the_composer_is_left_alone_when_the_message_is_taken_before(terminal: Composing) -> None:
    terminal.computes = True
    await terminal.judge(60.0)
    terminal.draw("hello", "working", "> ")
    await terminal.judge()
    await terminal.record()
    assert [type(event) for event in terminal.told] == [LinkTurnAccepted]
    assert terminal.typed[3:] == []


async def test_what_cannot_be_taken_back_is_not_to_be_sent_again(terminal: Composing) -> None:
    terminal.at_clear = ("> hello",)
    await terminal.judge(2.0)
    await until(lambda: terminal.session.turn is None)
    (event,) = terminal.told
    assert isinstance(event, LinkTurnFailed)
    assert (event.code, event.message) == ("TIMEOUT", NEVER_AT_REST)


async def test_a_program_that_never_rests_may_have_the_message(terminal: Composing) -> None:
    terminal.computes, terminal.asking_takes = True, 10.0
    await terminal.judge(60.0)
    await until(lambda: terminal.session.turn is None)
    (event,) = terminal.told
    assert isinstance(event, LinkTurnFailed)
    assert event.message == NEVER_AT_REST
    assert terminal.typed[3:] == [CLEAR]
