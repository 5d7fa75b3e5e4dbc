"""The key filter: pure, so every chunking is tried."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsectl.errors import UsageError
from synapsectl.terminal_keys import (
    ESCAPE_HOLD,
    KEY_HOLD,
    PASTE_HOLD,
    HeldKey,
    KeyFilter,
    Passed,
    parse_commands,
    parse_keys,
)

DETACH = parse_keys("ctrl-]")


def feed(data: bytes, keys: str = "ctrl-]", *, size: int | None = None) -> tuple[bytes, bool]:
    """What passes of `data`, fed in pieces of `size` bytes and flushed at the end."""
    sorter = KeyFilter(parse_keys(keys))
    out = b""
    step = size or max(1, len(data))
    for at in range(0, len(data), step):
        passed = sorter.feed(data[at : at + step])
        out += passed.data
        if passed.detached:
            return out, True
    return out + sorter.flush(), False


@pytest.mark.parametrize("size", [None, 1, 2, 3])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"abc\x1ddef", (b"abc", True)),
        (b"\x1b[93;5u", (b"", True)),
        (b"a\x1b[93;5:1ub", (b"a", True)),
        (b"\x1b[93;133u", (b"", True)),  # with Num Lock
        (b"\x1b[57:125:93;5u", (b"", True)),  # another layout's key in the place of ]
        (b"\x1b[27;5;93~", (b"", True)),
        (b"\x1b[93;5:3u", (b"\x1b[93;5:3u", False)),  # the key was let go
        (b"\x1b[93;1u]", (b"\x1b[93;1u]", False)),
        (b"\x1b[93;7u", (b"\x1b[93;7u", False)),  # with Alt too
        (b"\x1b[93;5;u", (b"", True)),
        (b"\x1b[93;:3ua", (b"\x1b[93;:3ua", False)),
        (b"\x1b[" + b"9" * 5000 + b";5u", (b"\x1b[" + b"9" * 5000 + b";5u", False)),
        (b"\x1b\x1d", (b"\x1b", True)),
        (b"\x1b[M\x1d\x1d\x1d\x1d", (b"\x1b[M\x1d\x1d\x1d", True)),  # inside a mouse report it is a coordinate
        (b"\x1b[<35;10;20M\x1b[<35;11;20M\x1d\x1b[<35;12;20M", (b"\x1b[<35;10;20M\x1b[<35;11;20M", True)),
        ("é\x1d".encode(), ("é".encode(), True)),
    ],
)
def test_the_detach_key_is_found_anywhere(data: bytes, expected: tuple[bytes, bool], size: int | None) -> None:
    assert feed(data, size=size) == expected


@pytest.mark.parametrize("size", [None, 1, 2])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a\x10\x11b", (b"a", True)),
        (b"\x10\x10\x11", (b"\x10", True)),
        (b"\x10a\x11", (b"\x10a\x11", False)),
        (b"\x1b[112;5u\x1b[112;5:3u\x1b[113;5u", (b"", True)),
        (b"\x10\x1b[113;5u", (b"", True)),
        (b"\x1b[112;5u\x1b[112;5:2u\x1b[57442;1:3u\x1b[57442;5u\x1b[113;5u", (b"", True)),  # Ctrl let go between
        (b"\x1b[112;5u\x1b[112;5:3ua", (b"\x1b[112;5u\x1b[112;5:3ua", False)),
        (b"\x10\x1b[A", (b"\x10\x1b[A", False)),
        (b"\x10", (b"\x10", False)),
    ],
)
def test_a_sequence_of_keys(data: bytes, expected: tuple[bytes, bool], size: int | None) -> None:
    assert feed(data, "ctrl-p,ctrl-q", size=size) == expected


REPLIES = [
    b"\x1b[?62;4c",
    b"\x1b[>41;354;0c",
    b"\x1b[0n",
    b"\x1b[24;80R",
    b"\x1b[?24;80R",
    b"\x1b[?2026;2$y",
    b"\x1b[?1u",
    b"\x1b[8;24;80t",
    b"\x1b[>4;2m",
    b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\",
    b"\x1b]10;rgb:ffff/ffff/ffff\x07",
    b"\x1bP>|XTerm(390)\x1b\\",
    b"\x1b_Gi=31;OK\x1b\\",
]


@pytest.mark.parametrize("size", [None, 1, 2, 5])
@pytest.mark.parametrize("reply", REPLIES)
def test_replies_are_dropped(reply: bytes, size: int | None) -> None:
    assert feed(b"a" + reply + b"b", size=size) == (b"ab", False)


@pytest.mark.parametrize("size", [None, 1])
@pytest.mark.parametrize(
    "keys",
    [
        b"\x1b[A",
        b"\x1bOP",
        b"\x1b[1;5R",  # Ctrl-F3
        b"\x1b[R",
        b"\x1b[I\x1b[O",
        b"\x1b[200~pasted\x1b[201~",
        b"\x1b[13;2u",
        b"\x1b[27;2;13~",
        b"\x1b[3~",
        b"\x1b[?997;1n",
        b"\x1b]",
        b"\x1bP",
        b"\x1bx",
        b"\x1b",
        b"\x1b\x1b[A",
        bytes(range(1, 27)),
    ],
)
def test_keys_pass(keys: bytes, size: int | None) -> None:
    assert feed(keys, size=size) == (keys, False)


@given(st.lists(st.sampled_from([*REPLIES, b"\x1b[A", b"x\xff", b"\x1b[<0;1;1M", b"\x00"])), st.data())
def test_no_chunking_matters(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    sorter = KeyFilter(DETACH)
    out = b"".join(
        sorter.feed(stream[start:end]).data for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
    )
    assert out + sorter.flush() == b"".join(piece for piece in pieces if piece not in REPLIES)


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_without_detach_keys_and_replies_nothing_is_lost_or_added(chunks: list[bytes]) -> None:
    stream = b"".join(chunks).replace(b"\x1b", b"")
    sorter = KeyFilter(())
    out = b"".join(sorter.feed(chunk.replace(b"\x1b", b"")).data for chunk in chunks)
    assert out + sorter.flush() == stream


@given(st.binary())
def test_any_bytes_are_sorted_without_error(data: bytes) -> None:
    sorter = KeyFilter(parse_keys("ctrl-p,ctrl-q"))
    sorter.feed(data)
    sorter.flush()
    assert sorter.hold is None


def test_what_is_held_back_has_a_time() -> None:
    sorter = KeyFilter(parse_keys("ctrl-p,ctrl-q"))
    assert sorter.hold is None
    assert sorter.feed(b"a\x1b[9") == Passed(b"a", detached=False)
    assert sorter.hold == ESCAPE_HOLD
    assert sorter.flush() == b"\x1b[9"
    sorter.feed(b"\x10")
    assert sorter.hold == KEY_HOLD
    assert sorter.flush() == b"\x10"
    assert sorter.feed(b"\x11") == Passed(b"\x11", detached=False)


def test_names_of_keys() -> None:
    assert [key.raw for key in parse_keys("ctrl-a,^],C-\\,ctrl-@,q")] == [b"\x01", b"\x1d", b"\x1c", b"\x00", b"q"]
    assert parse_keys("") == ()
    for wrong in ("ctrl-[", "ctrl-é", "ctrl-", "esc", "é", "ctrl-a,,b"):
        with pytest.raises(UsageError):
            parse_keys(wrong)


ALL = parse_commands({})


@pytest.mark.parametrize("size", [None, 1])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"ab\x1dnxyz", (b"ab", "next", b"xyz")),
        (b"\x1d[/word", (b"", "scrollback", b"/word")),
        (b"\x1d\x1b[5~", (b"", "scrollback", b"")),
        (b"\x1b[93;5u\x1b[93;5:3u\x1b[112u", (b"", "previous", b"")),  # with the release of the first
        (b"\x1d\x1b[<0;1;1M\x1b[Ii", (b"\x1b[<0;1;1M\x1b[I", "inbox", b"")),
        (b"\x1dZrest", (b"", "help", b"rest")),
        (b"\x1b[93;5u\x1b[57441;2u\x1b[47:63;2u", (b"", "help", b"")),  # Shift for the ? is no key
        (b"\x1b[93;5u\x1b[93;5:2u\x1b[93;5:2u\x1b[93;5:3u\x1b[57442;1:3u\x1b[110u", (b"", "next", b"")),  # held
        (b"\x1b[93;5u\x1b[57442;5u\x1b[93;5u", (b"", "detach", b"")),  # pressed twice, Ctrl too
        (b"\x1b[93;5u\x1b[56;;91u", (b"", "scrollback", b"")),  # by the text that it makes
        (b"\x1d\x1b[5;129~", (b"", "scrollback", b"")),  # with Num Lock
        (b"\x1b[27;5;93~\x1b[27;1;115~", (b"", "status", b"")),
        (b"\x1dd", (b"", "detach", b"")),
        (b"\x1d\x1d", (b"", "detach", b"")),
    ],
)
def test_commands_behind_the_first_key(data: bytes, expected: tuple[bytes, str, bytes], size: int | None) -> None:
    sorter = KeyFilter(DETACH, ALL)
    out, action, rest = b"", "", b""
    step = size or len(data)
    for at in range(0, len(data), step):
        piece = data[at : at + step]
        if action:
            rest += piece
            continue
        passed = sorter.feed(piece)
        out += passed.data
        action, rest = "detach" if passed.detached else passed.action, passed.rest
    assert (out, action, rest) == expected


@pytest.mark.parametrize(
    "late",
    [b"\x1b[110;1:3u", b"\x1b[110;1:2u\x1b[110;1:2u\x1b[110;1:3u", b"\x1b[5;1:3~", b"\x1b[57442;1:3u", b"\x1b[1;1:3A"],
)
def test_what_follows_of_a_key_that_was_taken_is_no_programs(late: bytes) -> None:
    """The program that is shown next may not have asked for it, and would take it for keys."""
    sorter = KeyFilter(DETACH, ALL)
    assert sorter.feed(b"\x1b[93;5u\x1b[110u").action == "next"
    assert sorter.feed(late) == Passed(b"", detached=False)
    assert sorter.feed(b"\x1b[<0;1;1M" + late) == Passed(b"\x1b[<0;1;1M", detached=False)
    assert sorter.feed(b"a" + late) == Passed(b"a" + late, detached=False), "another key was pressed"
    sorter.take_last()
    assert sorter.feed(late + b"\x1b[97u" + late) == Passed(b"\x1b[97u" + late, detached=False)


def test_a_letter_with_shift_is_a_key_of_its_own() -> None:
    for pressed in (b"N", b"\x1b[110;2u", b"\x1b[110:78;2u", b"\x1b[27;2;78~"):
        sorter = KeyFilter(DETACH, parse_commands({"previous": "N"}))
        assert sorter.feed(b"\x1b[93;5u" + pressed).action == "previous", pressed


def test_the_first_key_alone_detaches() -> None:
    sorter = KeyFilter(DETACH, ALL)
    assert sorter.feed(b"a\x1d") == Passed(b"a", detached=False)
    assert sorter.hold == KEY_HOLD
    assert sorter.expire() == Passed(b"", detached=True)


def test_commands_behind_the_first_of_several_detach_keys() -> None:
    sorter = KeyFilter(parse_keys("ctrl-p,ctrl-q"), ALL)
    assert sorter.feed(b"\x10n") == Passed(b"", False, "next", b"")
    assert sorter.feed(b"\x10x") == Passed(b"\x10x", detached=False), "two keys of the agent's"
    assert sorter.feed(b"\x10\x11") == Passed(b"", detached=True)
    assert sorter.feed(b"\x10") == Passed(b"", detached=False)
    assert sorter.expire() == Passed(b"\x10", detached=False)


def test_other_keys_and_none() -> None:
    sorter = KeyFilter(DETACH, parse_commands({"next": "ctrl-n", "scrollback": "v"}))
    assert sorter.feed(b"\x1d\x0e").action == "next"
    assert sorter.feed(b"\x1dv").action == "scrollback"
    assert KeyFilter((), ALL).feed(b"\x1dn") == Passed(b"\x1dn", detached=False)
    with pytest.raises(UsageError):
        parse_commands({"next": "several"})


@pytest.mark.parametrize("size", [None, 1, 2, 3, 7])
@pytest.mark.parametrize(
    "pasted",
    [b"a\x1ddb\r", b"\x1b[93;5u\x1b[110u", b"\x1b[27;5;93~n\x1b[20", b"\x1b[?62c \x1b]11;rgb", b"\x1b", b"\x1b["],
)
def test_nothing_pasted_is_a_key(pasted: bytes, size: int | None) -> None:
    """Its rest would be typed into another agent, or be lost."""
    sorter = KeyFilter(DETACH, ALL)
    data = b"\x1b[200~" + pasted + b"\x1b[201~"
    pieces = [data] if size is None else [data[at : at + size] for at in range(0, len(data), size)]
    passed = [sorter.feed(piece) for piece in pieces]
    assert b"".join(one.data for one in passed) == data
    assert not [one for one in passed if one.detached or one.action]
    assert sorter.hold is None
    assert sorter.feed(b"\x1dn").action == "next", "it is over"


def test_a_paste_without_an_end_is_over_by_itself() -> None:
    sorter = KeyFilter(DETACH, ALL)
    assert sorter.feed(b"\x1b[200~a\x1d").data == b"\x1b[200~a\x1d"
    assert sorter.hold == PASTE_HOLD
    assert sorter.expire() == Passed(b"", detached=False)
    assert sorter.feed(b"\x1dn").action == "next"


def test_a_paste_behind_the_first_key_is_whole() -> None:
    sorter = KeyFilter(DETACH, ALL)
    assert sorter.feed(b"\x1d\x1b[200~a\rb\x1b[201~") == Passed(b"\x1b[200~a\rb\x1b[201~", detached=False)
    sorter = KeyFilter(parse_keys("ctrl-p,ctrl-q"), ALL)
    assert sorter.feed(b"\x10\x1b[200~\x11\x1b[201~") == Passed(b"\x10\x1b[200~\x11\x1b[201~", detached=False)


def test_a_key_that_is_still_held_is_not_for_the_agent() -> None:
    held = HeldKey(b"\r")
    held.begin(100.0)
    assert held.rest(b"\r", 100.5) == b"", "said again, for the first time"
    assert [held.rest(b"\r\r", 100.5 + at / 30) for at in range(100)] == [b""] * 100
    assert held.rest(b"\ry\r", 104.0) == b"y\r", "let go"
    assert held.rest(b"\r", 104.1) == b"\r"
    later = HeldKey(b"\r")
    later.begin(100.0)
    assert later.rest(b"\r", 101.0) == b"\r"
    assert HeldKey(b"").rest(b"\r", 0.0) == b"\r"


def test_the_key_of_a_command_is_known() -> None:
    keys = KeyFilter(parse_keys("ctrl-]"), parse_commands({}))
    assert keys.feed(b"\x1dn").action == "next"
    assert keys.pressed == b"n"
