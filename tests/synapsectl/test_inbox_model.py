"""The inbox without a terminal: what keys, news and the time do to it, by a clock that the test moves."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsectl import output
from synapsectl.inbox.answer_keys import PASTE_MAX, KeyPress, KeyReader
from synapsectl.inbox.items import Chosen, NoAnswer, digits, takes_words, who_answered, yes_or_no
from synapsectl.inbox.model import (
    NOTICED_S,
    SHOWN_S,
    TYPED_ON_S,
    WORDS_MAX,
    Attach,
    Give,
    InboxAct,
    InboxModel,
    MarkSeen,
)
from synapsectl.inbox.paging import page_of
from synapsectl.inbox.view import InboxView, wrapped
from synapsectl.output import display_width
from synapsed.shared.visible import visible

YES_NO = [{"key": "1", "label": "Yes"}, {"key": "2", "label": "Yes, and don't ask again"}, {"key": "3", "label": "No"}]
HOLD_S = 3.0
NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


def item(name: str, number: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"id-{name}", "agent": name, "agent_id": f"synapse-x-{number}", "host": None, "cwd": f"/home/me/{name}",
        "kind": "permission", "question": f"Run it, {name}?", "command": None, "options": YES_NO,
        "since": f"2026-01-02T11:{number:02d}:00.000Z", "task": f"task-{name}", "prompt_id": f"p-{name}",
        "prompt_type": "permission", "own_words": False, "until": None, "looked_at": False, **changes,
    }  # fmt: skip


A, B, C = item("a", 1), item("b", 2), item("c", 3)
LIMIT = item("limited", 4, kind="limit", prompt_id=None, prompt_type=None, options=[], until="2026-01-02T18:00:00Z")
ASKS_WORDS = item("words", 5, kind="question", options=[], prompt_type="text")
SECRET = item("secret", 6, kind="question", options=[], prompt_type="password")


class Desk:
    """An inbox and its clock."""

    def __init__(self, *items: dict[str, Any]) -> None:
        self.model = InboxModel(hold=HOLD_S)
        self.now = 100.0
        self.model.told(items, self.now)

    def press(self, *names: str) -> list[Any]:
        """Press keys, each when what it is for has been read."""
        return [one for name in names if self.read() for one in self.model.key(KeyPress(name), self.now)]

    def read(self) -> bool:
        self.draw(self.now - NOTICED_S)
        return True

    def draw(self, now: float, columns: int = 80, rows: int = 24) -> list[str]:
        view = InboxView(coloured=False, home="/home/me")
        lines = view.lines(self.model, now, NOON, columns, rows)
        self.model.drawn(next((row for row in self.model.rows(now) if row.chosen), None), view.page, now)
        return lines

    def wait(self, seconds: float) -> list[Any]:
        self.now += seconds
        return self.model.due(self.now)

    def tell(self, *items: dict[str, Any]) -> list[Any]:
        return self.model.told(items, self.now)

    @property
    def chosen(self) -> str:
        return next(row.item["agent"] for row in self.model.rows(self.now) if row.chosen)

    def shown(self, columns: int = 80, rows: int = 24) -> list[str]:
        self.read()
        return InboxView(coloured=False, home="/home/me").lines(self.model, self.now, NOON, columns, rows)


def given_to(commands: list[Any]) -> list[tuple[str, str]]:
    return [(one.item["agent"], one.answer.text) for one in commands if isinstance(one, Give)]


def test_one_key_each_and_each_is_typed_when_its_time_has_come() -> None:
    desk = Desk(A, B, C)
    assert desk.press("y") == []
    assert desk.chosen == "b", "the next one that waits"
    assert desk.wait(1) == []
    desk.press("n", "1")
    assert given_to(desk.wait(HOLD_S - 1)) == [("a", "1")]
    assert given_to(desk.wait(0.5)) == []
    assert given_to(desk.wait(0.5)) == [("b", "3"), ("c", "1")]
    assert desk.wait(100) == []


@pytest.mark.parametrize("key", ["y", "n", "1"])
def test_a_key_that_is_held_answers_one_question(key: str) -> None:
    """It is said again after half a second, then thirty times in a second, for longer than a question has to stand."""
    desk = Desk(A, B, C)
    desk.read()
    commands = desk.model.key(KeyPress(key), desk.now)
    desk.draw(desk.now)
    desk.now += 0.5
    for _ in range(100):
        commands += desk.model.key(KeyPress(key), desk.now)
        desk.draw(desk.now)
        commands += desk.wait(1 / 30)
    assert desk.chosen == "b"
    assert [name for name, _ in given_to(commands + desk.wait(HOLD_S))] == ["a"]
    assert "press again" in desk.model.note
    assert desk.wait(TYPED_ON_S) == []
    desk.press(key)
    assert [name for name, _ in given_to(desk.wait(HOLD_S))] == ["b"]


def test_a_key_counts_for_the_question_that_stood_there_as_it_was_pressed() -> None:
    """Keys wait while the terminal is somebody else's, or the machine does something else."""
    desk = Desk(A)
    desk.model.key(KeyPress("y"), desk.now)
    assert "press again" in desk.model.note, "nothing has been drawn"
    desk = Desk(A)
    desk.draw(desk.now)
    desk.now += 60
    desk.model.key(KeyPress("y"), desk.now, desk.now - 60)
    assert desk.wait(HOLD_S) == []
    desk.wait(60)
    desk.tell(A | {"prompt_id": "p-other"})
    desk.model.key(KeyPress("y"), desk.now)
    assert desk.wait(60) == [], "the one before was drawn"
    desk.draw(desk.now)
    assert "…" in "\n".join(InboxView(coloured=False, home="").lines(desk.model, desk.now, NOON, 80, 24))
    assert desk.model.next_due(desk.now) == pytest.approx(NOTICED_S)
    desk.wait(60)
    desk.model.key(KeyPress("y"), desk.now)
    assert [one.item["prompt_id"] for one in desk.wait(HOLD_S)] == ["p-other"]


