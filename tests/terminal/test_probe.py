"""The search for where output stops to do harm: what is behind that is kept."""

import pytest

from synapsed.terminal.probe import CASES_MAX, harm_end


def survives(drawn: bytes, output: bytes) -> bool:
    return b"!" not in drawn + output


@pytest.mark.parametrize(
    ("drawn", "output", "behind"),
    [
        (b"", b"a!", b""),
        (b"", b"!b", b"b"),
        (b"drawn", b"some ! text\r\n$ ", b" text\r\n$ "),
        (b"drawn", b"one ! two ! three !! $ ", b" $ "),
        (b"dr!wn", b"output $ ", b"output $ "),
        (b"dr!wn", b"more ! $ ", b" $ "),
        (b"dr!wn", b"", b""),
        (b"drawn", b"x" * 100_000 + b"!$ ", b"$ "),
    ],
)
def test_what_is_behind_the_last_harm_is_kept(drawn: bytes, output: bytes, behind: bytes) -> None:
    assert output[harm_end(survives, drawn, output) :] == behind


def test_harm_of_the_checkpoint_and_the_output_together() -> None:
    assert harm_end(lambda drawn, output: not (drawn and b"!" in output), b"drawn", b"a ! b ! c") == len(b"a !")


def test_all_is_passed_over_where_the_search_finds_nothing() -> None:
    assert harm_end(lambda *_: False, b"drawn", b"text") == 4
    assert harm_end(lambda *_: True, b"drawn", b"text") == 4


def test_a_search_is_bounded() -> None:
    """Output that does harm over and over is passed over as a whole."""
    output = b"! $ " * CASES_MAX
    assert harm_end(survives, b"", output) == len(output)
