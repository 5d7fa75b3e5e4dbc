"""When colours are wanted, and that tables bear them."""

import io

import pytest

from synapsectl.colours import painted, wanted
from synapsectl.output import CommandOutput, TableCell


@pytest.mark.parametrize(
    ("environ", "on_terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"CLICOLOR": "0"}, True, False),
        ({"CLICOLOR": "1"}, False, False),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"CLICOLOR_FORCE": "0"}, False, False),
        ({"CLICOLOR_FORCE": "1", "CLICOLOR": "0"}, True, True),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, True, False),
        ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True, False),
    ],
)
def test_when_colours_are_wanted(environ: dict[str, str], *, on_terminal: bool, coloured: bool) -> None:
    assert wanted(environ, on_terminal=on_terminal) is coloured


def test_nothing_is_painted_without_a_style_or_a_text() -> None:
    assert (painted("x", ""), painted("", "1"), painted("x", "1;33")) == ("x", "", "\x1b[1;33mx\x1b[0m")


def test_what_others_wrote_brings_no_colour_of_its_own() -> None:
    for coloured in (True, False):
        out = CommandOutput(io.StringIO(), io.StringIO(), columns=40, coloured=coloured)
        out.table(("A", "B"), [(TableCell("\x1b[31mred\x1b[0m", "2"), "x")])
        assert "\\x1b[31mred" in out.stdout.getvalue()  # type: ignore[attr-defined]  # a StringIO
        assert "\x1b[31m" not in out.stdout.getvalue()  # type: ignore[attr-defined]  # a StringIO


def test_a_column_gives_way_before_the_others_have_to() -> None:
    out = CommandOutput(io.StringIO(), io.StringIO(), columns=30)
    lines = out.table_lines(("NAME", "WHAT"), [(TableCell("n" * 40, most=10), "w" * 40)], grows="WHAT")
    assert lines == ["NAME        WHAT", f"{'n' * 9}…  {'w' * 17}…"]
