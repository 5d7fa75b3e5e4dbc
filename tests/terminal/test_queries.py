"""What programs are told about their terminal, and what they are not."""

import pytest

from synapsed.model.outer_terminal import OuterTerminal, read_outer
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.queries import NOBODY, answer, are_answers, is_answer
from synapsed.terminal.scanner import QueryReceived, Scanner
from synapsed.terminal.snapshot import ScreenSnapshot


def told(data: bytes, outer: OuterTerminal = NOBODY) -> list[bytes | None]:
    """The answers to the queries in `data`, each given where the query stands in it."""
    screen, answers, done = Screen(80, 24), [], 0
    screen.set_default_colors(outer.foreground, outer.background)
    for event in Scanner().feed(data):
        screen.feed(data[done : event.end])
        done = event.end
        if isinstance(event, QueryReceived):
            answers.append(answer(event, screen.snapshot, outer, screen.keyboard_flags))
    return answers


@pytest.mark.parametrize(
    ("query", "reply"),
    [
        (b"\x1b[c", b"\x1b[?62;22c"),
        (b"\x1b[>c", b"\x1b[>1;10;0c"),
        (b"\x1b[5n", b"\x1b[0n"),
        (b"\x1b[?996n", b"\x1b[?997;1n"),
        (b"\x1b]11;#ffffff\x07\x1b[?996n", b"\x1b[?997;2n"),
        (b"\x1b[?2026$p", b"\x1b[?2026;2$y"),
        (b"\x1b[?2004h\x1b[?2004$p", b"\x1b[?2004;1$y"),
        (b"\x1b[?31337$p", b"\x1b[?31337;0$y"),
        (b"\x1b[?" + b"9" * 5000 + b"$p", b"\x1b[?" + b"9" * 5000 + b";0$y"),
        (b"\x1b[4$p", b"\x1b[4;2$y"),
        (b"\x1b[14t", b"\x1b[4;384;640t"),
        (b"\x1b[16t", b"\x1b[6;16;8t"),
        (b"\x1b[18t", b"\x1b[8;24;80t"),
        (b"\x1b]10;?\x07", b"\x1b]10;rgb:ffff/ffff/ffff\x07"),
        (b"\x1b]11;#102030\x07\x1b]11;?\x1b\\", b"\x1b]11;rgb:1010/2020/3030\x1b\\"),
        (b"\x1b]4;1;#010203\x07\x1b]4;1;?\x07", b"\x1b]4;1;rgb:0101/0202/0303\x07"),
        (b"\x1b]7501;?\x07", b"\x1b]7501;?\x07"),
        (b"\x1b]7501;?\x1b\\", b"\x1b]7501;?\x1b\\"),
        (b"\x1bP+q544e\x1b\\", b"\x1bP0+r544e\x1b\\"),
        (b"\x1bP$qm\x1b\\", b"\x1bP0$r\x1b\\"),
    ],
    ids=repr,
)
def test_answered(query: bytes, reply: bytes) -> None:
    assert told(query) == [reply]


def test_the_version_is_told() -> None:
    [reply] = told(b"\x1b[>0q")
    assert reply is not None
    assert reply.startswith(b"\x1bP>|synapsed")


def test_the_cursor_is_where_the_query_found_it() -> None:
    assert told(b"ab\x1b[6nc\r\nd\x1b[?6n") == [b"\x1b[1;3R", b"\x1b[?2;2;1R"]


@pytest.mark.parametrize(
    "query",
    [
        b"\x1b[?u",
        b"\x1b[=c",
        b"\x1b[21t",
        b"\x1b[13t",
        b"\x1b[?4m",
        b"\x1b]52;c;?\x07",
        b"\x1b]4;999;?;x;?\x07",
        b"\x1b]12;?;?\x07",
        b"\x1b_Gi=1,a=q;AAAA\x1b\\",
        b"\x1b[?62n",
        b"\x1b[$p",
        b"\x1b[?$p",
        b"\x1b[4;20$p",
        b"\x1b[?25;2004$p",
    ],
    ids=repr,
)
def test_not_answered(query: bytes) -> None:
    assert told(query) == [None]


@pytest.mark.parametrize(
    "query",
    [b"\x1b]7501;?\rrm -rf x\r\x07", b"\x1bP+qrm -rf x\r\x1b\\", b"\x1b]4;1\r;?\x07", b"\x1b]10;?;rm\r\x07"],
    ids=repr,
)
def test_nothing_of_a_query_is_typed_into_the_program(query: bytes) -> None:
    """What a program shows may come from anywhere: it must not become its input."""
    assert all(reply is None or (b"rm" not in reply and b"\r" not in reply) for reply in told(query))


@pytest.mark.parametrize("question", [b"\x1b[c", b"\x1b[>c", b"\x1b[>q", b"\x1b]7501;?\x07", b"\x1bP+q544e\x1b\\"])
def test_what_does_not_depend_on_the_screen_takes_no_look_at_it(question: bytes) -> None:
    def look() -> ScreenSnapshot:
        raise AssertionError("looked")

    (event,) = Scanner().feed(question)
    assert isinstance(event, QueryReceived)
    assert answer(event, look)


