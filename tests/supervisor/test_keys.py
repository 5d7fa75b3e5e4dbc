"""Keys pressed on a program's behalf."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from synapsed.profiles import Delivery, Profile
from synapsed.supervisor.keys import Keyboard
from synapsed.terminal.composer import ComposerState

PROFILE = Profile(name="p", command="p", delivery=Delivery(clear="\x15"))


class Program:
    """Shows what was pasted only when it is looked at for the second time."""

    def __init__(self, shown: list[str]) -> None:
        self.shown = shown
        self.keys: list[bytes] = []

    def look(self) -> Any:
        text = self.shown[0]
        return SimpleNamespace(composer=ComposerState("draft" if text else "empty", text))

    async def write(self, data: bytes) -> None:
        self.keys.append(data)
        self.shown = [""]

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


async def test_nothing_is_pressed_on_an_empty_composer() -> None:
    program = Program([""])
    assert await program.keyboard.clear()
    assert program.keys == []
