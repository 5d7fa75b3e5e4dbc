"""Reads and checks the replies of a process of screens, because hostile output may have taken over that process: types,
sizes, and control characters, which would reach a person's terminal."""

import base64
import binascii
import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from synapsed.errors import TooLarge
from synapsed.model.agent import Activity
from synapsed.model.facts import BACKGROUND_MAX
from synapsed.model.picture import Glyph, Ink, Picture, Rows, Shown
from synapsed.model.records import Checkpoint
from synapsed.model.task import Prompt
from synapsed.profiles.profile import Profile
from synapsed.screens.protocol import (
    CONTROLS,
    CONTROLS_BUT_BREAKS,
    LOOK,
    NEW,
    SIZE_MAX,
    TIMES,
    ScreenFrame,
    ScreenFrameError,
)
from synapsed.terminal.composer import ComposerState
from synapsed.terminal.explain import Witness
from synapsed.terminal.look import Look, TerminalReply
from synapsed.terminal.menu_keys import Menu, MenuWindow
from synapsed.terminal.menu_rows import MenuOption
from synapsed.terminal.prompts import PAUSE, Asked
from synapsed.terminal.queries import is_answer
from synapsed.terminal.screen_messages import LinesRead, Redraw
from synapsed.terminal.snapshot import Modes, ScreenSnapshot
from synapsed.terminal.verdict import Verdict
from synapsed.terminal.viewer_filter import ViewerFilter

LINE_MAX = 1 << 16
"""Largest number of characters of a row."""

