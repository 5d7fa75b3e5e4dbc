"""Looks of programs that the recordings do not have: the screen as the daemon drew it again."""

from pathlib import Path

import pytest

from synapsed.errors import InvalidChoice
from synapsed.model.agent import Activity
from synapsed.profiles.library import ProfileLibrary
from synapsed.terminal.composer import puts_off
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.prompts import keys_for

LOOKS = Path(__file__).with_name("looks")
GEMINI = ProfileLibrary.standard(Path("/nonexistent")).get("gemini")


def observed(look: str, typed: bytes = b"", *, cols: int = 120, rows: int = 40) -> TerminalObserver:
    profile = ProfileLibrary.standard(Path("/nonexistent")).get(look.partition("-")[0])
    observer = TerminalObserver(profile, cols=cols, rows=rows, offset=0)
    observer.feed(0, (LOOKS / f"{look}.ansi").read_bytes() + typed, 0.0)
    return observer


def test_a_frame_of_half_blocks_around_an_empty_composer() -> None:
    """gemini draws it where the terminal has all colours."""
    assert observed("gemini-truecolor-idle").look(1.0).composer.state == "empty"


@pytest.mark.parametrize("look", ["gemini-vim-insert", "gemini-vim-normal", "opencode-sidebar"])
def test_composers_that_look_otherwise(look: str) -> None:
    """Of who has vim's keys; and beside a sidebar, which a window of more than 120 columns has by itself."""
    assert observed(look).look(1.0).composer.state == "empty"


def test_a_composer_of_less_than_80_columns() -> None:
    """What gemini has in one row above it stands in four then."""
    assert observed("gemini-narrow", cols=60, rows=24).look(1.0).composer.state == "empty"


@pytest.mark.parametrize("look", ["opencode-shell", "codex-search", "claude-visual"])
def test_composers_that_are_for_something_else(look: str) -> None:
    """What is pasted would be run by a shell, searched for in the history, or stand there unsent."""
    assert observed(look).look(1.0).composer.state == "draft"


@pytest.mark.parametrize("draft", [b"a draft", b" "])
def test_and_around_a_draft(draft: bytes) -> None:
    observer = observed("gemini-truecolor-idle")
    row = next(n for n, line in enumerate(observer.look(1.0).screen.lines) if "Type your message" in line)
    text = b"\x1b[%d;4H\x1b[m%s\x1b[K" % (row + 1, draft)
    observer.feed(observer.offset, text, 2.0)
    assert observer.look(3.0).composer.state == ("draft" if draft.strip() else "empty")


def test_what_an_escape_on_an_empty_composer_opens_is_closed() -> None:
    """codex 0.157 to 0.162 then scroll in their transcript; Enter would go back in the conversation."""
    asked = observed("codex-0.157-browse").look(1.0).verdict.asked
    assert asked is not None
    assert [(option.key, option.label) for option in asked.prompt.options] == [("close", "Close it")]
    assert keys_for(asked, "no") == ([b"\x1b"], "close")
    assert asked.dialog is not None
    assert asked.dialog.leave == "\x1b"


def test_an_option_that_begins_in_the_row_below_its_number() -> None:
    """gemini breaks a line at blanks, and where there is no blank behind the number."""
    asked = observed("gemini-long-option").look(1.0).verdict.asked
    assert asked is not None
    labels = [(option.key, option.label[:7]) for option in asked.prompt.options]
    assert labels == [("1", "長い選択肢です"), ("2", "短い"), ("none", "Decline")]
    assert (asked.prompt.default, asked.prompt.own_words) == ("1", True)


def test_a_message_that_is_put_off_is_work_to_come() -> None:
    """gemini shows it so until its MCP servers have started; its title says meanwhile that it is ready."""
    look = observed("gemini-queued").look(1.0)
    assert "Ready" in look.screen.title
    assert look.verdict.activity is Activity.BUSY
    assert look.verdict.evidence == "screen: Queued (press ↑ to edit):"


def test_which_message_is_put_off() -> None:
    observer = observed("gemini-queued")
    screen, spec = observer.look(1.0).screen, GEMINI.interrupt.put_off
    assert spec is not None
    assert puts_off(spec, screen, "a message\n\n[[answer:short]] and more")
    assert not puts_off(spec, screen, "another message [[answer:short]]")
    row = next(n for n, line in enumerate(screen.lines) if "a message" in line)
    observer.feed(observer.offset, b"\x1b[%d;5Ha message [[ans\xe2\x80\xa6\x1b[K" % (row + 1), 2.0)
    assert puts_off(spec, observer.look(3.0).screen, "a message [[answer:short]] and more")
    observer.feed(observer.offset, b"\x1b[%d;5Ha person's" % (row + 2), 4.0)
    assert not puts_off(spec, observer.look(5.0).screen, "a message [[answer:short]] and more")
    assert not puts_off(spec, observed("gemini-truecolor-idle").look(1.0).screen, "a message [[answer:short]]")


def test_a_menu_that_keys_of_ours_opened_is_closed_in_older_versions_too() -> None:
    asked = observed("claude-2.1.92-rewind").look(1.0).verdict.asked
    assert asked is not None
    assert asked.dialog is not None
    assert asked.dialog.leave == "\x1b"


def test_a_panel_that_a_person_has_opened_is_told_and_closed_by_a_verb() -> None:
    """codex's warnings, behind F2: messages wait until it is closed."""
    asked = observed("codex-warnings").look(1.0).verdict.asked
    assert asked is not None
    assert "Codex could not find bubblewrap on PATH." in asked.prompt.prompt
    assert [option.key for option in asked.prompt.options] == ["close", "keep"]
    assert keys_for(asked, "close") == ([b"\x1b"], "close")
    assert keys_for(asked, "keep") == ([b"k"], "keep")


@pytest.mark.parametrize(("mark", "auto"), [("yes", b"\r"), ("no", b"\x1b[A\r")])
def test_claudes_question_about_auto_mode_is_asked_and_yes_is_no_answer_to_it(mark: str, auto: bytes) -> None:
    """Asked once, where the person's settings have another mode; with it tools run unasked."""
    verdict = observed(f"claude-auto-mode-{mark}").look(1.0).verdict
    asked = verdict.asked
    assert verdict.activity is Activity.WAITING
    assert asked is not None
    assert asked.prompt.prompt.startswith("Make auto mode your default permission mode?")
    assert "blocks the rest." in asked.prompt.prompt
    assert [option.key for option in asked.prompt.options] == ["no", "auto"]
    assert keys_for(asked, "no") == ([b"\x1b"], "no")
    assert b"".join(keys_for(asked, "auto")[0]) == auto
    for word in ("yes", "y", "approve", "allow"):
        with pytest.raises(InvalidChoice):
            keys_for(asked, word)
