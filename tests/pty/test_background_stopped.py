"""What runs in a program's background is stopped in the list that the program has of it."""

from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.model.agent import Activity
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Background
from synapsed.pty.keyboard import Keyboard, LookNow, Press, Step, WaitFor

PROFILE = Profile(name="p", command="p", background=Background(command="/tasks", list="x to stop", stop="x"))


class Program:
    """Has a list of what runs: a command opens it, a key shortens it once, Esc closes it; `deaf` to that key."""

    def __init__(self, *runs: str, deaf: bool = False, opened: int = 1) -> None:
        self.runs, self.deaf, self.lists = list(runs), deaf, opened
        self.keys: list[bytes] = []
        self._state = "empty"
        self._typed = ""
        self.asks: Any = None
        """A dialog that has come in the place of the list."""
        self._stops = False
        self._opened = 0
        """So many of `lists` are open, one in the other."""

    def play(self, profile: Profile = PROFILE) -> bool:
        keyboard = Keyboard(profile)
        steps, answer = keyboard.stop_background(), None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as done:
                assert not keyboard.answering
                return bool(done.value)
            assert keyboard.answering, "what is shown meanwhile is told to nobody"
            answer = self._do(step)

    def _do(self, step: Step) -> Any:
        match step:
            case Press(keys):
                self.keys.append(keys)
                self._press(keys)
                return False
            case LookNow():
                return self._look()
            case WaitFor(wanted):
                return wanted(self._look())
        raise AssertionError(step)

    def _press(self, keys: bytes) -> None:
        match self._state, keys:
            case "empty", b"/tasks":
                self._state, self._typed = "draft", keys.decode()
            case "draft", b"\r" if self.lists:
                self._state, self._opened, self._stops = "absent", self.lists, True
            case "draft", b"\r":
                self._state, self.runs = "empty", []
            case "absent", b"x" if self._stops and not self.deaf:
                self._stops = False  # a second one finds nothing marked
                self.runs.pop()
            case "absent", b"\x1b":
                self._opened -= 1
                self._state = "absent" if self._opened else "empty"

    def _look(self) -> Any:
        activity = Activity.READY if self._state in ("empty", "draft") else Activity.UNKNOWN
        composer = SimpleNamespace(state=self._state, text=self._typed)
        screen = SimpleNamespace(lines=["x to stop" if self._state == "absent" and self.asks is None else ""])
        verdict = SimpleNamespace(activity=activity, asked=self.asks)
        return SimpleNamespace(background=tuple(self.runs), composer=composer, screen=screen, verdict=verdict)


@pytest.mark.parametrize("opened", [1, 2])
def test_each_is_stopped_and_the_list_closed(opened: int) -> None:
    program = Program("Serve", "Look at it", opened=opened)
    assert program.play()
    assert program.keys == [b"/tasks", b"\r", b"x", *[b"\x1b"] * opened] * 2


def test_what_does_not_stop_is_left() -> None:
    program = Program("Serve", deaf=True)
    assert not program.play()
    assert program.keys == [b"/tasks", b"\r", b"x", b"\x1b"]


def test_no_key_is_pressed_where_it_is_not_known_how() -> None:
    program = Program("Serve")
    assert not program.play(Profile(name="p", command="p"))
    assert program.keys == []


def test_a_command_may_stop_all_of_it() -> None:
    program = Program("Serve", "Look at it", opened=0)
    assert program.play(Profile(name="p", command="p", background=Background(command="/tasks")))
    assert program.keys == [b"/tasks", b"\r"]


def test_no_key_is_pressed_into_a_dialog_that_comes_in_the_place_of_the_list() -> None:
    program = Program("Serve")
    program.asks = SimpleNamespace(prompt=SimpleNamespace(type="permission"))
    assert not program.play()
    assert program.keys == [b"/tasks", b"\r"]


def test_a_command_that_is_not_seen_in_the_composer_is_not_submitted() -> None:
    program = Program("Serve")
    program._press = lambda keys: None  # type: ignore[method-assign]
    assert not program.play()
    assert program.keys == [b"/tasks"]
