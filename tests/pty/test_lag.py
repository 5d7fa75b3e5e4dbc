"""Programs behind a relay (ssh, docker exec, sudo): what is typed is read at once, and comes to the program late."""

import asyncio
from typing import Any

import pytest

from synapsed.errors import NotTaken, PromptChanged
from synapsed.model.link import LinkTurnFailed, LinkTurnInterrupted, LinkUndelivered
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import DeliverySpec
from synapsed.pty import answering
from synapsed.pty.keyboard import Keyboard, Rests, Step
from synapsed.pty.lag import ASLEEP_S, ON_WAY, ON_WAY_S, UNKNOWN_S, Lag
from synapsed.pty.session import HANDS_OFF_S
from synapsed.pty.turn_types import NOT_SHOWN_IN_COMPOSER, UNSHOWN_S, Clear, Phase, Save, Type
from tests.fakes.clock import until
from tests.pty import test_keyboard, test_stopping
from tests.pty.conftest import Opens
from tests.pty.playbook import TUI, kind, pasted, seen, submitted, turn
from tests.pty.turn_terminal import LINES, Terminal

STANDS: dict[str, Any] = {"composer": "draft", "text": "hello"}


def late(took: float = 4.0) -> Lag:
    """Of a program that showed a message so late, while the process at its terminal rested."""
    lag = Lag()
    lag.typed(0.0, 10)
    for at in (0.2, ASLEEP_S + 0.2):
        lag.asked(at, rests=True, offset=10)
    lag.shown(took)
    return lag


# --- what is known of it ---


def test_a_program_that_shows_what_is_typed_at_once_has_no_lag() -> None:
    lag = Lag()
    lag.typed(0.0, 10)
    lag.asked(0.3, rests=True, offset=10)
    lag.shown(0.5)
    assert (lag.seconds, lag.unshown, lag.left(0.5, stalls=True)) == (0.0, None, 0.0)


@pytest.mark.parametrize(
    ("rests", "offset"), [(False, 10), (True, 11)], ids=["it computes", "it prints, as one that starts"]
)
def test_a_slow_program_is_no_relay(rests: bool, offset: int) -> None:
    lag = Lag()
    lag.typed(0.0, 10)
    for tenth in range(1, 100):
        lag.asked(tenth / 10, rests=rests, offset=offset)
    lag.shown(10.0)
    assert lag.seconds == 0.0


def test_text_that_comes_long_after_it_was_read_is_of_a_relay() -> None:
    """The kernel is asked for the last time when the text has come, and is not drawn yet."""
    lag = Lag()
    lag.typed(0.0, 10)
    lag.asked(0.5, rests=True, offset=10)
    assert lag.seconds == 0.0
    lag.asked(0.5 + ASLEEP_S, rests=True, offset=10)
    assert lag.seconds == UNKNOWN_S
    lag.asked(3.9, rests=False, offset=10)  # the relay passes something on
    lag.asked(4.0, rests=True, offset=12)
    lag.shown(4.0)
    assert lag.seconds == 9.0
    assert [lag.left(at) for at in (0.0, 9.0, 10.0)] == [9.0, 0.0, 0.0]
    assert [lag.left(at, stalls=True) for at in (9.0, 9.0 + ON_WAY_S)] == [ON_WAY_S, 0.0]


def test_a_relay_that_is_known_by_its_name_has_a_lag_from_the_beginning() -> None:
    lag = Lag()
    lag.relayed = True
    assert lag.seconds == UNKNOWN_S
    lag.typed(0.0, 10)
    lag.shown(0.25)
    assert lag.seconds == 1.5


# --- a message ---


@pytest.mark.parametrize("offset", [15, 20, 130], ids=["silent", "silent since", "it prints"])
def test_no_second_submit_key_is_pressed_and_nothing_is_taken_out(offset: int) -> None:
    """Either would come to what the program does or asks by then."""
    machine, at = submitted(), 1.0 + 4.0 + ON_WAY_S
    assert machine.seen(seen(3.1, offset=offset, lag=4.0, **STANDS)) == []
    assert machine.deadline == pytest.approx(at)
    assert machine.seen(seen(at - 0.1, offset=offset, lag=4.0, **STANDS)) == []
    (command,) = machine.seen(seen(at, offset=offset, lag=4.0, **STANDS))
    assert (kind(command), command.left) == (LinkTurnFailed, False)
    assert ON_WAY in command.event.message


