"""Keys by name."""

import pytest

from synapsed.errors import InvalidRequest
from synapsed.terminal.keynames import KEY_MAX, KEYS_MAX, as_bytes, encode


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        (["Enter"], [b"\r"]),
        (["Esc", "Escape"], [b"\x1b", b"\x1b"]),
        (["Up", "Down", "Left", "Right"], [b"\x1b[A", b"\x1b[B", b"\x1b[D", b"\x1b[C"]),
        (["Home", "End", "PgUp", "PgDn", "Delete"], [b"\x1b[H", b"\x1b[F", b"\x1b[5~", b"\x1b[6~", b"\x1b[3~"]),
        (["Tab", "S-Tab", "BSpace", "Space"], [b"\t", b"\x1b[Z", b"\x7f", b" "]),
        (["F1", "F4", "F5", "F12"], [b"\x1bOP", b"\x1bOS", b"\x1b[15~", b"\x1b[24~"]),
        (["C-c", "C-C", "C-[", "C-Space"], [b"\x03", b"\x03", b"\x1b", b"\x00"]),
        (["M-x", "C-M-x", "M-Enter"], [b"\x1bx", b"\x1b\x18", b"\x1b\r"]),
        (["1", "yes, go on", "-v", "Füße", "entering"], [b"1", b"yes, go on", b"-v", "Füße".encode(), b"entering"]),
    ],
)
def test_names_and_texts(keys: list[str], sent: list[bytes]) -> None:
    assert encode(keys) == sent


def test_a_program_may_want_the_keys_of_the_cursor_in_another_form() -> None:
    assert encode(["Up", "Home", "F5"], application_cursor=True) == [b"\x1bOA", b"\x1bOH", b"\x1b[15~"]


@pytest.mark.parametrize(
    "keys",
    [
        [],
        ["a"] * (KEYS_MAX + 1),
        ["a" * (KEY_MAX + 1)],
        ["a\nb"],
        ["\x1b"],
        [""],
        ["C-Foo"],
        ["C-é"],
        ["C-C-c"],
        ["M-foo"],
        ["M-\x03"],
        ["M-\x1b"],
        ["M-\x9b"],
        ["M-\ud800"],
        ["\ud800"],
        ["C-\x03"],
        ["C-M-\n"],
    ],
)
def test_what_is_no_key(keys: list[str]) -> None:
    with pytest.raises(InvalidRequest, match="keys"):
        encode(keys)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (b"\x1b[27u", b"\x1b"),
        (b"\x1b[27;129:1u", b"\x1b"),  # with Num Lock
        (b"a\x1b[122;5ub", b"a\x1ab"),
        (b"\x1b[1103::122;5u", b"\x1a"),  # on a Cyrillic layout
        (b"\x1b[27;5;122~", b"\x1a"),
        (b"\x1b[122;5:3u", b"\x1b[122;5:3u"),  # it was let go
        (b"\x1b[13;2u", b"\x1b[13;2u"),
        (b"\x1b[27;2;13~", b"\x1b[27;2;13~"),
        (b"\x1b[57442;5u", b"\x1b[57442;5u"),
        (b"\x1b[A\x1b[3~\x1bx", b"\x1b[A\x1b[3~\x1bx"),
    ],
)
def test_keys_as_the_bytes_of_old(written: bytes, meant: bytes) -> None:
    assert as_bytes(written) == meant
