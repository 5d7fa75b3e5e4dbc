"""Profiles that are written from a screen: what they find there, and that they can be read."""

import re
import tomllib
from pathlib import Path

import pytest

from synapsed.parts.profile_tools.drafting import AsksError, draft, only_drafts
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.terminal.composer import ComposerState, read_composer
from synapsed.terminal.emulated_screen import Screen

RULE = "─" * 60
SCREENS = {
    "a shell": ("hello\r\nme@box:~$ ", "empty", True),
    "a shell with a draft": ("me@box:~$ ls -l", "draft", True),
    "a prompt that counts": ("In [12]: ", "empty", True),
    "between rules": (f"\x1b[?1049h> an earlier one\r\n● yes\r\n{RULE}\r\n> \r\n{RULE}\r\nstatus", "empty", False),
    "a box with a placeholder": (
        f"\x1b[?1049h\x1b[?25l╭{RULE}╮\r\n│ > \x1b[2mType a message{' ' * 43}\x1b[m│\r\n╰{RULE}╯",
        "empty",
        False,
    ),
    "a placeholder behind the cursor": (f"\x1b[?1049h{RULE}\r\n❯ Ask (anything)?\r\n{RULE}\x1b[2;3H", "empty", False),
    "a draft": (f"\x1b[?1049h{RULE}\r\n❯ some words\r\n{RULE}\x1b[2;13H", "draft", False),
}


def screen_of(text: str) -> Screen:
    screen = Screen(80, 24)
    screen.feed(text.encode())
    return screen


def profile_of(text: str, tmp_path: Path, *command: str) -> tuple[Profile, str]:
    path = tmp_path / "mine.toml"
    path.write_text(draft(screen_of(text), command=command, agent="tui"))
    return ProfileLibrary.builtin().check(path), path.read_text()


def read(profile: Profile, text: str) -> ComposerState:
    screen = screen_of(text)

    def bright(row: int) -> str:
        return "".join(" " * len(cell.text) if cell.dim else cell.text for cell in screen.row_cells(row))

    return read_composer(profile.composer, screen.snapshot(), bright)


@pytest.mark.parametrize("name", SCREENS)
def test_the_composer_is_found_again(name: str, tmp_path: Path) -> None:
    text, state, at_cursor = SCREENS[name]
    profile, written = profile_of(text, tmp_path, "mytool", "--a b")
    assert (read(profile, text).state, profile.composer.at_cursor) == (state, at_cursor)
    assert f"On this screen it is {state}." in written
    assert (profile.command, profile.args) == ("mytool", ["--a b"])
    assert profile.answer.mode == ("lines" if at_cursor else "blocks")


def test_a_prompt_that_counts_is_known_when_it_has_counted(tmp_path: Path) -> None:
    profile, _ = profile_of("In [9]: ", tmp_path)
    assert read(profile, "In [10]: ").state == "empty"


def test_an_earlier_message_is_no_composer(tmp_path: Path) -> None:
    profile, _ = profile_of(SCREENS["between rules"][0], tmp_path)
    assert read(profile, "\x1b[?1049h> an earlier one\r\nworking").state == "absent"


def test_what_is_there_and_what_is_guessed_is_said(tmp_path: Path) -> None:
    _, written = profile_of(f"\x1b]2;My \\Tool\x07\x1b[?2004h{SCREENS['a box with a placeholder'][0]}", tmp_path)
    for words in ("the alternate screen", "The cursor is hidden", "bracketed_paste = true", "A guess", r"^My \\Tool$"):
        assert words in written


def test_where_nothing_looks_like_it_that_is_said(tmp_path: Path) -> None:
    profile, written = profile_of("\x1b[?1049hLoading\x1b[?25l", tmp_path)
    assert profile.composer.line is None
    assert "No row looks like it" in written


@pytest.mark.parametrize("text", ["it's> ", 'a "b" \\ ([{> ', "日本語❯ ", ""])
def test_whatever_is_on_the_screen_can_be_read_again(text: str) -> None:
    written = draft(screen_of(text), command=['a"b', "c'd"], agent="x")
    document = tomllib.loads(written)
    assert document["command"] == 'a"b'
    if (line := document["composer"].get("line")) is not None:
        assert re.search(line, text.rstrip())


ASKING = {
    "a question of a login": "Sign in:\r\n\x1b[36m❯ 1. A plan\x1b[m\r\n  2. A key\r\n\r\nEnter to confirm\x1b[?25l",
    "a menu of trust": "Do you trust this folder?\r\n\x1b[36m❯ Yes\x1b[m\r\n  No\r\n\r\n(Use arrow-keys)\x1b[?25l",
    "a password": "Password: ",
    "a name": "? What is your name? ",
    "a confirmation": "Go on? [y/N] ",
}


@pytest.mark.parametrize("name", ASKING)
def test_no_profile_is_written_while_it_asks(name: str) -> None:
    """What it asks is no composer."""
    with pytest.raises(AsksError):
        draft(screen_of(ASKING[name]), command=["x"], agent="tui")


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[90mType a message\x1b[m",
        "\x1b[38;5;240mType a message\x1b[m",
        "\x1b[38;2;120;120;120mType a message\x1b[m",
        "\x1b[7mT\x1b[mype a message",
        "\x1b[7mT\x1b[;90mype a message\x1b[m",
    ],
    ids=["bright black", "palette", "rgb", "behind a drawn cursor", "grey behind one"],
)
def test_a_placeholder_is_no_draft(text: str, tmp_path: Path) -> None:
    profile, _ = profile_of(f"\x1b[?1049h\x1b[?25l{RULE}\r\n❯ {text}\r\n{RULE}", tmp_path)
    assert read(profile, f"\x1b[?25l{RULE}\r\n❯ Type a message\r\n{RULE}").state == "empty"
    assert read(profile, f"\x1b[?25l{RULE}\r\n❯ hello\r\n{RULE}").state == "draft"


@pytest.mark.parametrize(
    "row", ["⠋ Thinking… (esc to interrupt)", "working (ctrl+c to stop)", "✻ Pondering", "Esc to cancel"]
)
def test_the_usual_signs_of_work_are_proposed(row: str, tmp_path: Path) -> None:
    profile, _ = profile_of(SCREENS["between rules"][0], tmp_path)
    assert any(sign.search(row) for sign in profile.busy.screen)
    assert not any(sign.search("I asked the stop to be nearer") for sign in profile.busy.screen)


HARMFUL = ("a = " + "[" * 5000, "a = " + "1" * 5000, "args = 5\n", "args = 'x'\n", "command = []\n")


def test_only_a_draft_is_taken_for_one() -> None:
    """It comes from a process that a screen may have taken over: it names no other program than the one asked for."""
    for command in (["tui", "--x"], ["tui"], []):
        written = draft(screen_of("$ "), command=command, agent="tui")
        assert only_drafts(written, command)
        assert not only_drafts(written, ["another"])
        assert not only_drafts(written + "[mcp]\nargs = ['x']\n", command)
    for text in ('command = "sh"\n', "args = ['x']\n", "[env]\nPATH = '.'\n", "not toml", "[" * 5000, *HARMFUL):
        assert not only_drafts(text, [])
