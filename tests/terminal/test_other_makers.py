"""What terminals of other makers understand of a filtered stream: xterm.js' parser, and tmux.

Whatever the bytes are and however they are cut: no access to the clipboard, no question, no window operation, nothing
that is answered. What harms is told here once more, and otherwise than in the table of what passes.
"""

import re
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synapsed.terminal.viewer_filter import ViewerFilter
from tests.emulator.tmux import TmuxScreen
from tests.support.hostile_bytes import BYTES
from tests.support.hostile_output import HOSTILE
from tests.terminal.headless import Headless, Understood, missing
from tests.terminal.test_scanner import QUERIES

NO_HEADLESS = missing()
needs_headless = pytest.mark.skipif(NO_HEADLESS is not None, reason=str(NO_HEADLESS))
needs_tmux = pytest.mark.skipif(not TmuxScreen.available(), reason="tmux is not installed")

CUTS = st.lists(st.integers(0, 400), max_size=6)
MANY = settings(
    max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)

HARMFUL = {
    "answer": re.compile(".*", re.DOTALL),
    "execute": re.compile("5:.*"),
    "csi": re.compile(
        r"(?:[<=?]?n|[<=>?]?c|[<=>?]?t|x|[<=>?]?i|[?>]q|\??\$p|\?u|\?m|\?S|\$w|\??\$u|&u|\*y|\+p|#[RS|]|'[|wz]|\"[pv]):.*"
        r"|\?[hlrs]:.*(?<!\d)(?:2|3|38|40|42|44|46|5522)(?!\d).*"
    ),
    "esc": re.compile(r"(?:Z|k|[% ].*):"),
    "osc": re.compile(
        r"(?:3|50|52|5522|633|NaN|-.*):.*|(?:4|5|1\d|2[12]):.*\?.*|9:[1-356789](?:;.*)?|1337:(?!SetMark|File|Multi).*"
        r"|7501:\s*\?\s*|99:(?:[^;]*:)?(?:p=(?:\?|alive)|c=1|a=[^:;]*report).*",
        re.DOTALL,
    ),
    "dcs": re.compile(r"(?!q:|=s:).*", re.DOTALL),
}
"""By the kind of what is understood: its name, a colon, its body."""


def harms(one: Understood) -> bool:
    return HARMFUL[one.kind].fullmatch(f"{one.name}:{one.body}") is not None


def filtered(data: bytes, cuts: list[int]) -> bytes:
    viewer = ViewerFilter()
    edges = [0, *sorted(cut for cut in cuts if cut <= len(data)), len(data)]
    return b"".join(viewer.feed(data[start:end]) for start, end in pairwise(edges))


_PLAIN = [
    *QUERIES,
    *(
        part.format(a=4, b=4, m=1).encode()
        for part in HOSTILE
        if not part.startswith(("\x1b[200", "\x1b]un", "\x1b[12"))
    ),
    *(b"\x05", b"\x1bZ", b"\x1b[8;4;4t", b"\x1b]1337;Copy=:ZXZpbA==\x07", b"\x1b]5522;type=read;\x1b\\"),
    *(b"\x1bPtmux;\x1b\x1b]52;c;ZXZpbA==\x07\x1b\\", b"\x1bP\x1b]52;c;ZXZpbA==\x07\x1b\\", b"\x1bkname\x1b\\"),
    *(
        "\x9b6n".encode(),
        "\x9d52;c;ZXZpbA==\x9c".encode(),
        b"\x9b6n",
        b"\x1b%@\xc2\x9b6n",
        b"\x1b]52;c;ZXZpbA==\x1b[6n",
    ),
]
STRAYS = (b"", b"\x00", b"\b", b"\r", b"\x7f", b"\x80", b"0")
SMOKE = b"".join(
    data[:at] + stray + data[at:] + b"\x18\x1b\\" for data in _PLAIN for stray in STRAYS for at in (1, 2, 3)
)
"""Each, as it is and with something in it that is passed over."""


@pytest.fixture(scope="module")
def headless() -> Iterator[Headless]:
    with Headless() as terminal:
        yield terminal


@needs_headless
def test_another_parser_finds_nothing_that_harms(headless: Headless) -> None:
    unfiltered = headless.understands(SMOKE)
    assert {one.kind for one in unfiltered if harms(one)} == {"answer", "csi", "dcs", "esc", "execute", "osc"}
    found = headless.understands(filtered(SMOKE, list(range(0, len(SMOKE), 5))))
    assert [one for one in found if harms(one)] == []
    assert len(found) > 100, "it is no empty stream"


@pytest.mark.night
@needs_headless
@MANY
@given(BYTES, CUTS)
def test_it_finds_nothing_whatever_the_bytes(headless: Headless, data: bytes, cuts: list[int]) -> None:
    assert [one for one in headless.understands(filtered(data, cuts)) if harms(one)] == []


@pytest.fixture(scope="module")
def tmux() -> Iterator[TmuxScreen]:
    with tempfile.TemporaryDirectory(prefix="tm", dir="/tmp") as folder, TmuxScreen(Path(folder), 80, 24) as screen:
        screen.obey()
        yield screen


@needs_tmux
def test_tmux_answers_nothing_and_takes_nothing(tmux: TmuxScreen) -> None:
    state, replies = tmux.state(), tmux.replies()
    tmux.feed(filtered(SMOKE, []))
    assert (tmux.buffers(), tmux.replies(), tmux.state()) == ("", replies, state)
    tmux.feed(b"\x1b]52;c;Z29vZA==\x07\x1b[6n")
    assert "good" in tmux.buffers(), "it would take it"
    assert len(tmux.replies()) > len(replies), "and answer"


@pytest.mark.night
@needs_tmux
@settings(MANY, max_examples=400)
@given(st.lists(st.tuples(BYTES, CUTS), min_size=1, max_size=40))
def test_nor_does_it_whatever_the_bytes(tmux: TmuxScreen, streams: list[tuple[bytes, list[int]]]) -> None:
    before = tmux.buffers(), tmux.replies(), tmux.state()
    tmux.feed(b"".join(filtered(data, cuts) for data, cuts in streams))
    assert (tmux.buffers(), tmux.replies(), tmux.state()) == before