def test_a_held_key_puts_one_row_away() -> None:
    desk = Desk(LIMIT, item("other", 7, kind="failure", prompt_id=None, options=[]))
    desk.read()
    away = [desk.model.key(KeyPress("x"), desk.now) for _ in range(30)]
    assert [one for commands in away for one in commands] == [MarkSeen(desk.model.items[0])]


def test_an_answer_can_be_taken_back_until_it_is_typed() -> None:
    desk = Desk(A, B)
    desk.press("y", "y")
    desk.press("k")
    desk.press("u")
    assert desk.chosen == "a", "of the chosen row"
    assert given_to(desk.wait(HOLD_S)) == [("b", "1")]
    desk.press("u")
    assert "typed is typed" in desk.model.note


def test_without_one_of_the_chosen_row_the_last_answer_is_taken_back() -> None:
    desk = Desk(A, B, C)
    desk.press("y", "n")
    assert desk.chosen == "c"
    desk.press("u")
    assert desk.chosen == "b"
    desk.press("u", "u")
    assert desk.wait(HOLD_S) == []


def test_yes_is_never_more_than_yes_to_what_is_asked() -> None:
    options = [{"key": "1", "label": "Allow always"}, {"key": "2", "label": "Maybe"}]
    desk = Desk(item("a", options=options))
    desk.press("y")
    assert "no option says yes for sure" in desk.model.note
    assert desk.wait(HOLD_S) == []
    desk.press("2")
    assert given_to(desk.wait(HOLD_S)) == [("a", "2")]
    desk.press("7")
    assert "being typed" in desk.model.note


def test_what_is_answered_elsewhere_drops_the_answer_that_is_held_and_says_who_did_it() -> None:
    desk = Desk(A, B)
    desk.press("y")
    desk.model.closed({"id": "id-a", "state": "answered", "by": "person", "who": None, "where": "terminal"})
    desk.tell(B)
    assert desk.wait(HOLD_S) == []
    assert desk.model.note == "a: answered by a person at its terminal; your answer was not typed"
    assert "answered by a person at its terminal" in "\n".join(desk.shown())


