"""A yes is a yes to what was shown: whatever is asked, in whatever window, all of it has been on the screen before an
answer that may agree to it is taken. `inbox` by its pure parts; `top`: `test_top_questions`."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsectl.inbox.answer_keys import KeyPress
from synapsectl.inbox.items import table
from synapsectl.inbox.model import NOTICED_S, TOO_SMALL, Give, InboxModel
from synapsectl.inbox.paging import page_of
from synapsectl.inbox.view import InboxView
from synapsectl.output import display_width

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
HEREDOC = "cat > /etc/motd <<'END'\n" + "\n".join(f"heredoc line {n}" for n in range(20)) + "\nEND"
EDIT = "src/app.py\n" + "\n".join(f"{'-+'[n % 2]} edited line {n}" for n in range(60))
YES_NO = [{"key": "1", "label": "Yes"}, {"key": "2", "label": "No"}]
UNSEEN = "rm \u202e-rf\u2066 \u200bx"
SEEN = r"rm \u202e-rf\u2066 \u200bx"


def item(name: str, number: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"id-{name}", "agent": name, "agent_id": name, "host": None, "cwd": f"/home/me/{name}",
        "kind": "permission", "question": "Do you want to go on?", "command": None, "options": YES_NO,
        "since": f"2026-01-02T11:{number:02d}:00.000Z", "task": f"task-{name}", "prompt_id": f"p-{name}",
        "prompt_type": "permission", "own_words": False, "until": None, "looked_at": False, **changes,
    }  # fmt: skip


class Window:
    """An inbox in a terminal of `columns` and `rows`; `seen`: each line that stood there."""

    def __init__(self, *items: dict[str, Any], columns: int = 80, rows: int = 24) -> None:
        self.model = InboxModel(hold=0.0)
        self.columns, self.rows, self.now = columns, rows, 100.0
        self.view = InboxView(coloured=False, home="/home/me")
        self.seen: set[str] = set()
        self.model.told(items, self.now)
        self.draw()

    def draw(self) -> list[str]:
        lines = self.view.lines(self.model, self.now, NOON, self.columns, self.rows)
        row = next((row for row in self.model.rows(self.now) if row.chosen), None)
        self.model.drawn(row, self.view.page, self.now)
        self.seen |= set(lines)
        return lines

    def wait(self, seconds: float = NOTICED_S + 0.01) -> None:
        self.now += seconds

    def press(self, *names: str) -> list[Any]:
        """Presses keys, each when what is there has been read; returns the answers that are given."""
        given = []
        for name in names:
            self.wait()
            commands = self.model.key(KeyPress(name), self.now)
            given += [one for one in (*commands, *self.model.due(self.now)) if isinstance(one, Give)]
            self.draw()
        return given

    def rest(self) -> list[str]:
        """The rows of the chosen question that have not stood there."""
        (chosen,) = [row for row in self.model.rows(self.now) if row.chosen]
        return [line for line in self.view.closely(chosen.item, self.columns).rows if line not in self.seen]


@pytest.mark.parametrize("key", ["y", "1", "2", "a"])
@pytest.mark.parametrize(
    ("asked", "columns", "rows"),
    [
        ({"command": HEREDOC}, 80, 24),
        ({"command": HEREDOC}, 80, 12),
        ({"diff": EDIT}, 80, 24),
        ({"diff": EDIT}, 40, 24),
        ({"diff": EDIT}, 40, 8),
        ({"question": HEREDOC}, 40, 12),
        ({"command": "x" * 3000}, 40, 12),
        ({"options": [{"key": "1", "label": "Yes, " + "and all of it " * 60}, {"key": "2", "label": "No"}]}, 40, 12),
    ],
)
def test_what_may_agree_waits_until_all_of_it_was_shown(
    asked: dict[str, Any], columns: int, rows: int, key: str
) -> None:
    window = Window(item("a", own_words=True, **asked), columns=columns, rows=rows)
    pages = 0
    while window.rest():
        assert window.press(key) == []
        assert window.model.typing is None
        assert "see its end first: Space shows" in window.model.note
        assert any(line.startswith("… ") and ": Space shows" in line for line in window.draw())
        window.press(" ")
        pages += 1
        assert pages < 400, window.draw()
    assert pages
    assert len(window.press(key)) == 1 or window.model.typing is not None


def test_no_is_said_at_once_and_needs_only_a_look() -> None:
    window = Window(item("a", diff=EDIT), item("b", 1, diff=EDIT, prompt_id="p-b"))
    (given,) = window.press("n")
    assert (given.item["agent"], given.answer.label) == ("a", "No")
    window.press("b")
    assert window.model.typing is not None


def test_ten_rows_that_wait_in_a_window_of_twelve() -> None:
    short = [item(f"n{n}", n, command=f"make part{n}") for n in range(10)]
    window = Window(*short, rows=12)
    assert not window.rest(), "the list gives way"
    assert len(window.press("y")) == 1
    window = Window(*(one | {"command": HEREDOC} for one in short), rows=12)
    assert window.rest()
    assert window.press("y") == []
    window.press(*[" "] * 10)
    assert not window.rest()
    assert [one.item["agent"] for one in window.press("y", "y", "y")] == ["n0"], "the next one was not read to its end"


def test_the_pages_follow_on_one_another_and_back() -> None:
    window = Window(item("a", diff=EDIT))
    window.wait()
    assert window.draw()[-1].startswith("Space shows 46 more  n no  b no, because")
    window.press(*["pagedown"] * 10)
    assert any(line.endswith("rows above: PageUp") for line in window.draw())
    window.wait()
    assert "y yes" in window.draw()[-1]
    window.press(*["pageup"] * 10)
    assert any(line == "src/app.py" for line in window.draw())
    assert len(window.press("y")) == 1, "who has read it to its end may go back"


def test_keys_that_come_before_a_page_is_drawn_turn_one() -> None:
    window = Window(item("a", diff=EDIT))
    window.wait()
    for _ in range(40):
        window.model.key(KeyPress(" "), window.now)
    window.draw()
    assert window.rest()
    assert window.press("y") == []


def test_the_last_rows_have_to_stand_there_too() -> None:
    window = Window(item("a", command=HEREDOC))
    while window.rest():
        window.model.key(KeyPress(" "), window.now)
        window.draw()
    window.wait(NOTICED_S / 2)
    assert window.model.key(KeyPress("y"), window.now) == []
    assert "press again" in window.model.note
    window.wait(2)
    assert len(window.press("y")) == 1


def test_another_width_between_showing_and_the_key() -> None:
    window = Window(item("a", command="make " + "target " * 60), columns=200)
    assert not window.rest()
    window.wait()
    window.columns, window.rows = 30, 10
    window.draw()
    assert window.press("y") == []
    assert "see its end first" in window.model.note
    window.columns, window.rows = 200, 24
    window.draw()
    assert window.model.key(KeyPress("y"), window.now) == [], "it has only just come back"
    window.wait(2)
    assert len(window.press("y")) == 1


def test_a_window_without_room_for_a_question() -> None:
    window = Window(item("a", diff=EDIT), rows=3)
    assert window.press(" ", "y", "1") == []
    assert window.model.note == TOO_SMALL
    assert window.press("n")


def test_another_prompt_under_the_finger() -> None:
    window = Window(item("a", command=HEREDOC))
    window.press(*[" "] * 5)
    assert not window.rest()
    window.wait()
    window.model.told([item("a", command=HEREDOC, prompt_id="p-other")], window.now)
    assert window.model.key(KeyPress("y"), window.now) == [], "it was pressed for the one before"
    window.draw()
    window.wait(2)
    assert window.press("y") == []
    assert "see its end first" in window.model.note


@pytest.mark.parametrize("told", [{"command": "rm -rf /"}, {"diff": EDIT}, {"options": [*YES_NO, *YES_NO[:1]]}])
def test_more_is_told_of_the_same_prompt_under_the_finger(told: dict[str, Any]) -> None:
    """A channel may tell the command after the question was read off the screen."""
    window = Window(item("a"))
    window.model._hold_s = 3.0
    window.press("y")
    assert window.model.held
    window.model.told([item("a", **told)], window.now)
    assert not window.model.held
    assert window.model.note == "a asks something else now; your answer was not typed"
    window.draw()
    assert window.model.key(KeyPress("y"), window.now) == []
    assert not window.model.held


def test_unseen_signs_of_all_that_is_asked_are_shown() -> None:
    window = Window(
        item("a", question=UNSEEN, command=f"$ {UNSEEN}", diff=f"- {UNSEEN}", cwd=f"/w/{UNSEEN}",
             options=[{"key": "1", "label": f"Yes {UNSEEN}"}]), rows=40,
    )  # fmt: skip
    shown = window.draw()
    assert not any(character in "\n".join(shown) for character in "\u202e\u2066\u200b")
    for line in (SEEN, f"$ $ {SEEN}", f"- {SEEN}", f"  1  Yes {SEEN}"):
        assert line in shown
    assert f"/w/{SEEN}" in shown[3]


def test_in_a_pipe_an_edit_is_whole() -> None:
    ((*_, edit, _, _),) = table([item("a", diff=EDIT)])
    assert edit == EDIT


TEXTS = st.text(st.characters(exclude_categories=["Cs"], max_codepoint=0x3FFF) | st.just("\n"), max_size=600)


@settings(max_examples=100, deadline=None)
@given(command=TEXTS, diff=TEXTS, columns=st.integers(8, 120), rows=st.integers(3, 40), others=st.integers(0, 12))
def test_no_yes_is_taken_before_every_row_was_shown(
    command: str, diff: str, columns: int, rows: int, others: int
) -> None:
    items = [item("a", 0, command=command, diff=diff), *(item(f"n{n}", n + 1) for n in range(others))]
    window = Window(*items, columns=columns, rows=rows)
    for _ in range(2000):
        rest = window.rest()
        given = window.press("y")
        if given:
            assert not rest
            return
        before = window.model._stands
        window.press(" ")
        if window.model._stands == before and not rest:
            continue
        if rows < 5:
            return
    raise AssertionError(window.draw())


@given(st.lists(st.just("x"), max_size=40), st.integers(0, 50), st.integers(0, 50))
def test_a_page_fits_and_tells_of_what_it_leaves_out(rows: list[str], first: int, room: int) -> None:
    page = page_of(rows, first, room)
    told = page.told()
    assert bool(told) == (list(page.shown()) != rows)
    assert len(page.shown()) + bool(told) <= max(room, 1)
    assert display_width(told) <= 40
