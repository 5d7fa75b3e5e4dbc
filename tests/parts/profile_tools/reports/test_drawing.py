"""Screens are drawn again as they were, and without what is private, however it came onto them."""

import base64
from typing import Any

import pytest

from synapsed.parts.profile_tools.recorded import Player, believed
from synapsed.parts.profile_tools.reports import drawing
from synapsed.parts.profile_tools.reports.private_words import PrivateWords, Word
from synapsed.terminal.emulated_screen import Screen
from tests.golden.replay import CASES, Case
from tests.parts.profile_tools.reports.made import BEGAN, KEY, drawn, output, pieces_of, shown
from tests.support.gated import first_of
from tests.support.secrets import planted

LEAST = 100
LEFT = ("ended", "sent '\\x03'")
"""Once a program has left its screen, it is told by its former ones that it has begun."""
REST_S = 5.0
PASSWORD = "correct horse, battery"
CODED = base64.b64encode(KEY.encode()).decode()


def hidden(pieces: Any, *words: Word, secret: str = KEY, size: tuple[int, int] = (60, 12)) -> dict[str, Any]:
    """What becomes of the output: nowhere four letters of the secret, beside each other on the screen or in the
    bytes."""
    found = drawn(pieces, *words, size=size)
    secret = "".join(secret.split())
    parts = {secret[at : at + 4] for at in range(len(secret) - 3)}
    assert not [part for part in parts if part in shown(found) or part in output(found).replace(" ", "")]
    return found


def name(case: Case) -> str:
    return case.name


@pytest.mark.recorded
@pytest.mark.parametrize("case", first_of(CASES), ids=name)
def test_it_is_believed_as_the_output_is(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for end in {end for _, end, label in case.record["marks"][1::2] if end > LEAST and label not in LEFT}:
        pieces = pieces_of(case.record["chunks"], case.raw[:end])
        chunks = [(at, min(offset, end)) for at, offset in case.record["chunks"]][: len(pieces)]
        now = pieces[-1][0] + REST_S
        player = Player(case.profile(), {**case.record, "chunks": chunks, "marks": [(now, end, "")]}, case.raw)
        look = next(each.look for each in player.play() if each.mark is not None)
        belief, screen = believed(case.profile(), look), "\n".join(look.screen.lines)
        profile = case.profile().model_dump(mode="json", exclude_none=True)
        for last in (end, end // 3):
            monkeypatch.setattr(drawing, "LAST", last)
            given = {"profile": profile, "size": case.record["size"], "pieces": pieces, "now": now, "screen": screen}
            found = drawing.drawn({**given, "words": [], "texts": {}})
            assert (found["drawn"], found["altered"]) == (True, False), (end, last)
            for key in ("activity", "composer"):
                assert found["reads"][key] == belief[key], (end, last, found["reads"]["evidence"])


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(f"a {KEY[:17]}\x1b[31m{KEY[17:]}\x1b[m b", id="coloured in the middle"),
        pytest.param("." * 40 + f" {KEY} and on", id="wrapped by the terminal"),
        pytest.param(
            f"╭{'─' * 32}╮\r\n│ {KEY[:30]} │\r\n│ {KEY[30:].ljust(30)} │\r\n╰{'─' * 32}╯", id="wrapped in a frame"
        ),
        pytest.param(f"\x1b[3;1H{KEY[20:]}\x1b[3;1H\x1b[L\x1b[3;1H{' ' * 40}{KEY[:20]}\x1b[4;1H", id="in two places"),
        pytest.param(
            [f"\x1b[5;{3 + at}H{letter}\x1b[10;1H" for at, letter in enumerate(KEY)], id="typed, the cursor elsewhere"
        ),
        pytest.param([f"\r\x1b[2K> {KEY[: at + 1]}" for at in range(len(KEY))], id="typed, the line drawn again"),
        pytest.param(
            [f"\x1b[5;1H│ > {KEY[: at + 1].ljust(50)}│\x1b[5;{6 + at}H" for at in range(len(KEY))],
            id="typed in a frame",
        ),
        pytest.param("".join(f"{letter}_\x08" for letter in KEY), id="echoed and erased"),
        pytest.param([f"{KEY}\r\n", "more\r\n" * 40, "\x1b[2J\x1b[Hend"], id="gone before the end"),
        pytest.param("\u0301".join(KEY), id="with marks on its letters"),
        pytest.param(f"left {KEY[:25]}│ right side\r\n{KEY[25:]}     │ more", id="in the left of two panes"),
        pytest.param(
            f"first pane   {KEY[:18]}\r\nits text     {KEY[18:36]}\r\nmore         {KEY[36:]}", id="in the right one"
        ),
        pytest.param(f"  ⎿  {KEY[:24]}\r\n     {KEY[24:]}", id="behind a bullet"),
        pytest.param(f" 12 + {KEY[:24]}\r\n    + {KEY[24:]}", id="in a difference"),
        pytest.param(f"{'a long row ' * 5}\r\n> {KEY[:20]}\r\n  {KEY[20:]}", id="in a prompt"),
        pytest.param(f"{'a row' * 12}\r\n{KEY} {'.' * 18}\r\nthe next", id="behind a full row"),
        pytest.param(f"{' ' * 40}{KEY[:20]}\r\n{KEY[20:]}", id="wrapped to the first column"),
        pytest.param(f"{'a long row ' * 5}\r\n> {KEY[:13]}\r\n  {KEY[13:]}", id="cut at a hyphen"),
        pytest.param(f"{KEY[:20]}\x1b[31\x18{KEY[20:]}", id="over a sequence that was aborted"),
    ],
)
def test_a_secret_is_masked(pieces: Any) -> None:
    assert hidden(pieces)["masked"]["secret"] == 1