def test_another_row_never_slides_under_a_key() -> None:
    desk = Desk(A, B)
    desk.tell(B)
    assert desk.chosen == "a"
    desk.press("y")
    assert "over" in desk.model.note
    desk.wait(10 * SHOWN_S)
    desk.press("y")
    assert desk.chosen == "a", "as long as it is the chosen one"
    assert desk.wait(HOLD_S) == []
    desk.press("j")
    desk.wait(0)
    assert [row.item["agent"] for row in desk.model.rows(desk.now)] == ["b"]


def test_the_same_row_that_asks_something_else_is_not_answered() -> None:
    desk = Desk(A)
    desk.press("y")
    desk.tell({**A, "prompt_id": "p-other"})
    assert desk.wait(HOLD_S) == []
    assert "asks something else now" in desk.model.note


def test_a_new_row_rings_and_the_first_look_does_not() -> None:
    model = InboxModel(hold=HOLD_S)
    assert model.told([A], 1.0) == []
    assert model.told([A, B], 2.0) == [InboxAct.BELL]
    assert model.told([A, B], 3.0) == []


def test_an_answer_that_was_not_taken_is_said_and_can_be_given_again() -> None:
    desk = Desk(A)
    desk.press("y")
    desk.wait(HOLD_S)
    desk.model.answered("id-a", "a: it still asks the same", desk.now)
    assert desk.model.note == "a: it still asks the same"
    desk.press("n")
    assert given_to(desk.wait(HOLD_S)) == [("a", "3")]


def test_one_that_stays_after_its_answer_was_taken_asks_again() -> None:
    desk = Desk(A)
    desk.press("y")
    desk.wait(HOLD_S)
    desk.model.answered("id-a", None, desk.now)
    desk.wait(SHOWN_S)
    desk.press("y")
    assert given_to(desk.wait(HOLD_S)) == [("a", "1")]


def test_leaving_gives_what_is_held_and_attaching_too_but_for_the_chosen_one() -> None:
    desk = Desk(A, B)
    desk.press("y")
    commands = desk.press("q")
    assert (given_to(commands), commands[-1]) == ([("a", "1")], InboxAct.QUIT)
    desk = Desk(A, B)
    desk.press("y", "y", "enter")
    desk = Desk(A, B)
    desk.press("y", "n", "k", "j")
    commands = desk.press("enter")
    assert given_to(commands) == [("a", "1")]
    assert isinstance(commands[-1], Attach)
    assert commands[-1].item["agent"] == "b"


def test_what_asks_nothing_is_put_away_and_not_answered() -> None:
    desk = Desk(LIMIT)
    assert desk.press("y") == []
    assert "Enter attaches, x puts it away" in desk.model.note
    desk.wait(TYPED_ON_S)
    (away,) = desk.press("x")
    assert isinstance(away, MarkSeen)
    desk = Desk(LIMIT, ASKS_WORDS)
    desk.press("x")
    assert desk.chosen == "words", "the next one"
    desk = Desk(A)
    assert desk.press("x") == []
    assert "answer it" in desk.model.note


def test_who_moves_types_no_words_any_more() -> None:
    desk = Desk(LIMIT, ASKS_WORDS)
    desk.press("y")
    assert desk.press("a") == [], "a letter of the same word"
    assert desk.model.typing is None
    desk.press("up", "a")
    assert desk.model.typing is not None


def test_words_are_typed_and_held_too() -> None:
    desk = Desk(ASKS_WORDS)
    desk.press("a", "h", "i", "q", "backspace", "!")
    assert given_to(desk.press("enter")) == []
    assert given_to(desk.wait(HOLD_S)) == [("words", "hi!")]
    desk = Desk(A)
    desk.press("a")
    assert "takes no words" in desk.model.note
    desk = Desk(ASKS_WORDS)
    desk.press("a", "y", "esc")
    assert desk.wait(HOLD_S) == []
    assert desk.chosen == "words"


def test_a_paste_is_words_and_never_keys() -> None:
    desk = Desk(A, ASKS_WORDS)
    desk.model.key(KeyPress("paste", "yyyy"), desk.now)
    assert desk.wait(HOLD_S) == []
    desk.press("j", "a")
    desk.model.key(KeyPress("paste", "two\nlines"), desk.now)
    desk.press("enter")
    assert given_to(desk.wait(HOLD_S)) == [("words", "two\nlines")]


