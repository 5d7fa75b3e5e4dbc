"""A window that gets another size while its program works: what the terminal makes of the old screen ends no turn."""

import pytest

from synapsed.model.agent import Activity
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import BusySigns, Composer, Ready
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.verdict import STALE_S

COMPOSER = Composer(line=r"^> ?(?P<text>.*)$", around="\n─{20,}[^\n]*\n>", empty="\n>[^\n]*\n─{20,}")
PROFILE = Profile(
    name="p",
    command="p",
    ready=Ready(quiet_ms=60),
    busy=BusySigns(screen=[r"working \(esc to stop\)"], rows=4),
    composer=COMPOSER,
)
COLS, ROWS = 120, 40
WORKS = "working (esc to stop)"
FRAME = "\x1b[?2026h\x1b[H\x1b[J{}\x1b[?2026l"
SIZES = [(cols, rows) for cols in (200, 119, 100, 99, 80, 60, 41, 24, 10) for rows in (5, 6, 20, 60)]


def rows(cols: int, *, works: bool, place: str) -> str:
    """As a program draws it for `cols` columns: its sign above the composer, or below, at either side."""
    rule = "─" * (cols - 1)
    sign = WORKS if works else ""
    above, below = (sign, []) if place == "above" else ("", [sign if place == "below" else sign.rjust(cols - 2)])
    return FRAME.format("\r\n".join(["● said", "", above, rule, "> ", rule, *below]))


def working(place: str, *, alternate: bool) -> TerminalObserver:
    watched = TerminalObserver(PROFILE, cols=COLS, rows=ROWS, offset=0)
    watched.feed(0, b"\x1b[?1049h" if alternate else b"\x1b[H", 0.0)
    draw(watched, rows(COLS, works=True, place=place), 0.0)
    assert activity(watched, 0.0, 1.0) is Activity.BUSY
    return watched


def draw(watched: TerminalObserver, text: str, now: float) -> None:
    watched.feed(watched.offset, text.encode(), now)


def activity(watched: TerminalObserver, *times: float) -> Activity:
    """At the last of them."""
    return [watched.look(now).verdict.activity for now in times][-1]


@pytest.mark.parametrize("alternate", [False, True])
@pytest.mark.parametrize("place", ["above", "below", "right"])
@pytest.mark.parametrize("size", SIZES)
def test_a_program_that_is_slow_to_draw_again_works_on(size: tuple[int, int], place: str, alternate: bool) -> None:
    watched = working(place, alternate=alternate)
    watched.resize(*size)
    assert activity(watched, 2.0, 2.1, 1.9 + STALE_S) is Activity.BUSY
    draw(watched, "\x1b[?2026h\x1b[H\x1b[J", 12.0)  # it begins with it, and has to wait again
    assert activity(watched, 12.0, 12.1) is Activity.BUSY
    draw(watched, rows(size[0], works=True, place="above"), 13.0)
    assert activity(watched, 13.0, 13.1) is Activity.BUSY


@pytest.mark.parametrize("sizes", [[(60, 20), (COLS, ROWS)], [(60, 20), (200, 60), (50, 10)]])
def test_a_window_that_changes_again_before_the_program_draws(sizes: list[tuple[int, int]]) -> None:
    watched = working("above", alternate=False)
    for size in sizes:
        watched.resize(*size)
        assert activity(watched, 2.0, 2.1) is Activity.BUSY, size


@pytest.mark.parametrize("cols", [100, 60, 41])
def test_a_frame_that_was_drawn_for_the_older_window_and_comes_late(cols: int) -> None:
    """Each of its rows is wrapped: the sign stands higher than it was drawn."""
    watched = working("above", alternate=False)
    watched.resize(cols, 20)
    draw(watched, rows(COLS, works=True, place="above"), 2.0)
    assert activity(watched, 2.0, 2.1) is Activity.BUSY


@pytest.mark.parametrize("alternate", [False, True])
def test_who_has_drawn_in_the_new_size_that_it_rests_is_ready_at_once(alternate: bool) -> None:
    watched = working("right", alternate=alternate)
    watched.resize(60, 20)
    assert activity(watched, 2.0, 2.1) is Activity.BUSY
    draw(watched, rows(60, works=False, place="right"), 3.0)
    assert activity(watched, 3.0, 3.1) is Activity.READY


def test_who_never_draws_again_is_believed_by_its_screen_in_the_end() -> None:
    watched = working("right", alternate=True)
    watched.resize(60, 20)
    draw(watched, "", 2.0)
    assert activity(watched, 2.0, 1.9 + STALE_S) is Activity.BUSY
    watched.resize(60, 20)  # which changes nothing
    assert activity(watched, 2.1 + STALE_S) is Activity.READY


def test_who_rests_is_ready_in_another_size_without_drawing() -> None:
    watched = working("right", alternate=True)
    draw(watched, rows(COLS, works=False, place="right"), 2.0)
    assert activity(watched, 2.0, 2.1) is Activity.READY
    watched.resize(COLS, 20)
    assert activity(watched, 3.0, 3.1) is Activity.READY
