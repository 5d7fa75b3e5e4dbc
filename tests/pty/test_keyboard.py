"""Keys pressed on a program's behalf: the procedures, played without a terminal and without an event loop."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import BusySigns, Composer, DeliverySpec, Dialog, Interrupt, Prompts, PutOff
from synapsed.pty.keyboard import VAIN_TRIES, Keyboard, LookNow, Press, Rests, Step, Steps, StopPressed, WaitFor
from synapsed.terminal.composer import ComposerState
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.menu_keys import Move
from synapsed.terminal.prompts import find_prompt, holds_answer
from synapsed.terminal.snapshot import ScreenSnapshot

MENU = "a menu"
WARNING = "a warning that the program printed over its composer"
PROFILE = Profile(
    name="p",
    command="p",
    composer=Composer(line="^> (?P<text>.*)$"),
    delivery=DeliverySpec(clear="\x15"),
    prompts=Prompts(dialogs=[Dialog(type="question", when=[MENU], leave="q")]),
    interrupt=Interrupt(keys="\x1b", put_off=PutOff(shown=r"^later: (?P<text>.*)", keys="\x1b[A")),
)


class Program:
    """Shows what was pasted only when it is looked at for the second time."""

    def __init__(self, shown: list[str], then: list[str | list[str]] | None = None) -> None:
        """`then` is what it shows after each of our keys, one after the other where that is a list."""
        self.shown = shown
        self.then = then or []
        self.offset = 0
        """Up to where its output is drawn."""
        self.hidden_s = 0.0
        """How long the composer is hidden."""
        self.keys: list[bytes] = []
        self.shown_at: list[str] = []
        """What was on the screen whenever a key was pressed."""
        self.asked_at: list[int] = []
        """How many keys had been pressed whenever it was asked to stop."""
        self.pressed: Callable[[], None] = lambda: None

    def play[T](self, steps: Steps[T]) -> T:
        """What the procedure returns."""
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as done:
                result: T = done.value
                return result
            answer = self.do(step)

    def do(self, step: Step) -> Any:
        match step:
            case Press(data):
                return self.write(data)
            case WaitFor(wanted, within):
                return self.until(wanted, within)
            case LookNow():
                return self.look()
            case Rests():
                return True
            case StopPressed():
                return self.asked_at.append(len(self.keys))
        raise AssertionError(step)

    def look(self) -> Any:
        text = self.shown[0]
        menu = text == MENU
        state = "absent" if text in (MENU, WARNING) else "draft" if text and not text.startswith("later: ") else "empty"
        asked = SimpleNamespace(dialog=Dialog(type="question", when=[MENU], leave="q")) if menu else None
        screen, verdict = SimpleNamespace(lines=(text,), text=lambda: text), SimpleNamespace(asked=asked)
        return SimpleNamespace(
            composer=ComposerState(state, text, 0), screen=screen, verdict=verdict, offset=self.offset
        )

    def write(self, data: bytes) -> bool:
        """Whether it is hidden."""
        self.pressed()
        self.shown_at.append(self.shown[0])
        self.keys.append(data)
        shown = self.then.pop(0) if self.then else ""
        self.shown = [shown] if isinstance(shown, str) else shown
        return data == b"secret"

    def until(self, wanted: Callable[[Any], bool], timeout: float) -> bool:
        while not wanted(self.look()) and len(self.shown) > 1:
            if self.shown[0] in (MENU, WARNING) and timeout < self.hidden_s:
                break
            self.shown.pop(0)
        return wanted(self.look())

    @property
    def keyboard(self) -> Keyboard:
        return Keyboard(PROFILE)


def test_a_paste_that_is_not_shown_yet_is_taken_back_when_it_is() -> None:
    program = Program(["", "late text"])
    assert program.play(program.keyboard.take_back())
    assert program.keys == [b"\x15"]


@pytest.mark.parametrize("hides", [MENU, WARNING])
def test_a_paste_behind_something_else_is_taken_back_when_that_is_gone(hides: str) -> None:
    program = Program([hides, "", "late text"])
    program.hidden_s = 3600.0
    assert program.play(program.keyboard.take_back())
    assert program.keys == [b"\x15"]


def test_a_menu_that_the_keys_opened_is_closed() -> None:
    program = Program(["given back"], then=[MENU, ""])
    assert program.play(program.keyboard.clear())
    assert program.keys == [b"\x15", b"q"]
    program = Program([""], then=[MENU, ""])
    assert program.play(program.keyboard.interrupt(lambda _: True))
    assert program.keys == [b"\x1b", b"q"]


def test_a_menu_that_stands_before_the_stop_is_seen_is_closed_and_the_keys_not_pressed_again() -> None:
    """pi opens one at two Esc, and at one where the clock was set back."""
    program = Program(["working"], then=[MENU, ""])
    assert program.play(program.keyboard.interrupt(lambda look: look.composer.state == "empty"))
    assert program.keys == [b"\x1b", b"q"]


@pytest.mark.parametrize(
    ("shown", "again"), [(["working", "press it again"], True), (["working", "stopped"], False), (["working"], True)]
)
def test_keys_that_are_wanted_twice_are_pressed_again_when_the_program_says_so(shown: list[str], again: bool) -> None:
    """It may have stopped meanwhile; one that says nothing gets them all the same."""
    program = Program(["working"], then=[shown, "stopped"])  # type: ignore[list-item]  # lists are invariant
    twice = PROFILE.model_copy(update={"interrupt": Interrupt(keys="\x1b", repeat=2, again="press it again")})
    keyboard = Keyboard(twice)
    assert program.play(keyboard.interrupt(lambda look: look.screen.lines[0] == "stopped"))
    assert program.keys == [b"\x1b"] * (1 + again)
    assert program.asked_at[-1] == 1 + again


class Flooding(Program):
    """What it has written is drawn slowly: a look waits for all of it."""

    def do(self, step: Step) -> Any:
        if isinstance(step, LookNow) and self.keys:
            self.offset, self.shown = 100, ["stopped"]
        return super().do(step)


def test_a_program_whose_output_is_not_drawn_yet_is_looked_at_once_more() -> None:
    """It has stopped, and one more key would be for whatever comes next."""
    program = Flooding(["flood"], then=["flood"])
    assert program.play(program.keyboard.interrupt(lambda look: look.screen.lines[0] == "stopped"))
    assert program.keys == [b"\x1b"]


def test_keys_that_are_wanted_twice_are_pressed_when_the_program_shows_that_it_works() -> None:
    program = Program(["message", "esc to stop"], then=[["esc to stop", "press it again"], "stopped"])
    twice = PROFILE.model_copy(
        update={
            "busy": BusySigns(screen=["^esc to stop"]),
            "interrupt": Interrupt(keys="\x1b", repeat=2, again="press it again"),
        }
    )

    keyboard = Keyboard(twice)
    assert program.play(keyboard.interrupt(lambda look: look.screen.lines[0] == "stopped"))
    assert program.shown_at == ["esc to stop", "press it again"]


def test_a_press_that_came_before_there_was_anything_to_stop_is_made_up_for() -> None:
    program = Program(["working"], then=["working", ["working", "press it again"], "stopped"])
    twice = PROFILE.model_copy(update={"interrupt": Interrupt(keys="\x1b", repeat=2, again="press it again")})
    keyboard = Keyboard(twice)
    assert program.play(keyboard.interrupt(lambda look: look.screen.lines[0] == "stopped"))
    assert program.keys == [b"\x1b"] * 3


def test_a_menu_that_keys_pressed_once_too_often_open_late_is_closed() -> None:
    """The first time the rest of the paste came to be shown, not what the keys did."""
    program = Program(["a paste"], then=["a paste, all of it", ["", MENU], ""])
    assert program.play(program.keyboard.clear())
    assert program.keys == [b"\x15", b"\x15", b"q"]


def test_a_dialog_that_is_drawn_anew_between_two_steps_is_waited_for() -> None:
    program = Program(["a question"], then=[[WARNING, "a question: 1"], "a question: 1 words", ""])
    program.hidden_s = 1.0
    answered = program.play(
        program.keyboard.answer([b"1", b"words", b"\r"], lambda look: "question" in look.screen.lines[0])
    )
    assert (answered, program.keys) == (False, [b"1", b"words", b"\r"])


def test_keys_that_change_nothing_are_not_pressed_for_ever() -> None:
    program = Program(["a message"], then=["a message"] * 30)
    assert not program.play(program.keyboard.clear())
    assert program.keys == [b"\x15", b"\x7f", b"\x15"]
    assert len(program.keys) == VAIN_TRIES


def test_a_composer_that_is_erased_to_be_drawn_anew_is_not_empty() -> None:
    """cn's first line stayed in it, and held back all messages after a cancel."""
    for empties in (Keyboard.clear, Keyboard.erase):
        program = Program(["one|two"], then=[[WARNING, "one|"], ""])
        assert program.play(empties(program.keyboard))
        assert program.keys == [b"\x15", b"\x15"]


