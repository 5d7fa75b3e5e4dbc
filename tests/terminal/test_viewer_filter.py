"""What a person's terminal gets of a program's output: text, and of sequences what the table lists."""

from itertools import pairwise
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.viewer_filter import MAX_PASSED, ViewerFilter
from tests.emulator.streams import Stream, recordings
from tests.support.gated import chosen
from tests.support.hostile_bytes import BYTES
from tests.support.hostile_output import stream
from tests.terminal.test_scanner import QUERIES


def seen(data: bytes, *cuts: int, clipboard: bool = False) -> bytes:
    viewer = ViewerFilter(clipboard=clipboard)
    return b"".join(viewer.feed(data[start:end]) for start, end in pairwise([0, *sorted(cuts), len(data)]))


PASSES = [
    b"text, tabs\t and lines\r\n\x07\b\x0e\x0f\x0b\x0c",
    "漢字 é \U0001f44d £ \xa0 Â".encode(),
    b"\x1b[38;5;12m\x1b[4:3m\x1b[m\x1b[12;40H\x1b[2J\x1b[K\x1b[2;5r\x1b[3L\x1b[9b\x1b[s\x1b[u\x1b[3g",
    b"\x1b[?25;2004;1049h\x1b[?1049l\x1b[?2026h\x1b[?7s\x1b[?7r\x1b[4h\x1b[20l",
    b"\x1b[>4;1m\x1b[>4n\x1b[>1u\x1b[<u\x1b[=5;1u\x1b[!p\x1b[3 q\x1b[1\"q\x1b[?2J\x1b[2$z\x1b[3'}\x1b[#{",
    b"\x1b7\x1b8\x1bM\x1bD\x1bE\x1bH\x1b=\x1b>\x1bc\x1bn\x1b(0\x1b)B\x1b#8",
    b"\x1b]0;52;a title\x07\x1b]2;1337;Copy\x1b\\\x1b]1;icon\x07",
    b"\x1b]8;;https://example.org/52;?q=1\x1b\\link\x1b]8;;\x1b\\",
    b"\x1b]133;A;click_events=1\x1b\\\x1b]133;B\x07",
    b"\x1b]9;4;1;50\x07\x1b]9;4;3\x1b\\\x1b]9;4 files changed?\x07",
    b"\x1b]7501;state=idle:app=codex\x07\x1b]7501;?x\x07",
    b"\x1b]7;file://host/tmp\x07\x1b]777;notify;a;b\x07\x1b]99;i=1:d=0:p=title;hello?\x1b\\\x1b]99;;hello\x1b\\",
    b"\x1b]4;1;#010203\x07\x1b]10;#ffffff\x07\x1b]104\x07\x1b]111\x1b\\\x1b]22;pointer\x1b\\",
    b"\x1bPq#0;2;0;0;0#0~~@@\x1b\\\x1bP0;1q~\x1b\\\x1bP=1s\x1b\\",
    b"\x1b]1337;File=name=YQ==;inline=1;size=4:AAAA\x07\x1b]1337;SetMark\x07",
    b"\x1b_Ga=T,f=24,q=2;AAAA\x1b\\",
]


@pytest.mark.parametrize("data", PASSES, ids=repr)
def test_what_is_listed_passes_as_it_is(data: bytes) -> None:
    for cut in range(len(data)):
        assert seen(data, cut) == data


WRITTEN_AGAIN = {
    b"\x1b[3\n1mred": b"\n\x1b[31mred",
    b"\x1b[?0001049;3;25h": b"\x1b[?1049;25h",
    b"\x1b]0002;t\x00i\x07": b"\x1b]2;ti\x07",
    b"\x1b_Ga=T,q=0,i=1;AAAA\x1b\\": b"\x1b_Ga=T,i=1,q=2;AAAA\x1b\\",
    b"\x1b_Gm=0;AAAA\x1b\\": b"\x1b_Gm=0,q=2;AAAA\x1b\\",
    b"\x1bPq#0\r\n~\xff\x1b\\": b"\x1bPq#0~\x1b\\",
    b"\xe2\x1b[6n\x80\x8b": "\ufffd\ufffd\ufffd".encode(),
    "a\x9bcb\x85".encode(): "a\ufffdcb\ufffd".encode(),
    "\x9d52;c;aGVsbG8=\x9c".encode(): "\ufffd52;c;aGVsbG8=\ufffd".encode(),
    "\x1b]0;a title\x9cand text\x07".encode(): "\x1b]0;a title\ufffdand text\x07".encode(),
    b"\x1b]0;\xc2\x00\x9b\xff\x07": "\x1b]0;\ufffd\ufffd\x07".encode(),
    b"\xc2\xc2\x9b\x9b31m": "\ufffd\ufffd\ufffd31m".encode(),
    b"\x00\x05\x11\x18\x1a\x7fA": b"A",
}


