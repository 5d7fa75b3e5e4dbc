"""Markdown with colours: the text stays what it is, in any pieces."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsectl.markdown import MarkdownColours

STYLE = re.compile(r"\x1b\[[0-9;]*m")
WORDS = st.text(st.sampled_from("ab *`#->1.~\n_日"), max_size=80)


def coloured(*pieces: str) -> str:
    colours = MarkdownColours()
    return "".join(colours.feed(piece) for piece in pieces) + colours.end()


@given(WORDS)
def test_no_character_changes(text: str) -> None:
    assert STYLE.sub("", coloured(text)) == text


@given(WORDS, st.lists(st.integers(0, 80), max_size=6))
def test_pieces_make_no_difference(text: str, cuts: list[int]) -> None:
    ends = [*sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert coloured(*pieces) == coloured(text)


@given(WORDS)
def test_every_line_ends_without_a_style(text: str) -> None:
    for line in coloured(text).split("\n"):
        styles = STYLE.findall(line)
        assert not styles or styles[-1] == "\x1b[0m", line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("# Title\nx", "\x1b[1;35m# Title\x1b[0m\nx"),
        ("#no title", "#no title"),
        ("say `code` now", "say \x1b[36m`code`\x1b[0m now"),
        ("a **strong** word", "a \x1b[1m**strong**\x1b[0m word"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("`a*b`", "\x1b[36m`a*b`\x1b[0m"),
        ("- one\n2. two", "\x1b[1;32m- \x1b[0mone\n\x1b[1;32m2. \x1b[0mtwo"),
        ("> said", "\x1b[2;32m> said\x1b[0m"),
        ("```py\nx = '**'\n```\ny", "\x1b[2m```py\x1b[0m\n\x1b[36mx = '**'\x1b[0m\n\x1b[2m```\x1b[0m\ny"),
    ],
)
def test_what_is_seen(text: str, shown: str) -> None:
    assert coloured(text) == shown


def test_a_piece_is_there_at_once() -> None:
    colours = MarkdownColours()
    assert [colours.feed(piece) for piece in ("He", "llo", " wor", "ld")] == ["He", "llo", " wor", "ld"]