def test_a_composer_is_read_when_the_program_rests() -> None:
    class Works(Program):
        def do(self, step: Step) -> Any:
            return len(self.shown) == 1 if isinstance(step, Rests) else super().do(step)

    program = Works(["one|two"], then=[["", "one|"], ""])
    assert program.play(program.keyboard.clear())
    assert program.keys == [b"\x15", b"\x15"]


def test_a_program_that_never_rests_is_not_waited_for_for_ever() -> None:
    class Works(Program):
        def do(self, step: Step) -> Any:
            return False if isinstance(step, Rests) else super().do(step)

    program = Works(["text"])
    assert program.play(program.keyboard.clear())
    assert program.keys == [b"\x15"]


def test_the_keys_are_not_pressed_again_at_a_program_that_computes() -> None:
    """It is starved, and stops when it comes to the first: another key would be for what it does then."""

    class Starved(Program):
        def do(self, step: Step) -> Any:
            if isinstance(step, Rests):
                self.shown.append("stopped")
                return False
            return super().do(step)

    program = Starved(["working"], then=["working", "working"])
    assert program.play(program.keyboard.interrupt(lambda look: look.screen.text() == "stopped"))
    assert program.keys == [b"\x1b"]


def test_a_program_that_computes_and_never_stops_is_asked_twice() -> None:
    class Works(Program):
        def do(self, step: Step) -> Any:
            return False if isinstance(step, Rests) else super().do(step)

    program = Works(["working"], then=["working", "working"])
    assert not program.play(program.keyboard.interrupt(lambda _: False))
    assert program.keys == [b"\x1b"] * 2