def test_a_lag_that_was_known_at_the_submit_key_holds_after_a_restart() -> None:
    machine = pasted()
    machine.seen(seen(0.5, offset=15, lag=4.0, **STANDS))
    assert machine.state.lag == 4.0
    machine.saved()
    machine.typed("submit", 20, 1.0)
    assert machine.seen(seen(40.0, offset=130, **STANDS)) == []


def test_a_message_that_shows_late_is_not_withdrawn_nor_pasted_twice() -> None:
    machine = pasted()
    assert machine.seen(seen(0.1 + ON_WAY_S, offset=10, lag=5.0)) == []
    assert machine.seen(seen(30.0, offset=15, lag=5.0, changed_at=30.0, **STANDS)) == []
    assert machine.seen(seen(30.2, offset=15, lag=5.0, changed_at=30.0, **STANDS)) == [Save()]
    assert machine.saved() == [Type("submit", b"\r")]


def test_text_that_never_shows_is_undelivered_and_waited_for() -> None:
    """Nothing submits it; the next message is typed when it has come and is removed."""
    machine = pasted()
    (command,) = machine.seen(seen(0.1 + 5.0 + ON_WAY_S, offset=10, lag=5.0))
    assert (kind(command), command.left, command.event.reason) == (LinkUndelivered, True, NOT_SHOWN_IN_COMPOSER)


def test_the_submit_key_waits_for_the_text_also_in_a_program_of_lines() -> None:
    machine = turn(LINES)
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    machine.typed("paste", 10, 0.1)
    assert machine.seen(seen(8.0, offset=10)) == []
    assert machine.seen(seen(8.1, offset=15, changed_at=8.1, **STANDS)) == [Save()]


def test_a_program_of_lines_that_shows_no_text_gets_its_submit_key_once() -> None:
    machine = turn(LINES)
    machine.begin(0.0)
    machine.seen(seen(0.0))
    machine.saved()
    machine.typed("paste", 10, 0.1)
    assert machine.seen(seen(0.1 + UNSHOWN_S, offset=10)) == [Save()]
    assert machine.state.lag == UNKNOWN_S


def test_a_canceled_message_is_given_up_when_its_key_has_had_its_time() -> None:
    machine = submitted()
    machine.interrupt()
    assert machine.seen(seen(4.9, offset=20, lag=4.0, **STANDS)) == []
    assert [kind(one) for one in machine.seen(seen(5.0, offset=20, lag=4.0, **STANDS))] == [Clear, LinkTurnInterrupted]


async def test_a_cancel_before_the_text_shows_is_told_first_and_the_text_removed_when_it_comes() -> None:
    """It would stand there as a person's, or before the next message."""
    terminal = Terminal()
    worker = await terminal.begin()
    turn = terminal.session.turn
    assert turn is not None
    shown = asyncio.Event()

    async def comes(wanted: Any, timeout: float) -> bool:
        if not wanted(await terminal.look()):
            await shown.wait()
        return bool(wanted(await terminal.look()))

    terminal.driver.looks.until = comes  # type: ignore[method-assign]
    await until(lambda: turn.state.phase is Phase.SETTLING)
    terminal.driver.turn.add(turn.interrupt())
    await until(lambda: any(isinstance(event, LinkTurnInterrupted) for event in terminal.events), "it is told")
    assert terminal.typed == [b"hello"]
    assert terminal.session.turn is turn, "the next message waits"
    terminal.draw("> hello")
    shown.set()
    await until(lambda: len(terminal.typed) > 1, "it is removed")
    assert terminal.typed[1] == b"\x15"
    worker.cancel()


# --- a person's draft ---


