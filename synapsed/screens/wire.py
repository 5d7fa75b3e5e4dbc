"""What goes over the socket as JSON: what the daemon says, and how a process of screens writes what it answers."""

import base64
import json
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.picture import Ink, Picture, Rows
from synapsed.model.records import Checkpoint
from synapsed.profiles.profile import Profile
from synapsed.terminal.explain import Witness
from synapsed.terminal.line_prompts.evidence import TerminalFacts
from synapsed.terminal.line_prompts.learned import LearnedPrompt
from synapsed.terminal.look import Harm, Look, TerminalReply
from synapsed.terminal.menu_rows import MenuOption
from synapsed.terminal.prompts import PAUSE, Asked
from synapsed.terminal.screen_messages import (
    Ask,
    KeysTyped,
    LinesWanted,
    Note,
    Skipped,
    StopAsked,
    StopOver,
    TurnClosed,
    TurnOpened,
)
from synapsed.terminal.snapshot import ScreenSnapshot

SIZE_MAX = 1000
"""Columns, and rows, of a screen."""


CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


CONTROLS_BUT_BREAKS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")


_PRINTED = re.compile(rb"\xc2[\x80-\x9f]|\x7f")
"""Control characters that the emulator prints, in UTF-8. All others are escaped in JSON."""


def _told(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _told_of_screen(value: Any) -> bytes:
    """What stands on a screen may have any character, and what is told has no control characters."""
    told = _told(value)
    return _PRINTED.sub("\ufffd".encode(), told) if b"\xc2" in told or b"\x7f" in told else told


def _clean(text: str) -> str:
    """Titles have what terminals would act on."""
    return CONTROLS.sub("\ufffd", text) if CONTROLS.search(text) else text


def _clean_words(text: str) -> str:
    return CONTROLS_BUT_BREAKS.sub("\ufffd", text) if CONTROLS_BUT_BREAKS.search(text) else text


class Opening(NamedTuple):
    """A screen that is to be drawn: empty, of a size, from `offset` on; or as it was at a checkpoint."""

    profile: Profile
    cols: int
    rows: int
    offset: int
    checkpoint: Checkpoint | None
    harm: Harm | None
    now: float


def write_opening(opening: Opening) -> tuple[bytes, bytes]:
    kept, harm = opening.checkpoint, opening.harm
    told = {
        "profile": opening.profile.model_dump(mode="json"),
        "size": [opening.cols, opening.rows],
        "offset": opening.offset,
        "kept": None if kept is None else [kept.offset, kept.cols, kept.rows, kept.state],
        "harm": None if harm is None else [harm.skip_to, harm.blind],
        "now": opening.now,
    }
    return _told(told), b"" if kept is None else kept.redraw


def read_opening(text: bytes, blob: bytes) -> Opening:
    told = json.loads(text)
    kept = told["kept"]
    return Opening(
        profile=Profile.model_validate(told["profile"]),
        cols=told["size"][0],
        rows=told["size"][1],
        offset=told["offset"],
        checkpoint=None if kept is None else as_checkpoint(kept, blob),
        harm=None if told["harm"] is None else Harm(skip_to=told["harm"][0], blind=told["harm"][1]),
        now=told["now"],
    )


_NOTES: dict[str, type[Note]] = {
    kind.__name__: kind for kind in (KeysTyped, StopAsked, StopOver, TurnOpened, TurnClosed, Skipped, OuterTerminal)
}


def write_note(note: Note) -> bytes:
    return _told([type(note).__name__, asdict(note)])


def read_note(text: bytes) -> Note:
    name, fields = json.loads(text)
    made: Callable[..., Note] = _NOTES[name]
    return made(**{field: _frozen(value) for field, value in fields.items()})


_ASK = attrgetter(*(field.name for field in fields(Ask)))


def write_ask(ask: Ask) -> bytes:
    return _told(_ASK(ask))


def read_ask(text: bytes) -> Ask:
    told = dict(zip((field.name for field in fields(Ask)), json.loads(text), strict=True))
    facts = told["facts"]
    told["facts"] = None if facts is None else TerminalFacts(*(_frozen(value) for value in facts))
    told["learned"] = tuple(LearnedPrompt(*one) for one in told["learned"])
    return Ask(**told)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def write_lines(wanted: LinesWanted, size: tuple[int, int]) -> tuple[bytes, bytes]:
    told = asdict(wanted)
    return _told({**told, "size": size, "output": None}), wanted.output


def read_lines(text: bytes, blob: bytes) -> tuple[LinesWanted, tuple[int, int]]:
    told = json.loads(text)
    cols, rows = told.pop("size")
    return LinesWanted(**{**told, "output": blob}), (cols, rows)


def write_look(look: Look | None, profile: Profile, known: ScreenSnapshot | None) -> tuple[bytes, bytes]:
    """`known` is the screen that was written last."""
    if look is None:
        return b"null", b""
    verdict, composer, screen = look.verdict, look.composer, look.screen
    told = (
        (
            *(verdict.activity.value, _clean_words(verdict.evidence), verdict.source),
            *(verdict.settled, verdict.lacks_composer),
        ),
        None if verdict.asked is None else _asked(verdict.asked, profile),
        (composer.state, composer.text, composer.row, composer.prompt, composer.learned),
        None if screen is known else _screen(screen),
        *(look.changed_at, look.steady_at, look.still_since, look.unreadable_at),
        *(look.record, look.worked_until, look.turn_open, look.stopping, look.lost, look.good_until),
        *(look.mid_frame, look.kinds is not None),
    )
    return _told_of_screen(told), b"" if look.kinds is None else look.kinds.encode()


def _asked(asked: Asked, profile: Profile) -> tuple[Any, ...]:
    menu, dialogs = asked.menu, [*profile.prompts.dialogs, PAUSE]
    return (
        asked.prompt.model_dump(),
        None if asked.dialog is None else dialogs.index(asked.dialog),
        asked.for_words,
        asked.doubtful,
        None
        if menu is None
        else (
            menu.asked,
            _options(menu.options),
            menu.marked,
            menu.rows.start,
            menu.rows.stop,
            menu.across,
            menu.ticks,
            menu.tick,
            menu.window and (_options(menu.window.buttons), *astuple(menu.window)[1:]),
        ),
    )


def _options(options: Sequence[MenuOption]) -> list[tuple[Any, ...]]:
    return [astuple(option) for option in options]


def _screen(screen: ScreenSnapshot) -> tuple[Any, ...]:
    return (
        screen.cols,
        screen.rows,
        screen.lines,
        screen.wrapped,
        screen.cursor,
        screen.cursor_visible,
        screen.alternate,
        _clean(screen.title),
        list(screen.modes.dec),
        list(screen.modes.ansi),
    )


def write_hello(version: int, rights: Sequence[str]) -> bytes:
    return _told({"version": version, "rights": sorted(rights)})


def write_replies(replies: Sequence[TerminalReply]) -> bytes:
    return _told([(reply.offset, base64.b64encode(reply.data).decode()) for reply in replies]) if replies else b""


def write_witnesses(witnesses: Sequence[Witness]) -> bytes:
    return _told_of_screen([(one.channel, _clean_words(one.says), one.since, one.decides) for one in witnesses])


def write_checkpoint(kept: Checkpoint) -> tuple[bytes, bytes]:
    return _told([kept.offset, kept.cols, kept.rows, kept.state]), kept.redraw


def as_checkpoint(told: Sequence[Any], redraw: bytes) -> Checkpoint:
    offset, cols, rows, state = told
    return Checkpoint(offset=offset, cols=cols, rows=rows, redraw=redraw, state=state)


def read_kept(text: bytes, blob: bytes) -> Checkpoint:
    return as_checkpoint(json.loads(text), blob)


def write_text(text: str) -> bytes:
    return _clean_words(text).encode("utf-8", "replace")


def write_document(document: dict[str, Any]) -> bytes:
    return _told_of_screen({**document, "title": _clean(document["title"])})


def write_picture(picture: Picture) -> bytes:
    inks: dict[Ink, int] = {}
    lines = [
        [(glyph.text, glyph.col, glyph.width, inks.setdefault(glyph.ink, len(inks))) for glyph in line]
        for line in picture.lines
    ]
    told = (
        *(picture.cols, picture.rows, picture.title, picture.foreground, picture.background, picture.cursor),
        *([tuple(asdict(ink).values()) for ink in inks], lines),
    )
    return _told_of_screen(told)


def write_rows(rows: Rows) -> bytes:
    return _told_of_screen(tuple(getattr(rows, field.name) for field in fields(Rows)))


def write_redraw(notice: Sequence[str], *, alone: bool) -> bytes:
    return _told([list(notice), alone])


def read_redraw(text: bytes) -> tuple[list[str], bool]:
    notice, alone = json.loads(text)
    return notice, alone


def write_pane(cols: int, rows: int, notice: Sequence[str]) -> bytes:
    return _told([cols, rows, list(notice)])


def read_pane(text: bytes) -> tuple[int, int, list[str]]:
    cols, rows, notice = json.loads(text)
    return cols, rows, notice


def write_failure(error: BaseException) -> bytes:
    """Where in this code, and of what kind; what it says may be of the output."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return _told(f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}"[:256])
