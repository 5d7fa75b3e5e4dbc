"""Labels that programs wrap: whoever answers has to see all of what they agree to."""

from pathlib import Path

import pytest

from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.prompts import find_prompt

SCREENS = Path(__file__).parent / "screens" / "wrapped"
CJK = "今すぐ古い名前をすべて新しい名前に書き換えてからコミットする（おすすめ）"
COMMANDS = "xargs -0 sed -i 's/old_name/new_name/g', git add, and git commit"
AUTO = "Yes, and switch to auto mode · auto mode handles these prompts for you"
KEEP = "Keep the old names for one more release and warn about them"
LABELS = {
    # the folder is bold, and too long for a row
    "claude-40-permission": [
        "Yes",
        f"Yes, and don't ask again for {COMMANDS} commands in /home/ann/work/of/this/year/at/the-shop/payments-x",
        AUTO,
        "No",
    ],
    "claude-60-permission": [
        "Yes",
        f"Yes, and don't ask again for {COMMANDS} commands in /home/ann/work/of/this/year/at/the/shop/payments/ap",
        AUTO,
        "No",
    ],
    # rows of about the same length, so that the next word had a place
    "codex-100-permission": [
        "Yes, proceed",
        "Yes, and don't ask again for commands that start with `find src tests -name '*.py' -newer .stamp -print0`",
        "No, and tell Codex what to do differently",
    ],
    # with a description below each
    "claude-60-question": [KEEP, "Red", CJK, "Chat about this", "Decline to answer"],
    # which does not go to the end of its rows
    "opencode-60-question": [KEEP, "Red", CJK, "Decline to answer"],
    "gemini-40-question": [KEEP, "Red", CJK, "Show all there is to choose", "Decline to answer"],
}


def labels(profile: Profile, columns: int, data: bytes) -> list[str]:
    screen = Screen(columns, 40)
    screen.feed(data)
    asked = find_prompt(profile.prompts, screen.snapshot(), screen.row_cells)
    assert asked is not None
    return [option.label for option in asked.prompt.options]


@pytest.fixture
def library(tmp_path: Path) -> ProfileLibrary:
    return ProfileLibrary.standard(tmp_path)


@pytest.mark.parametrize("path", sorted(SCREENS.glob("*.ansi")), ids=lambda path: path.stem)
def test_all_rows_of_a_label_are_told(library: ProfileLibrary, path: Path) -> None:
    cli, columns, _ = path.stem.split("-")
    assert labels(library.get(cli), int(columns), path.read_bytes()) == LABELS[path.stem]


def question(*rows: str) -> bytes:
    return "\r\n".join((" ☐ Way", "", "Which way?", "", *rows, "", "Enter to select · ↑/↓ to navigate")).encode()


@pytest.mark.parametrize(
    ("rows", "first"),
    [
        (["❯ 1. A label of twenty-six letters", "     goes on"], "A label of twenty-six letters goes on"),
        (["❯ 1. A label of twenty-six letters", "     \x1b[2mdescribed\x1b[m"], "A label of twenty-six letters"),
        (["❯ 1. A label", "     described alike"], "A label"),
        (["❯ 1. A label of twenty-six letters", "      that is no part of it"], "A label of twenty-six letters"),
    ],
    ids=["goes on", "described, in another look", "described, in the same look", "elsewhere"],
)
def test_what_stands_below_a_label_is_told_apart(library: ProfileLibrary, rows: list[str], first: str) -> None:
    assert labels(library.get("claude"), 40, question(*rows, "  2. Red"))[0] == first
