"""The size of a program's window, step by step."""

from types import SimpleNamespace
from typing import cast

import pytest

from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import AnswerSpec
from synapsed.pty.keyboard import Pause, Resize
from synapsed.pty.window import NUDGE_EVERY_S, NUDGE_S, Window
from synapsed.terminal.look import Look

PROFILE = Profile(name="p", command="p", answer=AnswerSpec(mode="blocks", start="^> ", rows=200))


def window(attached: int = 0, writers: int = 0) -> Window:
    made = Window(PROFILE, own=(80, 24), attached=lambda: attached, writers=lambda: writers, told=False)
    made.size = (80, 24)
    return made


def test_a_size_that_comes_while_a_redraw_is_asked_for_is_the_one_that_stays() -> None:
    one = window()
    redraw = one.redraw(100.0)
    assert next(redraw) == Resize(79, 24)
    assert next(redraw) == Pause(NUDGE_S)
    assert list(one.resize(132, 50)) == [Resize(132, 50)]
    assert list(redraw) == [Resize(132, 50)]
    assert not one.may_want_redraw(None, 100.0 + NUDGE_EVERY_S - 1, hurry=True)
    assert one.may_want_redraw(None, 100.0 + NUDGE_EVERY_S, hurry=True)


def test_a_size_is_known_before_the_keeper_has_it() -> None:
    """A redraw that ends meanwhile would bring the old one back."""
    one = window()
    redraw = one.redraw(100.0)
    next(redraw), next(redraw)
    comes = one.resize(132, 50)
    assert next(comes) == Resize(132, 50)
    assert list(redraw) == [Resize(132, 50)]


def test_a_window_that_a_killed_daemon_left_narrower_is_known_by_its_screen() -> None:
    one = window()
    narrower = next(one.redraw(100.0))
    assert isinstance(narrower, Resize)
    left = window()
    left.size = (narrower.cols, narrower.rows)
    assert left.left_in_redraw((80, 24))
    assert not any(left.left_in_redraw(kept) for kept in [None, left.size, (120, 24), (80, 40)])


def test_a_window_is_made_tall_once_and_only_while_nobody_looks() -> None:
    one = window()
    assert list(one.stretch()) == [Resize(80, 200)]
    assert list(one.stretch()) == []
    assert list(one.join(100, 30)) == [Resize(100, 30)]
    assert list(window(attached=1).stretch()) == []


def test_a_wide_window_is_made_as_tall_as_a_screen_may_be() -> None:
    one = window()
    list(one.resize(200, 50))
    assert list(one.stretch()) == [Resize(200, 150)]
    assert list(one.stretch()) == []
    for rows in (149, 150):
        look = cast("Look", SimpleNamespace(screen=SimpleNamespace(alternate=True, cols=200, rows=rows)))
        assert one.wants_rows(look) is (rows < 150)
    assert list(one.join(100, 30)) == [Resize(100, 30)]


@pytest.mark.parametrize(
    ("wanted", "becomes"),
    [
        ((8, 2), (20, 5)),
        ((19, 30), (20, 30)),
        ((100, 4), (100, 5)),
        ((10_000, 24), (1000, 24)),
        ((10_000, 65_535), (1000, 30)),
        ((500, 200), (500, 60)),
        ((1, 65_535), (20, 1000)),
    ],
)
def test_a_window_has_a_floor_and_a_ceiling(wanted: tuple[int, int], becomes: tuple[int, int]) -> None:
    """The picture that a program draws in a narrower one cannot be read."""
    one = window(attached=1, writers=1)
    assert list(one.resize(*wanted)) == [Resize(*becomes)]
    assert one.size == becomes


def test_a_program_gets_its_own_size_back_when_nobody_stays_who_types() -> None:
    one = window()
    assert list(one.give_back()) == []
    list(one.resize(15, 10))
    assert list(one.give_back()) == [Resize(80, 24)]
    assert list(one.stretch()) == [Resize(80, 200)]
    assert list(one.give_back()) == [], "a tall window is its own"


def test_a_window_in_which_somebody_types_stays_theirs() -> None:
    one = window(attached=2, writers=1)
    list(one.resize(132, 50))
    assert list(one.give_back()) == []
    assert one.size == (132, 50)