@pytest.mark.parametrize("data", WRITTEN_AGAIN, ids=repr)
def test_what_is_written_again(data: bytes) -> None:
    for cut in range(len(data)):
        assert seen(data, cut) == WRITTEN_AGAIN[data]


DROPPED = [
    *QUERIES,
    *(b"\x05", b"\x1bZ", b"\x1b[8;24;80t", b"\x1b[22;0t", b"\x1b[2t", b"\x1b[>2t", b"\x1b[4i", b"\x1b[?5i", b"\x1b[1q"),
    *(b"\x1b[?2l", b"\x1b[?38h", b"\x1b[?42h", b"\x1b[?3h", b"\x1b[?40h", b"\x1b[?5522h", b"\x1b[2h", b"\x1b[?r"),
    *(b"\x1b%@", b"\x1b%G", b"\x1b G", b"\x1bk", b'\x1b[62;0"p', b"\x1b[1;2;3;4'z", b"\x1b[#R", b"\x1b[?1;1;0S"),
    *(b"\x1b[99$|", b"\x1b[?1?h", b"\x1b[ 1q", b"\x1b[>0c", b"\x1b[0x", b"\x1b[1;1;1;1;1;1*y", b"\x1b[1$w", b"\x1b[#|"),
    *(
        b"\x1b]9;7;calc\x07",
        b"\x1b]9;6;macro\x07",
        b"\x1b]50;?\x07",
        b"\x1b]3;x\x07",
        b"\x1b]l\x1b\\",
        b"\x1b]Pa112233\x07",
    ),
    *(b"\x1b]633;E;rm\x07", b"\x1b]777;open;x\x07", b"\x1b]99;i=1:a=report;x\x07", b"\x1b]99;i=1:p=alive;\x07"),
    *(
        b"\x1b]99;i=1:c=1;\x07",
        b"\x1b]99;i=1a=report;\x07",
        b"\x1b]99;i=1:p=?;\x07",
        b"\x1b]22;?__current__\x07",
        b"\x1b]21;foreground=?\x07",
    ),
    *(b"\x1b]1337;File=name=YQ==:AAAA\x07", b"\x1b]1337;File=inline=1;inline=0:AAAA\x07", b"\x1b]1337;StealFocus\x07"),
    *(b"\x1b]1337;RequestUpload=format=tgz\x07", b"\x1b]1337;ReportCellSize\x07", b"\x1b]99999999990;x\x07"),
    *(b"\x1bP0;1|17/ab\x1b\\", b"\x1bP$t1$\x1b\\", b"\x1bP1;1{ @\x1b\\", b"\x1b^private\x1b\\", b"\x1bXstart\x1b\\"),
    *(b"\x1b_Ga=T,t=f;L2V0Yy9wYXNzd2Q=\x1b\\", b"\x1b_Ga=T,t=t;YQ==\x1b\\", b"\x1b_title\x1b\\", b"\x1b_G a=q;\x1b\\"),
    *(b"\x1b]52;c;aGk=\x18", b"\x1b]0;title\x1a", b"\x1b[6\x18", b"\x1bPq~\x18", b"\x1b\x1b\\"),
    *(b"\x1b]" + b"0" * 12 + b"52;c;ZXZpbA==\x07", b"\x1bP\x00$qm\x1b\\", b"\x1b]5\x002;c;?\x07", b"\x1b]1\x001;?\x07"),
]