def test_keys_that_take_a_line_are_pressed_for_each_with_backspace_between() -> None:
    """qwen's Ctrl-U does nothing in a line that is empty."""

    class Lines(Program):
        def write(self, data: bytes) -> bool:
            *above, last = self.shown[0].split("|")
            left = "" if data == b"\x15" else last[:-1]
            shown = [*above, left] if last or data == b"\x15" else above
            self.then = ["|".join(shown)]
            return super().write(data)

    program = Lines(["one|two|three|four"])
    assert program.play(program.keyboard.clear())
    assert program.keys == [b"\x15", b"\x15", b"\x7f", b"\x15", b"\x7f", b"\x15", b"\x7f", b"\x15"]


def test_an_answer_of_several_steps_ends_where_the_turn_is_stopped() -> None:
    program = Program(["a question"])
    keyboard = program.keyboard

    def stop() -> None:
        keyboard.interrupting = True

    program.pressed = stop
    assert program.play(keyboard.answer([b"1", b"words", b"\r"], lambda _: True)) is None
    assert program.keys == [b"1"]


def test_nothing_is_pressed_on_an_empty_composer() -> None:
    program = Program([""])
    assert program.play(program.keyboard.clear())
    assert program.keys == []


def at_rest(look: Any) -> bool:
    return look.screen.lines == ("",)