@pytest.mark.parametrize(("keys", "held"), [(b"wait", True), (b"\x1b", False)], ids=["text", "a key without effect"])
async def test_a_persons_text_that_is_not_shown_yet_holds_messages_back(keys: bytes, held: bool) -> None:
    """Both would be submitted as one."""
    terminal = Terminal()
    terminal.draw("> ")
    await terminal.judge()
    session, now = terminal.session, terminal.clock.monotonic()
    session.pressed(now, keys)
    look = await terminal.look()
    obstacles = [session.obstacle(look, now + after) for after in (0.0, HANDS_OFF_S, ON_WAY_S)]
    assert [found is not None for found in obstacles] == [True, held, False]
    terminal.draw(">  ")
    assert session.obstacle(await terminal.look(), now + HANDS_OFF_S) is None


# --- other keys ---


class Late(test_keyboard.Program):
    """Behind a relay."""

    profile: Profile = test_keyboard.PROFILE

    @property
    def keyboard(self) -> Keyboard:
        return Keyboard(self.profile, late())

    def do(self, step: Step) -> Any:
        return True if isinstance(step, Rests) else super().do(step)


def test_the_keys_that_stop_are_pressed_once() -> None:
    """Two may end the program."""
    program = Late(["working"], then=["working", "working"])
    assert not program.play(program.keyboard.interrupt(lambda _: False))
    assert program.keys == [b"\x1b"]


def test_keys_that_empty_a_composer_are_not_pressed_again_without_an_effect() -> None:
    for empties in (Keyboard.clear, Keyboard.erase):
        program = Late(["a message"], then=["a message"] * 3)
        assert not program.play(empties(program.keyboard))
        assert program.keys == [b"\x15"]


def test_the_next_step_of_an_answer_waits_for_the_effect_of_the_one_before() -> None:
    program = Late(["a question"], then=["a question"])
    program.play(program.keyboard.answer([b"1", b"\r"], lambda _: True))
    assert program.keys == [b"1"]


def test_the_name_of_an_option_that_is_not_shown_is_not_submitted() -> None:
    program = Late(["Go on? (y/n)"], then=["Go on? (y/n)"])
    assert program.play(program.keyboard.named([b"y", b"\r"], lambda _: False)) is None
    assert program.keys == [b"y"]


async def test_a_program_behind_a_relay_does_not_rest_while_keys_are_on_their_way() -> None:
    terminal = Terminal()
    terminal.session.lag = late()
    assert await terminal.driver.kernel.rests_with_keys_read()
    terminal.session.lag.typed(terminal.clock.monotonic())
    assert not await terminal.driver.kernel.rests_with_keys_read()
    assert not await terminal.driver.kernel.has_acted(0)
    terminal.clock.advance(9.0)
    assert await terminal.driver.kernel.rests_with_keys_read()


async def test_a_second_stop_presses_nothing_while_the_first_may_be_on_its_way() -> None:
    program = test_stopping.Program()
    program.session.lag = program.session.keyboard._lag = late()
    program.draw("esc to stop")
    for _ in range(2):
        assert not await program.driver.perform(program.stopping.stop())
    assert program.typed == [b"\x1b"]


async def test_an_answer_on_its_way_is_not_typed_again(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "TAKEN_S", 0.02)
    monkeypatch.setattr("synapsed.pty.lag.UNKNOWN_S", 0.02)
    link, keys = opens(b"Allow it?\r\n1. Yes\r\n2. No")
    link._session.lag.relayed = True
    monkeypatch.setattr(link._driver.kernel, "_computes", _false)
    prompt = (await link.observe()).prompt
    assert prompt is not None
    with pytest.raises(NotTaken, match="on their way"):
        await link.answer("2", prompt.prompt_id)
    link._clock.advance(1.0)  # type: ignore[attr-defined]  # a fake
    with pytest.raises(PromptChanged, match="on their way"):
        await link.answer("2", prompt.prompt_id)
    assert keys == [b"2"]


async def _false() -> bool:
    return False


def test_the_profile_of_these_tests_would_press_again_without_a_lag() -> None:
    assert TUI.delivery.accept_ms == DeliverySpec().accept_ms
    machine = submitted()
    assert machine.seen(seen(3.1, offset=130, **STANDS)) == [Save(), Type("submit2", b"\r")]