@pytest.mark.parametrize("data", DROPPED, ids=repr)
def test_what_is_not_listed_does_not_pass(data: bytes) -> None:
    for cut in range(len(data)):
        assert seen(b"before" + data + b"after", 6 + cut) == b"beforeafter"


@pytest.mark.parametrize("data", [data for data in DROPPED if data[:1] == b"\x1b" and len(data) > 2], ids=repr)
@pytest.mark.parametrize("stray", [b"\x00", b"\x7f", b"\xff"])
def test_nor_with_what_terminals_pass_over_in_it(data: bytes, stray: bytes) -> None:
    if stray == b"\xff" and data[1:2] == b"]":
        return  # it is a character of the string
    for at in range(1, len(data)):
        if data[at - 1 : at] not in (b"\x1b", b"\x18", b"\x1a"):
            assert b"\x1b" not in seen(data[:at] + stray + data[at:])


def test_a_passthrough_for_another_terminal_is_not_one() -> None:
    assert seen(b"a\x1bPtmux;\x1b\x1b]52;c;ZXZpbA==\x07\x1b\\z") == b"az"
    assert seen(b"a\x1bP\x1b]52;c;ZXZpbA==\x07\x1b\\z") == b"az"


CLIPBOARD = [
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1b]52;;aGVsbG8=\x1b\\",
    b"\x1b]52;c;!\x07",
    b"\x1b]5522;type=write;\x1b\\",
    b"\x1b]1337;Copy=:aGVsbG8=\x07",
    b"\x1b]1337;CopyToClipboard=find\x07",
    b"\x1b]1337;EndCopy\x07",
    b"\x1b]52;c;" + b"QUFB" * 100_000 + b"\x1b\\",
]


@pytest.mark.parametrize("sets", CLIPBOARD, ids=lambda sets: repr(sets[:24]))
def test_the_clipboard_is_set_where_it_may_be(sets: bytes) -> None:
    assert seen(b"before\x1b[m" + sets + b"\x1b[1mafter") == b"before\x1b[m\x1b[1mafter"
    assert seen(sets, clipboard=True) == sets
    viewer = ViewerFilter()
    viewer.feed(sets * 3)
    assert viewer.unset == 3
    allowed = ViewerFilter(clipboard=True)
    allowed.feed(sets)
    assert allowed.unset == 0


@pytest.mark.parametrize("reads", [b"\x1b]52;c;?\x07", b"\x1b]5522;type=read;Lg==\x1b\\"])
def test_it_is_never_read(reads: bytes) -> None:
    assert seen(reads, clipboard=True) == b""


@given(BYTES, st.lists(st.integers(0, 400), max_size=6), st.booleans())
def test_any_chunking_gives_the_same_and_there_is_nothing_left_to_take_out(
    data: bytes, cuts: list[int], clipboard: bool
) -> None:
    whole = seen(data, clipboard=clipboard)
    assert seen(data, *(cut for cut in cuts if cut <= len(data)), clipboard=clipboard) == whole
    assert seen(data, *range(1, len(data)), clipboard=clipboard) == whole
    assert seen(whole, clipboard=clipboard) == whole
    assert not any(ord(character) in range(0x80, 0xA0) for character in whole.decode())


@pytest.mark.parametrize("seed", range(12))
def test_a_viewers_screen_is_the_daemons(seed: int) -> None:
    data = stream(seed, 200, 10).replace(b"\x1b[?3h", b"").replace(b"\x1b[?3l", b"")
    daemons, viewers = Screen(60, 12), Screen(60, 12)
    daemons.feed(data)
    viewers.feed(seen(data))
    assert viewers.snapshot() == daemons.snapshot()


@pytest.mark.recorded
@pytest.mark.parametrize("recorded", chosen(recordings(), attrgetter("recording")), ids=str)
def test_what_programs_write_and_what_is_drawn_of_it_passes(recorded: Stream) -> None:
    screen, viewers = Screen(recorded.cols, recorded.rows), Screen(recorded.cols, recorded.rows)
    screen.feed(recorded.data)
    viewers.feed(seen(recorded.data))
    assert viewers.snapshot() == screen.snapshot()
    redraw = screen.redraw(scrollback=True)
    assert seen(redraw) == redraw


