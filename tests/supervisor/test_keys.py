"""Keys pressed on a program's behalf."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from synapsed.profiles import Composer, Delivery, Dialog, Interrupt, Profile
from synapsed.supervisor.keys import Keyboard
from synapsed.terminal.composer import ComposerState

MENU = "a menu"
PROFILE = Profile(
    name="p",
    command="p",
    composer=Composer(line="^> (?P<text>.*)$"),
    delivery=Delivery(clear="\x15"),
    interrupt=Interrupt(keys="\x1b"),
)


class Program:
    """Shows what was pasted only when it is looked at for the second time."""

    def __init__(self, shown: list[str], then: list[str] | None = None) -> None:
        """`then` is what it shows after each of our keys."""
        self.shown = shown
        self.then = then or []
        self.keys: list[bytes] = []

    def look(self) -> Any:
        text = self.shown[0]
        menu = text == MENU
        state = "absent" if menu else "draft" if text else "empty"
        asked = SimpleNamespace(dialog=Dialog(type="question", when=[MENU], leave="q")) if menu else None
        screen, verdict = SimpleNamespace(lines=(text,)), SimpleNamespace(asked=asked)
        return SimpleNamespace(composer=ComposerState(state, text, 0), screen=screen, verdict=verdict)

    async def write(self, data: bytes) -> None:
        self.keys.append(data)
        self.shown = [self.then.pop(0) if self.then else ""]

    async def until(self, wanted: Callable[[Any], bool], timeout: float) -> bool:
        while not wanted(self.look()) and len(self.shown) > 1:
            self.shown.pop(0)
        return wanted(self.look())

    @property
    def keyboard(self) -> Keyboard:
        return Keyboard(PROFILE, self.write, self.look, self.until)


async def test_a_paste_that_is_not_shown_yet_is_taken_back_when_it_is() -> None:
    program = Program(["", "late text"])
    assert await program.keyboard.take_back()
    assert program.keys == [b"\x15"]


async def test_a_menu_that_the_keys_opened_is_closed() -> None:
    program = Program(["given back"], then=[MENU, ""])
    assert await program.keyboard.clear()
    assert program.keys == [b"\x15", b"q"]
    program = Program([""], then=[MENU, ""])
    assert await program.keyboard.interrupt(lambda _: True, no_signal)
    assert program.keys == [b"\x1b", b"q"]


async def no_signal(number: int) -> None:
    raise AssertionError(number)


async def test_nothing_is_pressed_on_an_empty_composer() -> None:
    program = Program([""])
    assert await program.keyboard.clear()
    assert program.keys == []
