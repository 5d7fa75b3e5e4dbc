"""The protocol between the daemon and a process of screens: frames of a fixed header, JSON and bytes; the daemon's
messages in them, and the process's answers.

Both sides run the code of one installation. Nevertheless the first frame of the process has its version, because files
may have been replaced since the daemon started.
"""

import base64
import json
import struct
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, astuple, fields, replace
from enum import IntEnum
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from synapsed.model.facts import BACKGROUND_MAX, BACKGROUND_NAME
from synapsed.model.outer_terminal import OuterTerminal
from synapsed.model.picture import Ink, Picture, Rows
from synapsed.model.records import Checkpoint
from synapsed.profiles.profile import Profile
from synapsed.shared.regex import regex
from synapsed.terminal.explain import Witness
from synapsed.terminal.line_prompts.evidence import TerminalFacts
from synapsed.terminal.line_prompts.learned import LearnedPrompt
from synapsed.terminal.look import Harm, Look, TerminalReply
from synapsed.terminal.menu_rows import MenuOption
from synapsed.terminal.prompts import PAUSE, Asked
from synapsed.terminal.screen_messages import (
    Ask,
    InBackground,
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

VERSION = 5
"""Version of the protocol: of all definitions in this module."""

TEXT_MAX = 4 << 20
"""Largest number of bytes of a frame's JSON: a screen of 1000 x 1000 has about one million characters."""

BLOB_MAX = 64 << 20
"""Largest number of bytes of a frame's `blob`: a screen of the largest size with all its scrollback."""

_HEAD = struct.Struct("<IIBBIQQd")


AS_DRAWN, KINDS, WHOLE = 2, 4, 8
"""Bits in the `flag` of a request. AS_DRAWN: the screen as it is drawn now, without the output that waits; the others
are fields of `Ask`."""


class ScreenFrameError(Exception):
    """Error of a frame that is malformed, or whose content is impossible."""


class FrameKind(IntEnum):
    # To the process.
    OPEN = 1
    FEED = 2
    NOTE = 3
    RESIZE = 4
    CLOSE = 5
    PASS = 6
    """Drops the waiting output that ends before `offset`, without drawing it."""
    LOOK = 16
    EXPLAIN = 17
    CHECKPOINT = 18
    REDRAW = 19
    TEXT = 20
    SHOWN = 21
    LINES = 22
    KEPT = 23
    PANE = 24
    # From the process.
    HELLO = 64
    ALIVE = 65
    DRAWN = 66
    ANSWER = 67
    FAILED = 68
    AT = 69
    """The process begins to work for that agent; not sent if the process was idle before."""


class ScreenFrame(NamedTuple):
    """One message. `agent` is the number that the daemon gave the screen; `number` is the number of a request, which
    the answer repeats; `offset` is a spool offset (from the process: the end of the drawn output)."""

    kind: int
    agent: int = 0
    number: int = 0
    offset: int = 0
    now: float = 0.0
    flag: int = 0
    text: bytes = b""
    blob: bytes = b""


def encode(frame: ScreenFrame) -> bytes:
    head = _HEAD.pack(
        len(frame.text), len(frame.blob), frame.kind, frame.flag, frame.agent, frame.number, frame.offset, frame.now
    )
    return b"".join((head, frame.text, frame.blob))


class ScreenFrameReader:
    """Reads frames from a stream that is cut anywhere. Raises ScreenFrameError for a frame that is too long."""

    def __init__(self) -> None:
        self._came = bytearray()
        self._wanted = _HEAD.size

    def feed(self, data: bytes) -> Iterator[ScreenFrame]:
        self._came += data
        if len(self._came) < self._wanted:
            return
        done = 0
        while (left := len(self._came) - done) >= _HEAD.size:
            text, blob, kind, flag, agent, number, offset, now = _HEAD.unpack_from(self._came, done)
            if text > TEXT_MAX or blob > BLOB_MAX:
                raise ScreenFrameError(f"a frame of {text} and {blob} bytes")
            self._wanted = _HEAD.size + text + blob
            if left < self._wanted:
                break
            middle = done + _HEAD.size + text
            end = middle + blob
            parts = bytes(self._came[done + _HEAD.size : middle]), bytes(self._came[middle:end])
            done = end
            yield ScreenFrame(kind, agent, number, offset, now, flag, *parts)
        else:
            self._wanted = _HEAD.size
        del self._came[:done]


SIZE_MAX = 1000
"""Largest number of columns, and of rows, of a screen."""


CONTROLS = regex("[\x00-\x1f\x7f-\x9f]")


CONTROLS_BUT_BREAKS = regex("[\x00-\x09\x0b-\x1f\x7f-\x9f]")


_PRINTED = regex(rb"\xc2[\x80-\x9f]|\x7f")
"""The control characters, in UTF-8, that the emulator keeps as text and that JSON does not escape."""


def _told(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _told_of_screen(value: Any) -> bytes:
    """Encodes text of a screen, which may have any character, and replaces its control characters."""
    told = _told(value)
    return _PRINTED.sub("\ufffd".encode(), told) if b"\xc2" in told or b"\x7f" in told else told


def _clean(text: str) -> str:
    """Replaces control characters in a title or name: a terminal would act on them."""
    return CONTROLS.sub("\ufffd", text) if CONTROLS.search(text) else text


def _clean_words(text: str) -> str:
    return CONTROLS_BUT_BREAKS.sub("\ufffd", text) if CONTROLS_BUT_BREAKS.search(text) else text


class Opening(NamedTuple):
    """A screen to be drawn: an empty one of a size, from `offset` on; or the screen of a checkpoint."""

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
    kind.__name__: kind
    for kind in (KeysTyped, StopAsked, StopOver, TurnOpened, TurnClosed, InBackground, Skipped, OuterTerminal)
}


def write_note(note: Note) -> bytes:
    return _told([type(note).__name__, asdict(note)])


def read_note(text: bytes) -> Note:
    name, fields = json.loads(text)
    made: Callable[..., Note] = _NOTES[name]
    return made(**{field: _frozen(value) for field, value in fields.items()})


def write_ask(ask: Ask) -> bytes:
    """Returns the request's fields that change rarely (`Ask.known`); the others are in the frame's header."""
    return _told(ask.known)


def asking(kind: FrameKind, ask: Ask, text: bytes, flag: int = 0) -> ScreenFrame:
    """Returns the frame for `ask`; `text` is the result of `write_ask`."""
    return ScreenFrame(kind, now=ask.now, flag=flag | KINDS * ask.kinds | WHOLE * ask.whole, text=text)


def read_ask(frame: ScreenFrame, before: Ask | None = None) -> Ask:
    """Reads a request. A frame without text repeats the known fields of `before`, the last request."""
    known = before
    if frame.text:
        in_turn, facts, learned, given_back, kernel, unbegun = json.loads(frame.text)
        known = Ask(
            now=0.0,
            in_turn=in_turn,
            facts=None if facts is None else TerminalFacts(*(_frozen(value) for value in facts)),
            learned=tuple(LearnedPrompt(*one) for one in learned),
            given_back=given_back,
            kernel=kernel,
            unbegun=unbegun,
        )
    assert known is not None, "the first one is told whole"
    return replace(known, now=frame.now, kinds=bool(frame.flag & KINDS), whole=bool(frame.flag & WHOLE))


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def write_lines(wanted: LinesWanted, size: tuple[int, int]) -> tuple[bytes, bytes]:
    told = asdict(wanted)
    return _told({**told, "size": size, "output": None}), wanted.output


def read_lines(text: bytes, blob: bytes) -> tuple[LinesWanted, tuple[int, int]]:
    told = json.loads(text)
    cols, rows = told.pop("size")
    return LinesWanted(**{**told, "output": blob}), (cols, rows)


_JUDGED = attrgetter("verdict", "composer", "record", "worked_until", "turn_open", "stopping", "lost", "background")


def write_look(look: Look | None, profile: Profile, before: Look | None) -> tuple[bytes, bytes]:
    """Writes a look, without the fields that are the same in `before`, the look that was written last."""
    if look is None:
        return b"null", b""
    same = before is not None and _JUDGED(look) == _JUDGED(before)
    told = (
        None if same else _judged(look, profile),
        None if before is not None and look.screen is before.screen else _screen(look.screen, before),
        *(look.changed_at, look.steady_at, look.still_since, look.unreadable_at, look.calm_since),
        *(look.good_until, look.mid_frame, look.kinds is not None),
    )
    return _told_of_screen(told), b"" if look.kinds is None else look.kinds.encode()


def _judged(look: Look, profile: Profile) -> tuple[Any, ...]:
    verdict, composer = look.verdict, look.composer
    return (
        (
            *(verdict.activity.value, _clean_words(verdict.evidence), verdict.source),
            *(verdict.settled, verdict.lacks_composer),
        ),
        None if verdict.asked is None else _asked(verdict.asked, profile),
        (composer.state, composer.text, composer.row, composer.prompt, composer.learned),
        *(look.record, look.worked_until, look.turn_open, look.stopping, look.lost),
        [_clean(each)[:BACKGROUND_NAME] for each in look.background[:BACKGROUND_MAX]],
    )


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


def _screen(screen: ScreenSnapshot, before: Look | None) -> tuple[Any, ...]:
    known = None if before is None else before.screen
    return (
        screen.cols,
        screen.rows,
        _lines(screen.lines, () if known is None else known.lines),
        [row for row, wrapped in enumerate(screen.wrapped) if wrapped],
        screen.cursor,
        screen.cursor_visible,
        screen.alternate,
        _clean(screen.title),
        None
        if known is not None and screen.modes == known.modes
        else (list(screen.modes.dec), list(screen.modes.ansi)),
    )


def _lines(lines: Sequence[str], known: Sequence[str]) -> list[str | list[int]]:
    """Returns the rows. A run of rows that `known` has too becomes a pair of indexes in `known`: the first row, and the
    row after the last."""
    told: list[str | list[int]] = []
    places = {line: row for row, line in enumerate(known)}
    run, end = [0, 0], len(known)
    for row, line in enumerate(lines):
        if run[1] < end and known[run[1]] == line:
            at = run[1]
        elif row < end and known[row] == line:
            at = row
        else:
            at = places.get(line, -1)
        if at < 0:
            told.append(line)
        elif told and told[-1] is run and at == run[1]:
            run[1] += 1
        else:
            told.append(run := [at, at + 1])
    return told


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


def write_values(*values: Any) -> bytes:
    """Writes the values of a request, which `json.loads` reads."""
    return _told(values)


def write_failure(error: BaseException) -> bytes:
    """Returns the kind of the error and its place in the code; not its message, which may contain a program's
    output."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return _told(f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}"[:256])