@pytest.mark.parametrize("size", [4093, MAX_PASSED, 3 * MAX_PASSED])
def test_a_string_passes_as_a_whole_or_not_at_all(size: int) -> None:
    fits = b"\x1bPq" + b"~" * (MAX_PASSED - 5) + b"\x1b\\"
    longer = fits.replace(b"~", b"~~", 1)
    data = fits + longer + b"behind"
    assert seen(data, *range(0, len(data), size)) == fits + b"behind"


@pytest.mark.night
@pytest.mark.slow
def test_strings_built_to_make_the_expressions_backtrack_are_read_in_linear_time() -> None:
    """No deadline is asserted: quadratic behaviour would exceed the test's time-out."""
    for data in (
        b"\x1b_G" + b"a=q," * 60_000 + b"\x1b\\",
        b"\x1b]1337;File=" + b"inline=1;" * 60_000 + b"\x07",
        b"\x1b]1337;File=" + b"inlin;" * 60_000 + b"\x07",
        b"\x1b]99;" + b"i=1:" * 60_000 + b"p=?;\x07",
        b"\x1b]9;4" + b";1" * 60_000 + b"x\x07",
        b"\x1b]" + b"01" * 250_000 + b"\x07",
        b"\x1b]4;" + b"1;?" * 60_000 + b"\x07",
        b"\x1b\n" * 100_000,
        b"\x1b[1\n" * 60_000,
        b"\x1b(" * 60_000,
    ):
        for _ in range(10):
            assert b"\x1b" not in seen(data + b"\x18")


# --- on one screen --------------------------------------------------------------------------------------------------

COLS, ROWS = 30, 6
MINE = b"".join(b"mine %d\r\n" % number for number in range(20)) + b"$ "
CHANGES = (b"47", b"1047", b"1049", b"0001049", b"25;1049", b"1049;25", b"1;47;2004", b"01047", b"1\x00049")
PIECES = st.sampled_from(
    [
        *(b"\x1b[?%b%c" % (mode, final) for mode in CHANGES for final in b"hlsr"),
        *(b"\x1bc", b"\x1b\x00c", b"\x1b[3J", b"\x1b[0003J", b"\x1b[2;3J", b"\x1b[\x003J", b"\x1b[J", b"\x1b[2J"),
        *(b"\x1b[H", b"\x1b[?25l", b"\x1b[31;3m", b"\x1b7", b"\x1b8", b"\x1b[1048h", b"words 3J \r\n", "漢字".encode()),
    ]
)


@given(st.lists(PIECES, max_size=30), st.integers(1, 9))
def test_whatever_a_program_does_a_persons_own_screen_stays(pieces: list[bytes], length: int) -> None:
    terminal = Screen(COLS, ROWS)
    terminal.feed(MINE)
    before = terminal.text(scrollback=True)
    terminal.feed(b"\x1b[?1049h")
    whole = b"".join(pieces)
    viewer = ViewerFilter(one_screen=True)
    for at in range(0, len(whole), length):
        terminal.feed(viewer.feed(whole[at : at + length]))
        assert terminal.snapshot().alternate
        if viewer.switched:
            terminal.feed(b"drawn again")
            viewer = ViewerFilter(one_screen=True)
    terminal.feed(b"\x1b[?1049l")
    assert terminal.text(scrollback=True) == before


@pytest.mark.parametrize("mode", CHANGES)
@pytest.mark.parametrize("final", [b"h", b"l", b"r"])
def test_what_is_behind_a_change_is_left_to_the_redraw(mode: bytes, final: bytes) -> None:
    viewer = ViewerFilter(one_screen=True)
    assert viewer.feed(b"a\x1b[3Jb\x1b[?%b%cc" % (mode, final[0])) == b"ab"
    assert viewer.switched
    assert viewer.feed(b"more") == b""


@pytest.mark.parametrize(
    "data", [b"", b"J3", b"\x1b[?25l\x1b[?2004h\x1b[13J\x1b[33m\x1b[J", b"\x1b[?1048h\x1b[?1049s\x1b(c"]
)
def test_the_rest_passes_on_one_screen_too(data: bytes) -> None:
    viewer = ViewerFilter(one_screen=True)
    assert (viewer.feed(data), viewer.switched) == (data, False)