LIGHT = OuterTerminal((16, 16, 16), (250, 240, 230), (11, 23), keyboard=True)


@pytest.mark.parametrize(
    ("query", "reply"),
    [
        (b"\x1b]10;?\x07", b"\x1b]10;rgb:1010/1010/1010\x07"),
        (b"\x1b]11;?\x1b\\", b"\x1b]11;rgb:fafa/f0f0/e6e6\x1b\\"),
        (b"\x1b]11;#102030\x07\x1b]11;?\x07", b"\x1b]11;rgb:1010/2020/3030\x07"),
        (b"\x1b]11;#102030\x07\x1b]111\x07\x1b]11;?\x07", b"\x1b]11;rgb:fafa/f0f0/e6e6\x07"),
        (b"\x1bc\x1b]11;?\x07", b"\x1b]11;rgb:fafa/f0f0/e6e6\x07"),
        (b"\x1b[?996n", b"\x1b[?997;2n"),
        (b"\x1b[14t", b"\x1b[4;552;880t"),
        (b"\x1b[16t", b"\x1b[6;23;11t"),
        (b"\x1b[?u", b"\x1b[?0u"),
        (b"\x1b[>5u\x1b[?u", b"\x1b[?5u"),
        (b"\x1b[>5u\x1b[>1u\x1b[<u\x1b[?u", b"\x1b[?5u"),
        (b"\x1b[>1u\x1b[?1049h\x1b[?u", b"\x1b[?0u"),
    ],
    ids=repr,
)
def test_answered_as_the_terminal_that_it_is_seen_in(query: bytes, reply: bytes) -> None:
    assert told(query, LIGHT) == [reply]
    assert is_answer(reply)


def test_what_the_terminal_has_not_said_is_answered_as_ever() -> None:
    assert told(b"\x1b]11;?\x07\x1b[16t\x1b[?u", OuterTerminal(foreground=(1, 2, 3))) == [
        b"\x1b]11;rgb:0000/0000/0000\x07",
        b"\x1b[6;16;8t",
        None,
    ]


def test_the_terminals_colours_are_not_drawn_into_another_one() -> None:
    """They are what it has by itself; only what a program has set is."""
    screen = Screen(20, 4)
    before = screen.redraw()
    screen.set_default_colors(LIGHT.foreground, LIGHT.background)
    assert screen.redraw() == before
    screen.feed(b"\x1b]11;#102030\x07")
    assert b"\x1b]11;rgb:10/20/30" in screen.redraw()
    assert b"\x1b]10;" not in screen.redraw()


@pytest.mark.parametrize(
    "document",
    [
        {"background": [0, 0, 256]},
        {"background": [0, 0]},
        {"background": "rgb:00/00/00"},
        {"foreground": [True, 0, 0]},
        {"foreground": [-1, 0, 0]},
        {"foreground": [1.5, 0, 0]},
        {"cell": [0, 16]},
        {"cell": [8, 100_000]},
        {"cell": [8]},
        {"keyboard": 1},
        {"keyboard": None},
    ],
    ids=repr,
)
def test_what_no_terminal_is_like_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(document))):
        read_outer(document)


def test_a_terminal_that_is_told() -> None:
    document = {
        "type": "terminal",
        "background": [250, 240, 230],
        "foreground": None,
        "cell": [11, 23],
        "keyboard": True,
    }
    assert read_outer(document) == OuterTerminal(None, (250, 240, 230), (11, 23), keyboard=True)
    assert read_outer({}) == NOBODY


@pytest.mark.parametrize(
    "text",
    [
        "62;22c",
        "62;22c1;10;0cn1R11;rgb:0000/0000/00002026;2$y",  # bash has eaten what begins like a key
        "62;22c0;276;0c",
        "62;22c;1R62;22c;800;640t",  # zsh
        "^[[?62;22c^[[>1;10;0c^[[0n^[[5;1R^[]11;rgb:0000/0000/0000^G^[[?2026;2$y^[P>|synapsed 0.1.0^[\\",  # dash
        "^[[4;800;640t ^[P0$r^[\\",
        "^[]4;1;rgb:ffff/0000/ffff^[\\",
    ],
)
def test_answers_that_nobody_took(text: str) -> None:
    assert are_answers(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n",
        "y",
        "62",
        "5n",
        "echo 62;22c",
        "62;22c ls",
        "cd ..; cat",
        "1;2",
        "git rm x",
        "synapsed 1",
        "synapsed 0.1.0",
    ],
)
def test_what_a_person_has_typed_is_no_answer(text: str) -> None:
    assert not are_answers(text)


@pytest.mark.parametrize("piece", [";1", "1;", "n", "1;2c^[", "|synapsed 1.nnnn ", "^[", "1;2c^[[", "1111n"])
def test_whatever_a_program_shows_is_looked_through_once(piece: str) -> None:
    """Tried in two ways at each piece, it would take longer than a test may."""
    assert not are_answers(f"1;2c |synapsed 1.{piece * 100_000}!")
