"""The size in which output is drawn."""

from synapsed.screens.remote_screen import SIZES_MAX, WindowSizes

SMALL, TALL, WIDE = (80, 24), (80, 200), (132, 24)


def sized(*known: tuple[int, tuple[int, int]]) -> WindowSizes:
    sizes = WindowSizes(SMALL)
    for at, size in known:
        sizes.resize(size, at, 0)
    return sizes


def test_an_empty_screen_has_the_size_of_its_beginning() -> None:
    sizes = sized((0, SMALL), (10, TALL), (20, WIDE))
    assert sizes.begin(10, None) == TALL
    assert (sizes.until(10, 100), sizes.until(10, 15)) == (20, 15)
    assert list(sizes.due(19)) == []
    assert list(sizes.due(20)) == [WIDE]
    assert list(sizes.due(99)) == []


def test_a_screen_that_was_kept_has_its_own() -> None:
    """It may have been kept before the window got another size there, or after."""
    sizes = sized((0, SMALL), (10, TALL))
    assert sizes.begin(10, SMALL) == SMALL
    assert list(sizes.due(10)) == [TALL]
    assert sizes.begin(11, TALL) == TALL
    assert list(sizes.due(99)) == []


def test_a_keeper_of_before_says_what_the_size_is_now() -> None:
    sizes = WindowSizes(SMALL)
    sizes.resize(TALL, 30, 30)
    assert sizes.begin(0, None) == SMALL
    assert sizes.begin(40, SMALL) == SMALL
    assert list(sizes.due(40)) == [TALL]


def test_a_change_comes_behind_those_that_are_still_to_come() -> None:
    """While a daemon that came reads what was written before."""
    sizes = sized((0, SMALL), (30, TALL))
    sizes.begin(10, SMALL)
    sizes.resize(WIDE, sizes.last_at(20), 20)
    assert list(sizes.due(29)) == []
    assert list(sizes.due(30)) == [TALL, WIDE]


def test_the_last_ones_are_known() -> None:
    sizes = sized(*((n, (80, 24 + n)) for n in range(SIZES_MAX + 10)))
    assert sizes.begin(SIZES_MAX + 5, None) == (80, 24 + SIZES_MAX + 5)
    assert sizes.begin(0, None) == SMALL