def test_all_else_stays_in_its_place() -> None:
    found = hidden(f"\x1b[1mkey\x1b[m: {KEY} is it\r\n\x1b[32mdone\x1b[m")
    assert found["lines"] == [f"key: {'x' * len(KEY)} is it", "done"]
    assert "\x1b[0;1mkey" in output(found)


@pytest.mark.parametrize("kind", ["your words", "value of a setting"])
@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(f"> {PASSWORD}", id="at once"),
        pytest.param([f"\r\x1b[2K> {PASSWORD[: at + 1]}" for at in range(len(PASSWORD))], id="drawn again"),
        pytest.param([">", *(f"\x1b[32m{letter}\x1b[m" for letter in PASSWORD)], id="letter by letter"),
        pytest.param(
            [f"\x1b[9;{3 + at}H{letter}\x1b[1;1Hbusy {at}" for at, letter in enumerate(PASSWORD)], id="cursor elsewhere"
        ),
        pytest.param(
            [f"\r\x1b[2K> {PASSWORD[:at]}(esc to go back)\x1b[{3 + at}G" for at in range(len(PASSWORD) + 1)],
            id="before a hint",
        ),
        pytest.param(f"> {PASSWORD[:9]}\r\n  {PASSWORD[9:]}", id="over two rows"),
        pytest.param(f"│ {PASSWORD[:12]} │ x │\r\n│ {PASSWORD[12:].ljust(12)} │ y │", id="in a narrow pane"),
        pytest.param(f"> {PASSWORD}\r\n> {PASSWORD[:-1]}\r\n> {PASSWORD[1:]}", id="and parts of it"),
        pytest.param(f"> {PASSWORD.upper()}", id="in capitals"),
    ],
)
def test_a_given_word_is_masked(pieces: Any, kind: str) -> None:
    assert hidden(pieces, Word(PASSWORD, kind), secret=PASSWORD)["masked"] == {kind: 1}