type _Line = Annotated[str, StringConstraints(max_length=LINE_MAX, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
type _Words = Annotated[str, StringConstraints(max_length=1 << 18, pattern=r"^[^\x00-\x09\x0b-\x1f\x7f-\x9f]*$")]
type _Count = Annotated[int, Field(ge=0, le=1 << 62)]
type _Cell = Annotated[int, Field(ge=0, lt=SIZE_MAX)]
type _Size = Annotated[int, Field(ge=1, le=SIZE_MAX)]
type _Time = Annotated[float, Field(allow_inf_nan=False)]
type _Rgb = tuple[
    Annotated[int, Field(ge=0, le=255)], Annotated[int, Field(ge=0, le=255)], Annotated[int, Field(ge=0, le=255)]
]
type _Lines = Annotated[tuple[_Line, ...], Field(max_length=SIZE_MAX)]


def _read[T](reader: TypeAdapter[T], text: bytes) -> T:
    """Parses `text`. Raises ScreenFrameError."""
    try:
        return reader.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]  # without the input, which may have a secret
        raise ScreenFrameError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


type _Modes = Annotated[frozenset[int], Field(max_length=64)]


type _WireOption = tuple[_Line, _Line, _Cell, _Cell]


class _WireWindow(NamedTuple):
    buttons: Annotated[tuple[_WireOption, ...], Field(min_length=1, max_length=SIZE_MAX)]
    focus: _Cell | None
    radio: bool
    field: bool
    typed: _Line
    hides: bool


class _WireMenu(NamedTuple):
    asked: _Lines
    options: Annotated[tuple[_WireOption, ...], Field(max_length=SIZE_MAX)]
    marked: Annotated[int, Field(ge=-1, le=SIZE_MAX)]
    start: _Count
    stop: _Count
    across: bool
    ticks: bool
    tick: Literal["space", "right"]
    window: _WireWindow | None


class _WireAsked(NamedTuple):
    prompt: Prompt
    dialog: _Count | None
    """Index of the profile's dialog; the index after the last is `PAUSE`. It is an index so that the keys to type for
    an answer never come from the process."""
    for_words: Annotated[tuple[_Line, ...], Field(max_length=SIZE_MAX)]
    doubtful: bool
    menu: _WireMenu | None


class _WireVerdict(NamedTuple):
    activity: Activity
    evidence: _Words
    source: _Line
    settled: bool
    lacks_composer: bool


class _WireComposer(NamedTuple):
    state: Literal["empty", "draft", "absent"]
    text: _Words
    row: _Cell | None
    prompt: _Words
    learned: bool


class _WireJudged(NamedTuple):
    verdict: _WireVerdict
    asked: _WireAsked | None
    composer: _WireComposer
    record: _Line | None
    worked_until: _Count
    turn_open: bool
    stopping: bool
    lost: bool
    background: Annotated[tuple[_Line, ...], Field(max_length=BACKGROUND_MAX)]


_CHANGED = TypeAdapter(tuple[_WireJudged | None, tuple[_Modes, _Modes] | None])
"""The parts of a look that are sent only if they have changed since the last one."""


def read_look(frame: ScreenFrame, profile: Profile, before: Look | None) -> Look | None:
    """Reads a look; `before` is the last one. Returns None if the process has sent none. Raises ScreenFrameError."""
    if not frame.blob:
        return None
    judged, told_modes = _read(_CHANGED, frame.text) if frame.text else (None, None)
    known = None if before is None else before.screen
    modes = Modes(*told_modes) if told_modes is not None else known.modes if known is not None else None
    try:
        *times, mid_frame, visible, alternate, cols, rows, row, column = LOOK.unpack_from(frame.blob)
        places = struct.unpack_from(f"<{rows}H", frame.blob, LOOK.size + rows)
    except struct.error:
        raise ScreenFrameError("a look that ends too early") from None
    if not (0 < cols <= SIZE_MAX and 0 < rows <= SIZE_MAX and row < rows and column < cols):
        raise ScreenFrameError("a screen of an impossible size, or with its cursor beside it")
    if modes is None or not math.isfinite(sum(times)):
        raise ScreenFrameError("a look without modes, or at no time")
    wrapped = tuple(map(bool, frame.blob[LOOK.size : LOOK.size + rows]))
    text, with_kinds, kinds = frame.blob[LOOK.size + 3 * rows :].partition(b"\0")
    title, lines = _read_rows(_text(text), places, () if known is None else known.lines)
    shown = (cols, rows, lines, wrapped, (row, column), visible, alternate, title, modes)
    screen = ScreenSnapshot(*shown, (255, 255, 255), (0, 0, 0), b"")
    return Look(
        **_read_judged(judged, profile, before),
        **dict(zip(TIMES, times, strict=True)),
        mid_frame=mid_frame,
        screen=screen,
        offset=frame.offset,
        kinds=_read_kinds(kinds, screen) if with_kinds else None,
    )


def _read_rows(text: str, places: Sequence[int], known: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Returns the title and the rows, each from `text` or from its place in `known`."""
    new = text.split("\n")[::-1]
    title = new.pop()
    try:
        lines = tuple([new.pop() if place == NEW else known[place] for place in places])
    except IndexError:
        raise ScreenFrameError("a row that was not told") from None
    if new or max(map(len, (title, *lines))) > LINE_MAX:
        raise ScreenFrameError("more rows than there are, or a row that is too long")
    return title, lines


def _read_judged(told: _WireJudged | None, profile: Profile, before: Look | None) -> dict[str, Any]:
    """Returns the fields of `_WireJudged` for a look; from the look `before` if they have not changed."""
    if told is not None:
        judged = told._asdict()
        asked: _WireAsked | None = judged.pop("asked")
        verdict = Verdict(asked=None if asked is None else _read_asked(asked, profile), **told.verdict._asdict())
        return {**judged, "verdict": verdict, "composer": ComposerState(*told.composer)}
    if before is None:
        raise ScreenFrameError("a look without a verdict")
    return {name: getattr(before, name) for name in _WireJudged._fields if name != "asked"}


def _read_kinds(blob: bytes, screen: ScreenSnapshot) -> str:
    kinds = blob.decode("ascii", "replace")
    if [len(line) for line in kinds.split("\n")] != [len(line) for line in screen.text().split("\n")]:
        raise ScreenFrameError("kinds of other characters than there are")
    return kinds


def _options(told: tuple[_WireOption, ...]) -> tuple[MenuOption, ...]:
    return tuple(MenuOption(*option) for option in told)


def _read_asked(told: _WireAsked, profile: Profile) -> Asked:
    dialogs, menu = [*profile.prompts.dialogs, PAUSE], told.menu
    if told.dialog is not None and told.dialog >= len(dialogs):
        raise ScreenFrameError("a dialog that the profile has not")
    window = None if menu is None else menu.window
    if menu is not None and not (-1 if window else 0) <= menu.marked < max(len(menu.options), 1 if window else 0):
        raise ScreenFrameError("a menu with a mark beside its options")
    if window is not None and (window.focus or 0) >= len(window.buttons):
        raise ScreenFrameError("a window with its focus beside its buttons")
    prompt = told.prompt
    words = (prompt.prompt_id, prompt.prompt, prompt.default or "", *(one.key + one.label for one in prompt.options))
    if any(map(CONTROLS_BUT_BREAKS.search, words)):
        raise ScreenFrameError("a prompt with control characters")
    return Asked(
        prompt=told.prompt,
        dialog=None if told.dialog is None else dialogs[told.dialog],
        for_words=told.for_words,
        doubtful=told.doubtful,
        menu=None
        if menu is None
        else Menu(
            asked=menu.asked,
            options=_options(menu.options),
            marked=menu.marked,
            rows=range(min(menu.start, SIZE_MAX), min(menu.stop, SIZE_MAX)),
            across=menu.across,
            ticks=menu.ticks,
            tick=menu.tick,
            window=None if window is None else MenuWindow(_options(window.buttons), *window[1:]),
        ),
    )


class ProcessHello(TypedDict):
    version: int
    rights: list[_Line]
    """Names of the protections that took effect (`process.sandbox`)."""


_HELLO = TypeAdapter(ProcessHello)


_REPLIES = TypeAdapter(
    Annotated[tuple[tuple[_Count, Annotated[str, Field(max_length=1 << 16)]], ...], Field(max_length=1024)]
)


_WITNESSES = TypeAdapter(Annotated[tuple[tuple[_Line, _Words, _Time | None, bool], ...], Field(max_length=64)])


def read_hello(frame: ScreenFrame) -> ProcessHello:
    """Reads a greeting. Raises ScreenFrameError."""
    return _read(_HELLO, frame.text)


_FAILURE = TypeAdapter(Annotated[_Line, Field(max_length=256)])


def read_failure(frame: ScreenFrame) -> str:
    """Returns the kind of the error that ended the process, and its place in the code. Raises ScreenFrameError."""
    return _read(_FAILURE, frame.text)


def read_replies(text: bytes, upto: int) -> tuple[TerminalReply, ...]:
    """Reads the terminal's replies to queries of the program. Raises ScreenFrameError for a reply that no terminal
    would give, because replies are typed into the program."""
    if not text:
        return ()
    try:
        replies = tuple(
            TerminalReply(offset, base64.b64decode(data, validate=True)) for offset, data in _read(_REPLIES, text)
        )
    except binascii.Error:
        raise ScreenFrameError("an answer to a query that is no base64") from None
    if not all(is_answer(reply.data) and reply.offset <= upto for reply in replies):
        raise ScreenFrameError("an answer to a query that no terminal gives")
    return replies


def read_witnesses(frame: ScreenFrame) -> list[Witness]:
    """Reads the witnesses of `explain`. Raises ScreenFrameError."""
    return [Witness(*one) for one in _read(_WITNESSES, frame.text)]


_CHECKPOINT = TypeAdapter(tuple[_Count, _Size, _Size, dict[str, Any]])


def read_checkpoint(frame: ScreenFrame) -> Checkpoint:
    """Reads a checkpoint. Raises ScreenFrameError."""
    offset, cols, rows, state = _read(_CHECKPOINT, frame.text)
    if offset > frame.offset:
        raise ScreenFrameError("a checkpoint of output that there is not")
    return Checkpoint(offset=offset, cols=cols, rows=rows, redraw=frame.blob, state=state)


def read_text(frame: ScreenFrame) -> str:
    """Reads a text. Raises ScreenFrameError."""
    return _text(frame.blob)


def _text(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    if CONTROLS_BUT_BREAKS.search(text):
        raise ScreenFrameError("a text with control characters")
    return text


def read_lines(frame: ScreenFrame) -> LinesRead:
    """Reads the lines of an answer. Raises ScreenFrameError."""
    if not frame.text.isdigit() or len(frame.text) > 9:
        raise ScreenFrameError("no count of lines")
    return LinesRead(read_text(frame), int(frame.text))


class _WireInk(NamedTuple):
    foreground: _Rgb
    background: _Rgb | None
    bold: bool
    italic: bool
    underline: Annotated[int, Field(ge=0, le=5)]
    underline_color: _Rgb | None
    strikethrough: bool
    overline: bool


class _WirePicture(NamedTuple):
    cols: _Size
    rows: _Size
    title: _Line
    foreground: _Rgb
    background: _Rgb
    cursor: tuple[_Cell, _Cell] | None
    inks: Annotated[tuple[_WireInk, ...], Field(max_length=SIZE_MAX * SIZE_MAX)]
    lines: Annotated[
        tuple[
            tuple[
                tuple[Annotated[str, StringConstraints(min_length=1, max_length=64)], _Cell, Literal[1, 2], _Count], ...
            ],
            ...,
        ],
        Field(max_length=SIZE_MAX),
    ]


class _WireDocument(TypedDict):
    cols: _Size
    rows: _Size
    lines: Annotated[list[_Line], Field(max_length=SIZE_MAX)]
    cursor: dict[Literal["row", "col", "visible"], int]
    title: _Line
    alternate: bool


_PICTURE, _DOCUMENT = TypeAdapter(_WirePicture), TypeAdapter(_WireDocument)


def read_document(text: bytes) -> dict[str, Any]:
    document = _read(_DOCUMENT, text)
    cursor = document["cursor"]
    return {**document, "cursor": {**cursor, "visible": bool(cursor["visible"])}}


def read_picture(text: bytes) -> Picture:
    told = _read(_PICTURE, text)
    inks = [Ink(*ink) for ink in told.inks]
    if len(told.lines) > told.rows:
        raise ScreenFrameError("a picture with more rows than it says")
    lines = []
    for line in told.lines:
        if any(ink >= len(inks) or col + width > told.cols for _, col, width, ink in line):
            raise ScreenFrameError("a picture with glyphs beside it")
        if any(CONTROLS.search(glyph[0]) for glyph in line):
            raise ScreenFrameError("a picture with control characters")
        lines.append(tuple(Glyph(glyph, col, width, inks[ink]) for glyph, col, width, ink in line))
    cursor = (
        told.cursor if told.cursor is not None and told.cursor[0] < told.rows and told.cursor[1] < told.cols else None
    )
    return Picture(told.cols, told.rows, told.title, told.foreground, told.background, cursor, tuple(lines))


type _Color = Annotated[str, StringConstraints(pattern=r"^(#[0-9a-f]{6})?$")]
type _Wide = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
type _Text = _Line | Annotated[tuple[_Wide, ...], Field(max_length=SIZE_MAX)]
type _Flags = Annotated[int, Field(ge=0, le=255)]
type _Run = (
    tuple[_Size, _Text]
    | tuple[_Size, _Text, _Color]
    | tuple[_Size, _Text, _Color, _Color]
    | tuple[_Size, _Text, _Color, _Color, _Flags]
    | tuple[_Size, _Text, _Color, _Color, _Flags, _Color]
)


class _WireRows(NamedTuple):
    cols: _Size
    rows: _Size
    title: _Line
    foreground: _Color
    background: _Color
    cursor: tuple[_Cell, _Cell] | None
    lines: Annotated[
        tuple[Annotated[str, StringConstraints(max_length=1 << 18, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")], ...],
        Field(max_length=SIZE_MAX),
    ]


_ROWS, _RUNS = TypeAdapter(_WireRows), TypeAdapter(Annotated[tuple[_Run, ...], Field(max_length=SIZE_MAX)])

ROWS_KNOWN = 2048
"""Number of checked rows whose result is remembered: most rows of a screen stay the same."""


@lru_cache(maxsize=ROWS_KNOWN)
def _columns(line: str) -> int:
    """Returns the number of columns of the row, after checking it. Raises ScreenFrameError."""
    return sum(run[0] for run in _read(_RUNS, line.encode()))


def read_rows(text: bytes) -> Rows:
    """Reads the rows of a screen for the web page. Raises ScreenFrameError."""
    told = _read(_ROWS, text)
    if len(told.lines) > told.rows or any(_columns(line) > told.cols for line in told.lines):
        raise ScreenFrameError("a row of a page beside it")
    cursor = told.cursor
    within = cursor is not None and cursor[0] < told.rows and cursor[1] < told.cols
    return Rows(*told[:5], cursor if within else None, told.lines)


_PENDING = TypeAdapter(_Count)


def _for_terminals(redraw: bytes) -> bytes:
    """Filters a redraw by the filter for programs' output at a person's terminal, which leaves drawing unchanged."""
    return ViewerFilter().feed(redraw)


def read_redraw(frame: ScreenFrame) -> Redraw:
    """Reads a redraw: the bytes of the screen, and an unfinished sequence after them. Raises ScreenFrameError."""
    pending = _read(_PENDING, frame.text)
    if pending > len(frame.blob):
        raise ScreenFrameError("more of an unfinished sequence than there is")
    drawn = len(frame.blob) - pending
    return Redraw(_for_terminals(frame.blob[:drawn]), frame.blob[drawn:], frame.offset)


def read_redrawn(frame: ScreenFrame) -> bytes:
    return _for_terminals(frame.blob)


def read_shown(form: str, frame: ScreenFrame) -> Shown | TooLarge:
    """Reads a screen in the requested form; TooLarge if the process could not send it. Raises ScreenFrameError."""
    match form:
        case "picture" | "rows" if frame.flag:
            return TooLarge("the screen is too large for a picture: make its window smaller, or ask for its text")
        case "json":
            return read_document(frame.text)
        case "picture":
            return read_picture(frame.text)
        case "rows":
            return read_rows(frame.text)
        case "ansi" | "coloured":
            return read_redrawn(frame)
    return read_text(frame)
