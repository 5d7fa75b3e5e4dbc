"""A program hears whether its terminal is dark or light, if it wants to."""

import pytest

from synapsed.model.outer_terminal import OuterTerminal
from synapsed.profiles.library import ProfileLibrary
from synapsed.pty.keyboard import LookNow, Press, Step
from synapsed.pty.window import Theme
from synapsed.terminal.look import Look
from synapsed.terminal.observer import TerminalObserver

DARK, LIGHT = OuterTerminal(background=(20, 20, 30)), OuterTerminal(background=(250, 240, 230))


def steps(theme: Theme, outer: OuterTerminal, shown: Look) -> list[Step]:
    """What is done where the screen looks so."""
    done, answer = [], None
    procedure = theme.changes(outer)
    while True:
        try:
            step = procedure.send(answer)
        except StopIteration:
            return done
        done.append(step)
        answer = shown if isinstance(step, LookNow) else None


@pytest.fixture
def wants() -> Look:
    return look(b"\x1b[?2031h")


def look(output: bytes) -> Look:
    observer = TerminalObserver(ProfileLibrary.builtin().get("generic"), cols=40, rows=5, offset=0)
    observer.feed(0, output, 1.0)
    return observer.look(2.0)


def test_one_that_wants_to_hears_of_every_change(wants: Look) -> None:
    theme = Theme(OuterTerminal())
    assert steps(theme, DARK, wants) == [], "it was told so"
    assert steps(theme, LIGHT, wants) == [LookNow(), Press(b"\x1b[?997;2n")]
    assert steps(theme, LIGHT, wants) == []
    assert steps(theme, OuterTerminal(), wants)[1:] == [Press(b"\x1b[?997;1n")]


def test_one_that_does_not_hears_nothing() -> None:
    assert steps(Theme(OuterTerminal()), LIGHT, look(b"")) == [LookNow()]


def test_what_has_changed_back_meanwhile_is_not_told(wants: Look) -> None:
    theme = Theme(OuterTerminal())
    first = theme.changes(LIGHT)
    assert next(first) == LookNow()
    second = theme.changes(DARK)
    assert next(second) == LookNow()
    with pytest.raises(StopIteration):
        first.send(wants)


def test_one_that_began_in_a_light_one_hears_of_a_dark_one(wants: Look) -> None:
    theme = Theme(LIGHT)
    assert steps(theme, LIGHT, wants) == []
    assert steps(theme, DARK, wants)[1:] == [Press(b"\x1b[?997;1n")]