def test_nothing_of_a_password_is_shown() -> None:
    desk = Desk(SECRET)
    desk.press("a", *"hunter")
    assert "hunter" not in "\n".join(desk.shown())
    assert "••••••" in "\n".join(desk.shown())
    desk.press("enter")
    assert "hunter" not in "\n".join(desk.shown())
    assert given_to(desk.wait(HOLD_S)) == [("secret", "hunter")]


def test_what_is_typed_for_a_question_that_is_over_is_not_sent() -> None:
    desk = Desk(ASKS_WORDS)
    desk.press("a", "x")
    desk.tell()
    assert desk.model.typing is None
    assert "was not sent" in desk.model.note


def test_no_and_why_is_typed_at_the_bottom_and_held_too() -> None:
    desk = Desk(A, B)
    desk.press("b", *"use 世界", "backspace", "界", "!")
    for columns, rows in ((80, 24), (30, 6), (24, 3)):
        assert desk.shown(columns, rows)[-1] == "no, because: use 世界!▏"
    assert desk.shown(30, 6)[-2] == "Enter gives it, Esc leaves it"
    assert desk.press("enter") == []
    assert "→ no, because use 世界!  (3 s, u takes it back)" in "\n".join(desk.shown())
    (told,) = desk.wait(HOLD_S)
    assert told == Give(A, Chosen("3", "no, because use 世界!", "use 世界!"))


def test_what_is_left_out_of_a_long_paste_is_said() -> None:
    desk = Desk(A)
    desk.press("b")
    desk.model.key(KeyPress("paste", "x" * WORDS_MAX), desk.now)
    assert desk.model.note == ""
    desk.press("y")
    assert desk.shown()[-2] == "at most 10,000 characters: the rest was left out"
    assert desk.model.typing is not None
    assert desk.model.typing.text == "x" * WORDS_MAX


def test_no_and_why_can_be_left_and_needs_a_reason() -> None:
    desk = Desk(A)
    desk.press("b", *"yes", "esc")
    assert (desk.model.typing, desk.chosen) == (None, "a")
    desk.press("b", " ", "enter")
    assert "no reason in it" in desk.model.note
    desk.press("b", "x", "enter", "u")
    assert desk.wait(HOLD_S) == []
    desk = Desk(LIMIT)
    desk.press("b")
    assert (desk.model.typing, "nothing is asked there" in desk.model.note) == (None, True)
    desk = Desk(item("a", options=[{"key": "1", "label": "Red"}]))
    desk.press("b")
    assert (desk.model.typing, "no option says no for sure" in desk.model.note) == (None, True)


@pytest.mark.parametrize("then", [[], [{**A, "prompt_id": "p-other"}]])
def test_a_reason_for_what_is_answered_elsewhere_is_not_sent(then: list[dict[str, Any]]) -> None:
    desk = Desk(A, B)
    desk.press("b", *"stop")
    desk.tell(*then, B)
    assert desk.model.typing is None
    assert "what you typed was not sent" in desk.model.note
    desk.press("k", "enter")
    assert desk.wait(HOLD_S) == []


@pytest.mark.parametrize("then", [[], [{**A, "prompt_id": "p-other"}]])
@pytest.mark.parametrize("last", ["enter", "esc", None])
def test_words_typed_on_for_what_is_over_are_no_keys(then: list[dict[str, Any]], last: str | None) -> None:
    desk = Desk(A, B)
    desk.press("b", *"stop")
    desk.tell(*then, B)
    for letter in "it, 2yq":
        assert desk.press(letter) == []
        desk.wait(TYPED_ON_S / 2)
    assert not desk.model.held
    if last is not None:
        assert desk.press(last) == []
    else:
        desk.wait(TYPED_ON_S)
    assert desk.press("q") == [InboxAct.QUIT], "they are keys again"