@pytest.mark.parametrize("form", [CODED, base64.b64encode(f"x{KEY}".encode()).decode()[:-9], KEY.encode().hex()])
def test_a_given_word_is_masked_as_programs_write_it(form: str) -> None:
    assert form[10:30] not in output(drawn(f"sent {form}", Word(KEY, "your words"), size=(100, 12)))


@pytest.mark.parametrize("name", sorted(planted()))
def test_every_known_shape_is_masked(name: str) -> None:
    text, secret = planted()[name]
    found = drawn(text.replace("\n", "\r\n"), size=(200, 12))
    for line in secret.split("\n"):
        assert line not in output(found)


@pytest.mark.parametrize("name", ["pem", "openssh", "vault"])
def test_the_rest_of_a_secret_whose_beginning_was_on_no_screen_is_masked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, secret = planted()[name]
    lines = [line for line in text.split("\n") if " " not in line] or [secret]
    monkeypatch.setattr(drawing, "LAST", 10)
    found = drawn([text.replace("\n", "\r\n"), "\r\n$ "], size=(24, 3))
    rest = shown(found) + "".join(found["seen"])
    assert not [line for line in lines for at in range(len(line) - 8) if line[at : at + 8] in rest]


@pytest.mark.parametrize(
    "sequence",
    [
        f"\x1b]0;run {KEY}\x07",
        f"\x1b]2;run {KEY}\x1b\\",
        f"\x1b]8;id={KEY};https://h.example/?token={KEY}\x1b\\link\x1b]8;;\x1b\\",
        f"\x1b]52;c;{CODED}\x07",
        f"\x1b]052;c;{CODED}\x07",
        f"\x1b]99;e=1;{CODED}\x07",
        f"\x1b]9;{KEY}\x07",
        f"\x1b]777;notify;{KEY};{CODED}\x07",
        f"\x1b]1337;File=name={CODED}:{CODED}\x07",
        f"\x1b]1337;SetUserVar=a={CODED}\x07",
        f"\x1b]1337;Copy=:{CODED}\x07",
        f"\x1b]7;file://host/home/jane/{KEY}\x07",
        f"\x1b]7501;state=working:app=x:msg={CODED}:title={CODED}\x07",
        f"\x1b]7501;state=working:id={KEY[:30]}:app={KEY[:30]}\x07",
        f"\x1bPq{KEY}\x1b\\",
        f"\x1b_G{KEY}\x1b\\",
        f"\x1b^{KEY}\x1b\\",
        f"\x1bX{KEY}\x1b\\",
        f"\x1b]0;{KEY}\x18",
    ],
)
def test_sequences_carry_nothing(sequence: str) -> None:
    found = str(drawn([sequence, "text"]))
    assert KEY[13:21] not in found
    assert CODED[12:24] not in found
    assert "text" in found


def test_reports_of_a_program_are_kept_without_their_texts() -> None:
    before = "\x1b]7501;state=working:app=claude-code:msg=aGVsbG8=\x07\x1b]9;4;3;0\x07\x1b]0;✳ a title\x07first\r\n"
    found = output(drawn([before, "second"]))
    for kept in ("\x1b]7501;state=working:app=claude-code\x07", "\x1b]9;4;3;0\x07", "\x1b]2;✳ a title\x1b\\"):
        assert kept in found
    assert "aGVsbG8" not in found


def test_names_of_persons() -> None:
    raw = "mail jane.doe@example.org at /home/janedoe/project, JaneDoe; janedoeson\r\nnpm i left@1.2.3 @scope/pkg@2.0.1"
    found = drawn(raw, Word("janedoe", "name of a person", whole=True), size=(100, 12))
    assert found["lines"] == [
        f"mail {'x' * 20} at /home/xxxxxxx/project, xxxxxxx; janedoeson",
        "npm i left@1.2.3 @scope/pkg@2.0.1",
    ]