def test_a_message_that_is_put_off_is_given_back_and_removed() -> None:
    program = Program(["later: a message"], then=["a message", ""])
    assert program.play(program.keyboard.interrupt(at_rest, "a\nmessage"))
    assert program.keys == [b"\x1b[A", b"\x15"]


def test_one_that_is_put_off_only_after_the_first_keys_is_given_back_too() -> None:
    program = Program(["just submitted"], then=["later: a message", "a message", ""])
    assert program.play(program.keyboard.interrupt(at_rest, "a message"))
    assert program.keys == [b"\x1b", b"\x1b[A", b"\x15"]


@pytest.mark.parametrize("message", ["another one", None])
def test_somebody_elses_is_left_alone(message: str | None) -> None:
    program = Program(["later: a message"], then=["later: a message"] * 2)
    assert not program.play(program.keyboard.interrupt(at_rest, message))
    assert program.keys == [b"\x1b"] * 2


def test_an_answer_goes_step_by_step_while_its_dialog_is_there() -> None:
    program = Program(["a question"], then=["a row", "words", "done"])
    assert program.play(program.keyboard.answer([b"3", b"words", b"\r"], lambda _: True)) is False
    assert program.keys == [b"3", b"words", b"\r"]
    program = Program(["a question"], then=["another program's prompt"])
    keyboard = program.keyboard
    still = program.play(keyboard.answer([b"3", b"words", b"\r"], lambda look: "prompt" not in look.screen.lines[0]))
    assert (still, program.keys, keyboard.answering) == (None, [b"3"], False)
    assert program.play(keyboard.answer([b"secret", b"\r"], lambda _: True)) is True


MOVES = [Move(b"down", "second"), Move(b"down", "third"), Move(b"\r", None)]


def test_a_mark_is_moved_step_by_step_and_enter_comes_last() -> None:
    program = Program(["first"], then=["second", ["second", "third"], "done"])
    assert program.play(program.keyboard.choose(MOVES, lambda look: frozenset({look.screen.lines[0]}))) is True
    assert program.keys == [b"down", b"down", b"\r"]
    assert not program.keyboard.answering


@pytest.mark.parametrize(("shown", "told"), [("first", False), ("fourth", False), ("", None)])
def test_a_mark_that_goes_elsewhere_submits_nothing(shown: str, told: bool | None) -> None:
    program = Program(["first"], then=["second", shown])

    def marks(look: Any) -> frozenset[str] | None:
        return frozenset({look.screen.lines[0]}) if look.screen.lines[0] else None

    assert program.play(program.keyboard.choose(MOVES, marks)) is told
    assert program.keys == [b"down", b"down"]


@pytest.mark.parametrize(
    ("shown", "keys"),
    [
        (["Go on? (y/n) y"], [b"y", b"\r"]),
        (["Go on? (y/n)", "Go on? (y/n) y"], [b"y", b"\r"]),
        (["Delete all? (y/n)"], [b"y"]),
        (["Go on? (y/n)", "Go on? (y/n)"], [b"y"]),
        ([""], [b"y"]),
    ],
    ids=["it waits for Enter", "it is slow", "it asks the next", "it asks the same", "it took it"],
)
def test_enter_follows_a_letter_only_where_that_stands(shown: list[str], keys: list[bytes]) -> None:
    """Enter would take what is asked next by its default."""
    program = Program(["Go on? (y/n)"], then=[shown, ""])  # type: ignore[list-item]  # lists are invariant
    asked = find_prompt(Prompts(generic=True), drawn("Go on? (y/n) "))
    assert asked is not None
    program.play(program.keyboard.named([b"y", b"\r"], lambda look: holds_answer(drawn(look.screen.lines[0]), asked)))
    assert program.keys == keys


def test_enter_follows_a_letter_that_the_terminal_hid() -> None:
    program = Program(["PIN?"], then=["PIN?", ""])
    program.play(program.keyboard.named([b"secret", b"\r"], lambda _: False))
    assert program.keys == [b"secret", b"\r"]


def drawn(text: str) -> ScreenSnapshot:
    screen = Screen(40, 5)
    screen.feed(text.encode())
    return screen.snapshot()
