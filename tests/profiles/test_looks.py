"""Looks of programs that the recordings do not have: the screen as the daemon drew it again."""

from pathlib import Path

import pytest

from synapsed.model.agent import Activity
from synapsed.profiles import ProfileLibrary
from synapsed.terminal.observer import TerminalObserver

LOOKS = Path(__file__).with_name("looks")


def observed(look: str, typed: bytes = b"") -> TerminalObserver:
    profile = ProfileLibrary.standard(Path("/nonexistent")).get(look.partition("-")[0])
    observer = TerminalObserver(profile, cols=120, rows=40, offset=0)
    observer.feed(0, (LOOKS / f"{look}.ansi").read_bytes() + typed, 0.0)
    return observer


def test_a_frame_of_half_blocks_around_an_empty_composer() -> None:
    """gemini draws it where the terminal has all colours."""
    assert observed("gemini-truecolor-idle").look(1.0).composer.state == "empty"


@pytest.mark.parametrize("draft", [b"a draft", b" "])
def test_and_around_a_draft(draft: bytes) -> None:
    observer = observed("gemini-truecolor-idle")
    row = next(n for n, line in enumerate(observer.look(1.0).screen.lines) if "Type your message" in line)
    text = b"\x1b[%d;4H\x1b[m%s\x1b[K" % (row + 1, draft)
    observer.feed(observer.offset, text, 2.0)
    assert observer.look(3.0).composer.state == ("draft" if draft.strip() else "empty")


def test_a_message_that_is_put_off_is_work_to_come() -> None:
    """gemini shows it so until its MCP servers have started; its title says meanwhile that it is ready."""
    look = observed("gemini-queued").look(1.0)
    assert "Ready" in look.screen.title
    assert look.verdict.activity is Activity.BUSY
    assert look.verdict.evidence == "screen: Queued (press ↑ to edit):"
