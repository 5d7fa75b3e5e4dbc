"""What is read of the questions of libraries that nobody here wrote, at rest: `screens/libraries`, each as its program
drew it, with what it is of and what is read in `seen.json`. What is not read there (null) is told as `unknown screen`.

`tests.real.strangers` runs the same programs, answers them, and looks at what they got.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from synapsed.model.agent import Activity
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.screen_spec import Composer, Prompts
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.menu_keys import Menu, route
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.prompts import Asked, find_prompt, keys_for
from synapsed.terminal.verdict import START_UNKNOWN_S

FOLDER = Path(__file__).with_name("screens") / "libraries"
SEEN: dict[str, dict[str, Any]] = json.loads((FOLDER / "seen.json").read_text())
UP, DOWN, TAB, SPACE, ENTER = b"\x1b[A", b"\x1b[B", b"\t", b" ", b"\r"


def asked_on(name: str) -> Asked | None:
    screen = Screen(120, 40)
    screen.feed((FOLDER / f"{name}.ansi").read_bytes())
    return find_prompt(Prompts(generic=True), screen.snapshot(), screen.row_cells)


def menu_on(name: str) -> Menu:
    asked = asked_on(name)
    assert asked is not None
    assert asked.menu is not None
    return asked.menu


@pytest.mark.parametrize("name", SEEN)
def test_what_is_read(name: str) -> None:
    asked, read = asked_on(name), SEEN[name]["read"]
    if read is None:
        assert asked is None
        return
    assert asked is not None
    prompt = asked.prompt
    assert {
        "type": prompt.type,
        "asks": prompt.prompt,
        "options": [option.label for option in prompt.options],
        "default": prompt.default,
        "words": prompt.own_words or prompt.type in ("text", "password"),
    } == read


NOT_BELOW = {"py-inquirer-list", "py-inquirer-checkbox"}
"""Drawn plainly, with the cursor below: below other rows they are what any output may be."""


@pytest.mark.parametrize("name", [name for name in SEEN if SEEN[name]["read"]])
def test_what_stands_above_it_changes_nothing(name: str) -> None:
    """As where it is asked in a shell."""
    screen = Screen(120, 40)
    screen.feed((FOLDER / f"{name}.ansi").read_bytes())
    now = screen.snapshot()
    if now.alternate or now.lines[-1].strip():
        pytest.skip("it has the whole screen")
    row, column = now.cursor
    screen.feed(f"\x1b[H\x1b[L$ ./it\x1b[{row + 2};{column + 1}H".encode())
    asked = find_prompt(Prompts(generic=True), screen.snapshot(), screen.row_cells)
    assert (asked is None) is (name in NOT_BELOW)
    options = [option.label for option in asked.prompt.options] if asked is not None else SEEN[name]["read"]["options"]
    assert options == SEEN[name]["read"]["options"]


def test_they_are_many() -> None:
    assert len({seen["of"].split()[0] for seen in SEEN.values()}) >= 12
    assert sum(seen["read"] is not None for seen in SEEN.values()) >= 40


@pytest.mark.parametrize(
    ("name", "key", "words", "keys"),
    [
        ("sh-dialog-menu", "2", "", [DOWN, ENTER]),
        ("sh-dialog-menu", "cancel", "", [TAB, ENTER]),
        ("sh-dialog-radiolist", "3", "", [DOWN, DOWN, SPACE, ENTER]),
        ("sh-dialog-checklist", "1", "", [SPACE]),
        ("sh-dialog-checklist", "done", "", [ENTER]),
        ("sh-dialog-inputbox", None, "Ann Lee", [b"Ann Lee", TAB, ENTER]),
        ("sh-whiptail-menu", "2", "", [DOWN, TAB, ENTER]),
        ("sh-whiptail-checklist", "done", "", [TAB, ENTER]),
        ("sh-whiptail-inputbox", None, "Ann", [b"Ann", TAB, ENTER]),
        ("py-ptk-radiolist", "1", "", [TAB, ENTER]),
        ("py-ptk-input", "cancel", "", [TAB, TAB, ENTER]),
        ("py-newt-buttons", "2", "", [b"\x1b[C", ENTER]),
        ("sh-fzf-full", "1", "", [UP, UP, ENTER]),
        ("py-survey-basket", "1", "", [b"\x1b[C"]),
        ("py-textual-options", "3", "", [DOWN, DOWN, ENTER]),
    ],
)
def test_the_way_to_an_answer(name: str, key: str | None, words: str, keys: list[bytes]) -> None:
    moves = route(menu_on(name), key, words, application=False)
    assert [move.keys for move in moves] == keys
    assert all(move.mark is not None for move in moves[:-1])
    assert moves[-1].mark is None


def test_enter_is_pressed_on_a_button_alone() -> None:
    """Where the focus is seen; in a list or a field it may choose, go on or end the window."""
    moves = route(menu_on("sh-whiptail-menu"), "2", application=False)
    assert moves[-2].mark == "\0button Ok"


def test_words_for_a_field_are_no_option() -> None:
    asked = asked_on("sh-whiptail-inputbox")
    assert asked is not None
    assert keys_for(asked, "Ann\nLee") == ([b"Ann Lee"], None)
    assert keys_for(asked, "cancel") == ([], "cancel")


def test_a_menu_that_was_answered_is_none() -> None:
    """Some programs leave it on the screen, above what came of it."""
    screen = Screen(120, 40)
    screen.feed((FOLDER / "py-inquirer-list.ansi").read_bytes() + b"\x1b[5;1Hanswered 'Large'\r\nand more\r\n")
    assert find_prompt(Prompts(generic=True), screen.snapshot(), screen.row_cells) is None


def test_what_a_question_says_of_the_marked_option_is_no_part_of_it() -> None:
    screen, other = Screen(120, 40), Screen(120, 40)
    for each, rows in ((screen, "Go? (Y/N) No\r\n  Yes\r\n> No"), (other, "Go? (Y/N) Yes\r\n> Yes\r\n  No")):
        coloured = rows.replace("> ", "\x1b[36m> \x1b[m")
        each.feed(f"{coloured}\r\n\r\n(enter to confirm)\x1b[?25l".encode())
    found = [find_prompt(Prompts(), each.snapshot(), each.row_cells) for each in (screen, other)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].prompt.prompt_id == found[1].prompt.prompt_id


@pytest.mark.parametrize("name", [name for name in SEEN if SEEN[name]["read"] is None])
def test_what_is_not_read_is_told_as_it_stands(name: str) -> None:
    """Within ten seconds, and never as ready."""
    profile = ProfileLibrary.builtin().get("generic")
    observer = TerminalObserver(profile, cols=120, rows=40, offset=0)
    observer.feed(0, (FOLDER / f"{name}.ansi").read_bytes(), 0.0)
    observer.look(0.0)
    observer.kernel = "rests"
    observer.look(START_UNKNOWN_S)
    look = observer.look(2 * START_UNKNOWN_S)
    assert look.verdict.activity in (Activity.UNKNOWN, Activity.WAITING)
    assert look.verdict.asked is not None
    assert look.verdict.asked.prompt.type == "screen"


@pytest.mark.parametrize("name", [name for name in SEEN if SEEN[name]["read"] and name != "py-plain-default"])
def test_what_asks_is_not_ready(name: str) -> None:
    """Though the sign of a prompt may stand at the cursor: a message would press what has the focus there."""
    observer = TerminalObserver(ProfileLibrary.builtin().get("generic"), cols=120, rows=40, offset=0)
    observer.feed(0, (FOLDER / f"{name}.ansi").read_bytes(), 0.0)
    verdict = observer.look(1.0).verdict
    assert verdict.activity is Activity.WAITING
    assert verdict.asked is not None


@pytest.mark.parametrize("name", ["sh-fzf-full", "sh-fzf-height", "py-fzf-full", "py-fzf-height"])
def test_a_list_that_is_filtered_is_no_composer(name: str) -> None:
    """Its row of words stands below a rule, as composers do."""
    composer = Composer.model_validate(
        {"line": r"^>(?: (?P<text>.*))?$", "around": r"─{20}\n>", "bracketed_paste": True}
    )
    profile = ProfileLibrary.builtin().get("generic").model_copy(update={"composer": composer})
    observer = TerminalObserver(profile, cols=120, rows=40, offset=0)
    observer.feed(0, (FOLDER / f"{name}.ansi").read_bytes(), 0.0)
    verdict = observer.look(1.0).verdict
    assert verdict.asked is not None
    assert verdict.asked.menu is not None