def test_what_is_typed_is_in_sight_below_however_much_is_asked() -> None:
    desk = Desk(item("a", question="long " * 2000, own_words=True))
    desk.press(*[" "] * 20)
    desk.press("a", *"here")
    assert desk.shown(40, 8)[-2:] == ["Enter gives it, Esc leaves it", "> here▏"]


def test_a_pasted_reason_keeps_its_lines() -> None:
    desk = Desk(A)
    desk.press("b")
    desk.model.key(KeyPress("paste", "one\rtwo\r\nthree"), desk.now)
    assert desk.shown()[-1] == "no, because: one⏎two⏎three▏"
    desk.press("enter")
    (told,) = desk.wait(HOLD_S)
    assert told.answer.because == "one\ntwo\nthree"


def test_digits_are_keys_of_options_or_stand_for_them() -> None:
    own = [{"key": "1", "label": "Red"}, {"key": "4", "label": "Chat"}, {"key": "none", "label": "Decline"}]
    assert {digit: option["key"] for digit, option in digits({"options": own}).items()} == {
        "1": "1", "4": "4", "2": "none",
    }  # fmt: skip
    once = [{"key": "always", "label": "Allow always"}, {"key": "once", "label": "Allow once"}]
    assert [digits({"options": once})[digit]["key"] for digit in "12"] == ["always", "once"]
    many = [{"key": f"k{n}", "label": "x"} for n in range(12)]
    assert len(digits({"options": many})) == 9


def test_a_row_begins_with_what_is_asked() -> None:
    trust = item("a", prompt_type="trust", question="Accessing:\n/home/me/a\nA check: do you trust it?\nIt can read.")
    screen = item("b", kind="unreadable", prompt_type="screen", question="a banner\n\nrow\nrow\n\nk keep · esc close\n")
    desk = Desk(trust, screen)
    rows = desk.shown()
    assert "A check: do you trust it? · It can read." in rows[1]
    assert "row · k keep · esc close" in rows[2]


def test_the_keys_are_told_whole_in_a_narrow_terminal() -> None:
    desk = Desk(A)
    desk.press("?")
    told = desk.shown(40, 40)
    assert all(len(line) <= 40 for line in told)
    assert "Esc leaves it" in " ".join(" ".join(told).split())
    assert not any("…" in line for line in told if not line.startswith(("1 …", "b ", "synapsed")))


def test_what_is_not_understood_is_answered_by_hand() -> None:
    unreadable = item("a", kind="unreadable", prompt_type="screen", options=[])
    with pytest.raises(NoAnswer, match="Enter attaches"):
        yes_or_no(unreadable, accept=True)
    assert not takes_words(unreadable)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ({"state": "answered", "by": "person", "where": "control"}, "answered by a person by the tool"),
        ({"state": "answered", "by": "rule", "who": "nightly"}, "answered by nightly"),
        ({"state": "answered", "by": "agent", "who": "codex", "where": "a2a"}, "answered by codex over A2A"),
        ({"state": "gone"}, "no longer asked"),
    ],
)
def test_who_answered(event: dict[str, Any], told: str) -> None:
    assert who_answered(event) == told


def test_how_it_looks_in_eighty_columns() -> None:
    desk = Desk(item("a", 1, command="rm -rf build"), B, LIMIT)
    desk.press("y")
    shown = desk.shown()
    assert shown[0].split("  ")[0] == "synapsed · 2 of 3 need you"
    assert shown[1:4] == [
        "  a        permission   59m  → Yes  (3 s, u takes it back)",
        "> b        permission   58m  Run it, b?",
        f"  limited  limit        56m  until {datetime(2026, 1, 2, 18, tzinfo=UTC).astimezone():%H:%M}",
    ]
    assert shown[5].startswith("b · permission · ~/b · since ")
    assert shown[6:10] == ["Run it, b?", "  1  Yes", "  2  Yes, and don't ask again", "  3  No"]
    assert shown[-1] == "y yes  n no  b no, because  1-3 choose  Enter attaches"
    assert len(shown) == 24


