"""The protocol between the daemon and a process of screens: frames of a fixed header, a text and bytes; the daemon's
messages in them (pickled: the process trusts it), and the process's answers, which `checked_replies` reads.

Both sides run the code of one installation. Nevertheless the first frame of the process has its version, because files
may have been replaced since the daemon started.
"""

import base64
import json
import pickle
import struct
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, fields, replace
from enum import IntEnum
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from synapsed.model.facts import BACKGROUND_MAX, BACKGROUND_NAME
from synapsed.model.picture import Ink, Picture, Rows
from synapsed.model.records import Checkpoint
from synapsed.profiles.profile import Profile
from synapsed.shared.regex import regex
from synapsed.terminal.explain import Witness
from synapsed.terminal.look import Harm, Look, TerminalReply
from synapsed.terminal.menu_rows import MenuOption
from synapsed.terminal.prompts import PAUSE, Asked
from synapsed.terminal.screen_messages import (
    Ask,
)

VERSION = 6
"""Version of the protocol: of all definitions in this module."""

TEXT_MAX = 4 << 20
"""Largest number of bytes of a frame's `text`: a screen of 1000 x 1000 has about one million characters."""

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


def encode(frame: ScreenFrame, agent: int = 0) -> bytes:
    """Returns the bytes of `frame`; `agent`, if it is not 0, takes the place of the one in it."""
    kind, by, number, offset, now, flag, text, blob = frame
    return b"".join((_HEAD.pack(len(text), len(blob), kind, flag, agent or by, number, offset, now), text, blob))


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


_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def _told(value: Any) -> bytes:
    return _JSON.encode(value).encode("utf-8", "replace")


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


def write_opening(opening: Opening) -> bytes:
    """Writes an opening. The profiles for other versions of the program stay here."""
    return pickle.dumps(opening._replace(profile=opening.profile.with_variants({})))


def write_value(value: Any) -> bytes:
    """Writes a value for the process, which trusts the daemon. What comes from the process is never read like this."""
    return pickle.dumps(value)


def read_value(text: bytes) -> Any:
    """Reads what the daemon wrote."""
    return pickle.loads(text)  # noqa: S301 - the daemon wrote it


def flag_of(ask: Ask) -> int:
    """Returns the flag of a frame that asks with `ask`: its text has `Ask.known`, its header the rest."""
    return KINDS * ask.kinds | WHOLE * ask.whole


def as_asked(known: Ask, frame: ScreenFrame) -> Ask:
    """Returns the request that `frame` makes with what is `known`."""
    return replace(known, now=frame.now, kinds=bool(frame.flag & KINDS), whole=bool(frame.flag & WHOLE))


_JUDGED = attrgetter("verdict", "composer", "record", "worked_until", "turn_open", "stopping", "lost", "background")


LOOK = struct.Struct("<6d???4H")
"""The beginning of a look's bytes: `TIMES`; three truths (`mid_frame`, a visible cursor, the alternate screen);
columns, rows, and the cursor's row and column.

It is followed by a byte for each row (1 if it is wrapped), and by two bytes for each row: the number of the same row in
the last reported look, or NEW. The rest is text: the title, each new row after a line break, and the kinds, if they
were requested, after a NUL."""

TIMES = ("changed_at", "steady_at", "still_since", "unreadable_at", "calm_since", "good_until")

NEW = 0xFFFF

_TIMES = attrgetter(*TIMES)


def write_look(look: Look | None, profile: Profile, before: Look | None) -> tuple[bytes, bytes]:
    """Writes a look, without the parts that are the same in `before`, the look that was written last."""
    if look is None:
        return b"", b""
    screen, known = look.screen, None if before is None else before.screen
    judged = None if before is not None and _JUDGED(look) == _JUDGED(before) else _judged(look, profile)
    modes = screen.modes
    told_modes = None if known is not None and modes == known.modes else (list(modes.dec), list(modes.ansi))
    places = {} if known is None else {line: row for row, line in enumerate(known.lines)}
    rows = [places.get(line, NEW) for line in screen.lines]
    new = [line for line, row in zip(screen.lines, rows, strict=True) if row == NEW]
    kinds = "" if look.kinds is None else f"\0{look.kinds}"
    head = LOOK.pack(
        *(*_TIMES(look), look.mid_frame, screen.cursor_visible, screen.alternate),
        *(screen.cols, screen.rows, *screen.cursor),
    )
    words = write_text("\n".join([_clean(screen.title), *new])) + kinds.encode()
    told = b"" if judged is None and told_modes is None else _told_of_screen((judged, told_modes))
    return told, b"".join((head, bytes(screen.wrapped), struct.pack(f"<{screen.rows}H", *rows), words))


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


def write_hello(version: int, rights: Sequence[str]) -> bytes:
    return _told({"version": version, "rights": sorted(rights)})


def write_replies(replies: Sequence[TerminalReply]) -> bytes:
    return _told([(reply.offset, base64.b64encode(reply.data).decode()) for reply in replies]) if replies else b""


def write_witnesses(witnesses: Sequence[Witness]) -> bytes:
    return _told_of_screen([(one.channel, _clean_words(one.says), one.since, one.decides) for one in witnesses])


def write_checkpoint(kept: Checkpoint) -> tuple[bytes, bytes]:
    return _told([kept.offset, kept.cols, kept.rows, kept.state]), kept.redraw


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


def write_failure(error: BaseException) -> bytes:
    """Returns the kind of the error and its place in the code; not its message, which may quote a program's output."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return _told(f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}"[:256])
