"""The line under a person's hands (`parts/mentions/typed_line.py`)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.parts.mentions.typed_line import Enter, KeyLine, Keys, Mention, parse_mention


def lines(*pieces: bytes | str) -> list[str | None]:
    """What each Enter submits."""
    line = KeyLine()
    found: list[str | None] = []
    for piece in pieces:
        data = piece.encode() if isinstance(piece, str) else piece
        passed = list(line.feed(data))
        assert b"".join(part.data for part in passed) == data, "every byte goes on, in order"
        found += [part.line for part in passed if isinstance(part, Enter)]
    return found


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("@codex hello\r", "@codex hello"),
        ("@codex hell\x7f\x7fllo\r", "@codex hello"),
        ("@codex helo\x1b[Dl\r", "@codex hello"),
        ("x@codex hi\x01\x1b[3~\r", "@codex hi"),
        ("@codex hi there\x17you\r", "@codex hi you"),
        ("nonsense\x15@codex hi\r", "@codex hi"),
        ("@codex hi all\x1b[D\x1b[D\x1b[D\x0b\r", "@codex hi "),
        ("hi\x1b[H@codex \x1b[F there\r", "@codex hi there"),
        ("\x1b[200~@codex pasted\nlines\x1b[201~\r", "@codex pasted\nlines"),
        ("@codex one\ntwo\r", "@codex one\ntwo"),
        ("@codex one\x1b[13;2utwo\r", "@codex one\ntwo"),
        ("@codex hi\x1b[97;1:3u\x1b[I\x1b[<35;10;10M\r", "@codex hi"),
        ("@codex hi\x1b[13u", "@codex hi"),
        ("@codex hi\x1b[13;129u", "@codex hi"),  # with Num Lock
        ("what\x03@codex hi\r", "@codex hi"),
        ("@codex 日本語\x7f\r", "@codex 日本"),
    ],
)
def test_editing_is_followed(keys: str, line: str) -> None:
    assert lines(keys) == [line]


@pytest.mark.parametrize(
    "keys",
    [
        "@codex hi\x1b[A\r",  # history
        "@co\t hi\r",  # completion
        "@codex hi\x1bb\r",  # by words
        "@codex hi\x1bOP\r",
        "@codex e\u0301\x7f\r",  # one character or a half
        "@codex \U0001f44d\U0001f3fd\x7f\r",
        "@codex a\nb\x15\r",
        "\x1b[99~@codex hi\r",
        "\r",
        "@codex " + "x" * 20_000 + "\r",
    ],
)
def test_what_is_not_followed_is_not_told(keys: str) -> None:
    assert lines(keys) == [None]
    line = KeyLine()
    list(line.feed(keys.encode()))
    assert [part.line for part in line.feed(b"@codex hi\r") if isinstance(part, Enter)] == ["@codex hi"]


@pytest.mark.parametrize("escape", ["\x1b", "\x1b[27u"])
def test_escape_leaves_an_empty_line_empty(escape: str) -> None:
    """A person who closes a notice with it writes on at once."""
    assert lines(escape, "@codex hi\r") == ["@codex hi"]
    assert lines("@codex", escape, " hi\r") == [None]


def test_a_backslash_goes_on() -> None:
    assert lines("@codex one\\\r") == []
    assert lines("@codex one\\\r", "two\r") == [None]


def test_after_an_enter_the_line_is_new() -> None:
    assert lines("first\r@codex second\rthird\r") == ["first", "@codex second", "third"]


def test_an_enter_within_a_paste_submits_nothing() -> None:
    assert lines("\x1b[200~@codex a\rb\x1b[201~") == []


def test_the_composer_is_known_to_be_empty() -> None:
    line = KeyLine()
    list(line.feed(b"lost\x1b[A"))
    assert not line.sure
    line.clear()
    assert line.sure
    assert list(line.feed(b"@codex hi\r")) == [Keys(b"@codex hi"), Enter(b"\r", "@codex hi")]


_KEYS = st.lists(
    st.one_of(
        st.text(st.sampled_from("@codex hiあé\u0301👍 \\"), min_size=1, max_size=6).map(str.encode),
        st.sampled_from(
            [
                b"\r",
                b"\n",
                b"\x7f",
                b"\x15",
                b"\x17",
                b"\x1b[D",
                b"\x1b[C",
                b"\x1b[A",
                b"\x1b[13;2u",
                b"\x1b[I",
                b"\x03",
            ]
        ),
        st.text(st.sampled_from("a\nb\rあ"), max_size=6).map(lambda text: b"\x1b[200~" + text.encode() + b"\x1b[201~"),
    ),
    max_size=12,
).map(b"".join)


@given(_KEYS, st.lists(st.integers(0, 200), max_size=6))
def test_the_cuts_between_frames_do_not_matter(keys: bytes, cuts: list[int]) -> None:
    # A frame that ends in a lone escape is that key: no other cut changes anything.
    at = sorted({min(cut, len(keys)) for cut in cuts} - {n + 1 for n, byte in enumerate(keys) if byte == 0x1B})
    pieces = [keys[a:b] for a, b in zip([0, *at], [*at, len(keys)], strict=True)]
    whole = lines(keys)
    told = lines(*pieces)
    # An Enter whose first bytes are with the program already cannot be held back.
    assert told == whole or b"\x1b[13" in keys


@given(st.binary(max_size=200))
def test_any_bytes_go_on(keys: bytes) -> None:
    lines(keys)


@pytest.mark.parametrize(
    ("line", "mention"),
    [
        ("@codex hello", Mention("codex", "hello", False)),
        ("  @codex  hello you ", Mention("codex", "hello you", False)),
        ('@claude --response "check it"', Mention("claude", "check it", True)),
        ('@claude say "a" and "b"', Mention("claude", 'say "a" and "b"', False)),
        ("@codex-8120 one\ntwo", Mention("codex-8120", "one\ntwo", False)),
        ("@name@host hi", Mention("name@host", "hi", False)),
        ("@a@b@c hi", None),
        ("@codex", None),
        ("@codex ", None),
        ("see @codex hello", None),
        ("a@b.example hello", None),
        ("@codex --response", Mention("codex", "--response", False)),
    ],
)
def test_what_a_line_says(line: str, mention: Mention | None) -> None:
    assert parse_mention(line) == mention