def test_the_command_is_shown_once_and_the_digits_are_those_of_the_options() -> None:
    options = [{"key": "1", "label": "Red"}, {"key": "4", "label": "Chat"}, {"key": "none", "label": "Decline"}]
    shown = Desk(item("a", 1, command="rm -rf build", question="Bash\n$ rm -rf build\nGo on?", options=options)).shown()
    assert shown[3:9] == [shown[3], "$ rm -rf build", "Bash", "Go on?", "  1  Red", "  4  Chat"]
    assert shown[-1] == "n no  b no, because  1-4 choose  Enter attaches"


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=120)
NAMES = st.sampled_from([*"jkgGynb123auxq?", "enter", "esc", "up", "down", "backspace", "clear", "redraw", "tab"])


@settings(max_examples=150)
@given(
    questions=st.lists(WORDS, max_size=12),
    command=st.none() | WORDS,
    keys=st.lists(NAMES, max_size=12),
    columns=st.integers(1, 200),
    rows=st.integers(1, 60),
    coloured=st.booleans(),
)
def test_whatever_is_asked_every_line_fits_and_nothing_is_obeyed(
    questions: list[str], command: str | None, keys: list[str], columns: int, rows: int, *, coloured: bool
) -> None:
    desk = Desk(*(item(f"n{n}", n, question=text, command=command) for n, text in enumerate(questions)), SECRET)
    for key in keys:
        desk.press(key)
        desk.wait(0.7)
    lines = InboxView(coloured=coloured, home="").lines(desk.model, desk.now, NOON, columns, rows)
    assert len(lines) <= rows
    for line in lines:
        plain = line if not coloured else _without_styles(line)
        assert display_width(plain) <= columns
        assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in plain)


def _without_styles(line: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]+m", "", line)


@given(WORDS, st.integers(2, 60))
def test_wrapping_loses_nothing_but_blanks(text: str, columns: int) -> None:

    lines = wrapped(text, columns)
    assert all(display_width(line) <= columns for line in lines)
    assert "".join("".join(lines).split()) == "".join(visible(text.expandtabs(4)).split())


