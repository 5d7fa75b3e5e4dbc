"""What goes over the socket comes out of it as it went in."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from synapsed.model.outer_terminal import OuterTerminal
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.screens import checked_replies, protocol
from synapsed.screens.protocol import FrameKind, ScreenFrame, ScreenFrameError
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.line_prompts.evidence import TerminalFacts
from synapsed.terminal.line_prompts.learned import LearnedPrompt
from synapsed.terminal.look import Harm, Look
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.screen_formats import document, picture
from synapsed.terminal.screen_messages import (
    Ask,
    KeysTyped,
    Note,
    Skipped,
    StopAsked,
    StopOver,
    TurnClosed,
    TurnOpened,
)
from synapsed.terminal.snapshot import ScreenSnapshot
from tests.support.gated import chosen

pytestmark = pytest.mark.recorded

RECORDINGS = Path(__file__).parents[1] / "recordings"
PROGRAMS = {
    "claude": "claude-2.1.330",
    "codex": "codex-0.169.0",
    "gemini": "gemini-0.61.0",
    "opencode": "opencode-1.18.33",
}
FILES = [(name, path) for name, folder in PROGRAMS.items() for path in sorted((RECORDINGS / folder).glob("*.raw"))]


def _recording(file: tuple[str, Path]) -> str:
    return f"{file[1].parent.name}/{file[1].stem}"


def as_it_crosses(look: Look) -> Look:
    """Without what does not: the palette, and the colours behind everything."""
    screen = look.screen
    bare = ScreenSnapshot(
        *(screen.cols, screen.rows, screen.lines, screen.wrapped, screen.cursor, screen.cursor_visible),
        *(screen.alternate, screen.title, screen.modes, (255, 255, 255), (0, 0, 0), b""),
    )
    return Look(**{**{name: getattr(look, name) for name in Look.__slots__}, "screen": bare})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "path"),
    chosen(FILES, _recording),
    ids=lambda one: one.stem if isinstance(one, Path) else one,
)
def test_the_looks_of_all_recordings(profile: str, path: Path) -> None:
    watched = ProfileLibrary.builtin().get(profile)
    observer = TerminalObserver(watched, cols=120, rows=40, offset=0)
    data = path.read_bytes()[:40_000]
    written = read = None
    for number, start in enumerate(range(0, len(data), 1000)):
        now = number * 0.5
        observer.feed(start, data[start : start + 1000], now)
        look = observer.asked(Ask(now=now, kinds=number % 3 == 0))
        assert look is not None
        text, blob = protocol.write_look(look, watched, written)
        frame = ScreenFrame(FrameKind.ANSWER, offset=look.offset, text=text, blob=blob)
        there = checked_replies.read_look(frame, watched, read)
        assert there == as_it_crosses(look)
        written, read = look, there
        shown = picture(observer.screen)
        assert checked_replies.read_picture(protocol.write_picture(shown)) == shown
    told = document(observer.screen)
    assert checked_replies.read_document(protocol.write_document(told)) == told


def test_no_look_in_the_middle_of_a_frame() -> None:
    profile = ProfileLibrary.builtin().get("generic")
    text, blob = protocol.write_look(None, profile, None)
    assert checked_replies.read_look(ScreenFrame(FrameKind.ANSWER, text=text, blob=blob), profile, None) is None


@pytest.mark.parametrize(
    "note",
    [
        KeysTyped(1.5),
        StopAsked(2.5),
        StopOver(),
        TurnOpened("hooks", 17),
        TurnClosed(),
        Skipped(1 << 40),
        OuterTerminal((1, 2, 3), None, (8, 17), keyboard=True),
        OuterTerminal(),
    ],
)
def test_notes(note: Note) -> None:
    assert protocol.read_value(protocol.write_value(note)) == note


def test_what_a_look_is_asked_with() -> None:
    facts = TerminalFacts(9, False, True, 17, ("bash", "sh"), 3, "maybe", foreign=True, cwd="/")
    known = (LearnedPrompt("$", r"\$ *", "bash", "keys"), LearnedPrompt("", "", confirmed=False))
    ask = Ask(now=17.25, in_turn=True, facts=facts, learned=known, given_back="command", kernel="reads", kinds=True)
    known = protocol.read_value(protocol.write_value(ask))
    assert known == ask
    later = replace(ask, now=18.5, kinds=False, whole=True)
    frame = ScreenFrame(FrameKind.LOOK, now=later.now, flag=protocol.flag_of(later))
    assert protocol.as_asked(known, frame) == later


def test_how_a_screen_is_opened() -> None:
    library = ProfileLibrary.builtin()
    for name in PROGRAMS:
        observer = TerminalObserver(library.get(name), cols=80, rows=24, offset=5)
        observer.feed(5, b"\xff\x00\x1b[1m text \r\n", 1.0)
        opening = protocol.Opening(
            library.get(name), 80, 24, 5, observer.checkpoint(), Harm(skip_to=3, blind=True), 1.0
        )
        assert protocol.read_value(protocol.write_opening(opening)) == opening


def test_titles_and_texts_lose_what_a_terminal_acts_on() -> None:
    """A program may put such characters there, and is no liar."""
    screen = Screen(80, 24)
    screen.feed(b"\x1b]2;a\xc2\x9bb\x07text")
    told = document(screen)
    assert not any(ord(char) < 32 for char in checked_replies.read_document(protocol.write_document(told))["title"])
    assert (
        checked_replies.read_text(ScreenFrame(FrameKind.ANSWER, blob=protocol.write_text("a\x1b\nb\x9b")))
        == "a\ufffd\nb\ufffd"
    )


@pytest.mark.parametrize("control", [*range(0x20), *range(0x7F, 0xA0)], ids=hex)
def test_whatever_a_program_prints_can_be_told(control: int) -> None:
    """The emulator prints some control characters: text that was decoded twice has them, and is no lie either."""
    profile = Profile.model_validate({"name": "a", "command": "a", "composer": {"line": r"^\$ (?P<text>.*)$"}})
    observer = TerminalObserver(profile, cols=40, rows=5, offset=0)
    observer.feed(0, f"\x1b]2;t{chr(control)}\x07a{chr(control)}b\r\n$ c{chr(control)}d".encode(), 1.0)
    observer.believe(Ask(now=2.0, kinds=True))
    look = observer.asked(Ask(now=2.0, kinds=True))
    text, blob = protocol.write_look(look, profile, None)
    told = checked_replies.read_look(ScreenFrame(FrameKind.ANSWER, text=text, blob=blob), profile, None)
    assert look is not None
    assert told is not None
    assert [len(line) for line in told.screen.lines] == [len(line) for line in look.screen.lines]
    assert not any(protocol.CONTROLS.search(line) for line in (*told.screen.lines, told.composer.text))
    screen = Screen(40, 5)
    screen.feed(f"a{chr(control)}b".encode())
    assert not protocol.CONTROLS.search(
        checked_replies.read_document(protocol.write_document(document(screen)))["lines"][0]
    )
    checked_replies.read_picture(protocol.write_picture(picture(screen)))
    witnesses = ScreenFrame(FrameKind.ANSWER, text=protocol.write_witnesses(observer.explain(2.0)))
    assert checked_replies.read_witnesses(witnesses)


def test_what_is_not_as_it_must_be_is_named_without_being_told() -> None:
    with pytest.raises(ScreenFrameError) as refused:
        checked_replies.read_hello(
            ScreenFrame(FrameKind.HELLO, text=json.dumps({"version": "a secret", "rights": []}).encode())
        )
    assert "version" in str(refused.value)
    assert "secret" not in str(refused.value)