@pytest.mark.parametrize(
    "raw",
    [
        "日本の鈴木さん です",
        "│ ⚠️ 鈴木 ok │\r\nnext",
        "pa\u0308ss 鈴木 \U0001f468\u200d\U0001f469\u200d\U0001f467 ❤️ tail",
        "▶️ ☠️ 鈴木\r\n" + "日" * 30 + "鈴木",
    ],
)
def test_widths_are_those_of_the_screen(raw: str) -> None:
    """Each letter keeps its columns: everything behind one that is masked stands where it stood."""
    found = drawn(raw, Word("鈴木", "your words"), size=(59, 12))
    before = Screen(59, 12)
    before.feed(raw.encode())
    again = Screen(59, 12)
    again.feed(output(found).encode())
    assert [line.replace("鈴木", "〓〓") for line in before.snapshot().lines] == list(again.snapshot().lines)
    assert [[cell.width for cell in before.row_cells(row)] for row in range(12)] == [
        [cell.width for cell in again.row_cells(row)] for row in range(12)
    ]


def test_texts_are_masked_before_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "CUT", 30)
    texts = {"says": f"{'a' * 20} {KEY}", "told": {"evidence": f"not at the cursor: '> {KEY[:18]}'", "token": KEY}}
    found = drawn(f"> {KEY}", texts={**texts, "list": ["x"] * 1000})["texts"]
    assert found["says"] == f"{'a' * 20} {'x' * 9}"
    assert KEY[7:18] not in found["told"]["evidence"]
    assert found["told"]["token"] == "xxx"
    assert len(found["list"]) == drawing.ITEMS_MAX


def test_pauses_are_kept_up_to_a_limit() -> None:
    pieces = [(BEGAN, "aaa"), (BEGAN + 2, "bbb"), (BEGAN + 9000, "ccc"), (BEGAN + 8000, "ddd")]
    found = drawing.recorded(pieces, (80, 24), BEGAN + 9003)
    most = 2.0 + drawing.GAP_MAX_S
    assert found.record["chunks"] == [(0.0, 3), (2.0, 6), (most, 9), (most, 12)]
    assert found.record["marks"] == [(most + 3.0, 12, "reported")]


HOSTILE = {
    "addresses": "".join(f"\x1b[{row % 50 + 1};1H{f'a{row}@b.cc ' * 20}" for row in range(1200)),
    "keys": "".join(f"\x1b[{row % 50 + 1};1Hghp_{row:036d} \x1b[K" for row in range(4500)),
    "paths": "".join(f"\x1b[{row % 50 + 1};1H/home/jane{row}/x \x1b[K" for row in range(9000)),
    "openings": 'password: "a' * 20000,
    "marks": "a\u0301" * 80000,
    "frames": "│ a " * 60000,
    "one command": f"\x1b]0;{'a@' * 100_000}\x07hello",
}


@pytest.mark.parametrize("kib", [64, pytest.param(256, marks=pytest.mark.night)])
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(300)
def test_hostile_output_takes_a_bounded_number_of_steps(name: str, kib: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[PrivateWords] = []

    class Counted(PrivateWords):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(drawing, "PrivateWords", Counted)
    data = HOSTILE[name][: kib * 1024]
    pieces = [data[at : at + 16 * 1024] for at in range(0, len(data), 16 * 1024)]
    drawn(pieces, size=(200, 50))
    letters = 200 * 50 * (len(pieces) + 1)
    assert made[0].searched < 6 * letters  # its rows, its panes, and the places found there


def test_of_many_screens_the_last_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "FRAMES_MAX", 3)
    found = drawn([f"\x1b[2J\x1b[Hscreen {number}" for number in range(9)])
    assert [row for row in found["seen"] if "screen" in row] == [f"screen {number}" for number in (5, 6, 7, 8)]
    monkeypatch.setattr(drawing, "OUTPUT_MAX", 300)
    few = drawn([f"\x1b[2J\x1b[Hscreen {number}" for number in range(9)])
    assert (few["lines"], few["drawn"]) == (["screen 8"], None)