def test_laying_out_looks_at_each_character_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a word is, and an answer that is being typed."""
    looked = 0
    count = output._width

    def width(character: str) -> int:
        nonlocal looked
        looked += 1
        return count(character)

    monkeypatch.setattr(output, "_width", width)
    long = "é" * 2000
    assert len(wrapped(long, 20)) == 100
    inbox = InboxModel(hold=3)
    inbox.told([item("a", options=[], own_words=True)], 0)
    inbox.drawn(inbox.rows(0)[0], page_of(["a"], 0, 1), -1)
    inbox.key(KeyPress("a"), 0)
    inbox.key(KeyPress("paste", long), 0)
    lines = InboxView(coloured=False, home="/h").lines(inbox, 1, datetime.now(UTC), 40, 24)
    assert f"> {'é' * 36}▏" in lines
    assert looked < 6 * len(long)


@pytest.mark.parametrize(("key", "answer"), [("a", "use it"), ("b", "not now")])
def test_an_item_may_change_while_words_are_typed(key: str, answer: str) -> None:
    asks = ASKS_WORDS | {"since": A["since"]} if key == "a" else A
    desk = Desk(asks, B)
    desk.press(key)
    desk.tell(asks | {"looked_at": True, "since": "2026-01-02T11:30:00.000Z"}, B)
    desk.press(*answer, "enter")
    assert [one["id"] for one, _ in desk.model.held] == [asks["id"]]
    assert desk.chosen == "b", "the next one that waits"
    (given,) = desk.wait(HOLD_S)
    assert given.item["looked_at"], "the item as it is now"


# --- keys ---

STREAM = b"y\x1b[A\x1bOB\x1b[200~two\rlines y\x1b[201~\xc3\xa9\x1b[5~\r\x7f"
PRESSED = [
    KeyPress("y"), KeyPress("up"), KeyPress("down"), KeyPress("paste", "two\rlines y"), KeyPress("é"),
    KeyPress("pageup"), KeyPress("enter"), KeyPress("backspace"),
]  # fmt: skip


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_keys_in_any_pieces(cuts: list[int]) -> None:
    reader, pressed, start = KeyReader(), [], 0
    for cut in [*sorted(cuts), len(STREAM)]:
        pressed += reader.feed(STREAM[start:cut])
        start = cut
    assert pressed == PRESSED


def test_esc_is_a_key_once_nothing_follows() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b") == []
    assert reader.waits
    assert reader.flush() == [KeyPress("esc")]
    assert reader.feed(b"\x1b[1;5A") == [KeyPress("up")]
    assert reader.feed(b"\x1b[?1;2c\x1b[I") == [], "answers of the terminal are no keys"


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_long_paste_ends_wherever_its_end_is_cut(cut: int) -> None:
    reader, end = KeyReader(), b"\x1b[201~"
    assert reader.feed(b"\x1b[200~" + b"x" * (PASTE_MAX + 100) + end[:cut]) == []
    assert reader.pasting
    assert reader.feed(end[cut:] + b"y") == [KeyPress("paste", "x" * PASTE_MAX), KeyPress("y")]


def test_what_is_dropped_of_a_long_paste_makes_no_end() -> None:
    reader = KeyReader()
    reader.feed(b"\x1b[200~" + b"x" * (PASTE_MAX - 3) + b"\x1b[2" + b"x" * 100 + b"01~yy")
    for _ in range(40):
        reader.feed(b"y" * 5000)
    assert reader.pasting
    (paste,) = reader.feed(b"\x1b[201~")
    assert len(paste.text) == PASTE_MAX


@given(st.binary(max_size=200))
def test_any_bytes_are_taken(data: bytes) -> None:
    reader = KeyReader()
    assert all(key.name for key in reader.feed(data) + reader.flush())


DONE = item("done", 0, kind="finished", prompt_id=None, prompt_type=None, options=[], question="It is done.")
FAILED = item("failed", 0, kind="failure", prompt_id=None, prompt_type=None, options=[], question="It failed.")


def test_what_is_asked_stands_before_what_is_finished_however_old() -> None:
    desk = Desk(DONE, FAILED, A, item("more", 9, kind="finished", prompt_id=None, options=[]), B)
    assert [row.item["agent"] for row in desk.model.rows(desk.now)] == ["a", "b", "failed", "done", "more"]
    assert desk.chosen == "a"
    assert desk.shown()[0].split("  ")[0] == "synapsed · 3 need you, 2 finished"
    desk.press("y")
    assert desk.shown()[0].split("  ")[0] == "synapsed · 2 of 3 need you, 2 finished"
    assert desk.chosen == "b"


def test_what_is_finished_needs_nobody() -> None:
    desk = Desk(DONE)
    assert desk.model.waiting == 0
    assert desk.shown()[0].split("  ")[0] == "synapsed · 1 finished"
    desk.tell(DONE, A)
    assert desk.chosen == "done", "no other one slides under a key"
    assert desk.shown()[0].split("  ")[0] == "synapsed · 1 needs you, 1 finished"


def test_the_next_one_after_an_answer_is_one_that_asks() -> None:
    desk = Desk(A, B, DONE)
    desk.press("down", "y")
    assert desk.chosen == "a"
    desk.press("y")
    assert desk.chosen == "done"


@pytest.mark.parametrize("first", [DONE, item("gone", 0)])
@pytest.mark.parametrize("words", ["yes", "next", "exactly", "no", "again, and quickly", "1 or 2"])
def test_words_where_none_are_taken_do_nothing(first: dict[str, Any], words: str) -> None:
    """Their letters are keys: `x` puts the row away, and the next `y` would approve what another one asks."""
    desk = Desk(first, A)
    if first is not DONE:
        desk.tell(A)
    desk.model.choose(first["id"])
    before = desk.chosen
    for key in [*words, "enter"]:
        assert desk.press(key) == []
        desk.wait(TYPED_ON_S / 2)
    assert given_to(desk.wait(HOLD_S)) == []
    assert desk.chosen == before


def test_behind_a_refusal_of_words_digits_count_again_after_a_moment() -> None:
    desk = Desk(A)
    desk.press("a", "1")
    assert not desk.model.held
    desk.wait(TYPED_ON_S)
    desk.press("1")
    assert [answer.text for _, answer in desk.model.held] == ["1"]
