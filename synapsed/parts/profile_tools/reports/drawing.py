"""Draws the screens of the last part of a program's output again, without private words. Pure.

`main` is a separate program, which has no rights when it draws the output. It reads a JSON document, with the keys that
`drawn` reads, and writes one.
"""

import json
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Any, Final

from synapsectl.plain import PlainText
from synapsed.parts.profile_tools.recorded import CPU_S, Player, believed
from synapsed.parts.profile_tools.reports.frames import EDITS, RESET, DrawnScreen, Redrawing
from synapsed.parts.profile_tools.reports.panes import PaneRow, readings
from synapsed.parts.profile_tools.reports.private_words import FRAMES, PrivateWords, Word
from synapsed.parts.profile_tools.reports.report import CUT, ITEMS_MAX, LABEL, OUTPUT_MAX
from synapsed.terminal.sandboxed import (
    Cell,
    EditingBegan,
    Look,
    Profile,
    ProgressChanged,
    Record,
    ScanEvent,
    Scanner,
    ShellPrompted,
    StatusReported,
    TerminalReset,
    give_up_rights,
    parse_report,
)

LAST: Final = 256 * 1024
"""Bytes of output whose screens are in a report."""
FRAMES_MAX: Final = 1000
CELLS_MAX: Final = 8_000_000
"""Most screens in a report, and most cells of all of them."""
LEARNED_FROM: Final = 200
"""Number of earlier screens that are searched for secrets."""
LINES_FROM: Final = 4 << 20
"""Bytes of output whose lines are searched for secrets."""
FIRST_S: Final = 1.0
"""Seconds between the first screen and the output after it."""
GAP_MAX_S: Final = 600.0
"""Longest pause in the recording; longer ones of the output are shortened."""
SHOWN_MAX: Final = 5000
"""Rows of screens that a person is shown."""
TOLD_MAX: Final = 256
"""Reports of a program between two screens that are kept."""


type _Block = tuple[PaneRow, ...]


@dataclass(frozen=True, slots=True)
class TimedOutput:
    """A recording, as `Player` plays it. `first` is the offset of the part whose screens are in the report."""

    raw: bytes
    record: Mapping[str, Any]
    first: int


def recorded(pieces: Sequence[tuple[float, str]], size: tuple[int, int], now: float) -> TimedOutput:
    """Returns the recording of output that came in pieces, each with its time; it ends at `now`."""
    data = [text.encode("utf-8", "replace") for _, text in pieces]
    most, told, shown = min(FRAMES_MAX, CELLS_MAX // (size[0] * size[1])), 0, 0
    while shown < min(most, len(data)) and (not shown or told + len(data[-1 - shown]) <= LAST):
        shown += 1
        told += len(data[-shown])
    before = len(data) - shown
    chunks, at, offset, past = list[tuple[float, int]](), 0.0, 0, pieces[before][0]
    for number, ((when, _), piece) in enumerate(zip(pieces, data, strict=True)):
        offset += len(piece)
        if number >= before:
            at += (FIRST_S if number == before and before else 0.0) + min(max(0.0, when - past), GAP_MAX_S)
            past = max(past, when)
        if number >= before - LEARNED_FROM:
            chunks.append((round(at, 3), offset))
    end = round(at + min(max(0.001, now - past), GAP_MAX_S), 3)
    record = {"size": size, "chunks": chunks, "marks": [(end, offset, LABEL)]}
    return TimedOutput(b"".join(data), record, offset - told)


class _Masks:
    """Masks screens. Rows that are on many of them are searched once."""

    def __init__(self, words: PrivateWords, cols: int) -> None:
        self._words = words
        self._cols = cols
        self._learned: set[_Block] = set()
        self._private: dict[_Block, Mapping[int, set[int]]] = {}
        """The private cells of the rows of each block."""

    def learn(self, frame: DrawnScreen) -> None:
        self._words.learn(frame.title)
        for _, block in _blocks(frame):
            if block not in self._learned:
                self._learned.add(block)
                for reading in readings(block, self._cols):
                    self._words.learn(reading.text)

    def masked(self, frame: DrawnScreen) -> DrawnScreen:
        """Returns the screen with its private letters masked."""
        rows = list(frame.rows)
        for top, block in _blocks(frame):
            if block not in self._private:
                self._private[block] = self._search(block)
            for row, cells in self._private[block].items():
                rows[top + row] = _over(rows[top + row], cells)
        row, column = frame.now.cursor
        before = bisect_left(_row(frame, row).columns, column)
        typed = "".join(cell.text[0] for cell in frame.rows[row][:before])
        cells = {cell for place in self._words.find(typed) for cell in range(*place)}
        rows[row] = _over(rows[row], cells)
        return replace(frame, rows=rows, title=self._words.mask(frame.title))

    def _search(self, block: _Block) -> Mapping[int, set[int]]:
        found = defaultdict[int, set[int]](set)
        for reading in readings(block, self._cols):
            for place in self._words.find(reading.text):
                for row, start, end in reading.cells(*place):
                    found[row].update(range(start, end))
        return found


def _blocks(frame: DrawnScreen) -> Iterator[tuple[int, _Block]]:
    """Yields each block of consecutive rows with text, and the place of its first row."""
    block: list[PaneRow] = []
    for at in range(len(frame.rows) + 1):
        row = _row(frame, at) if at < len(frame.rows) else None
        if row is not None and row.letters.strip():
            block.append(row)
        elif block:
            yield at - len(block), tuple(block)
            block = []


def _row(frame: DrawnScreen, at: int) -> PaneRow:
    cells = frame.rows[at]
    letters = "".join([cell.text[0] for cell in cells])
    return PaneRow.of(letters, [cell.width for cell in cells], wrapped=frame.now.wrapped[at])


def _over(cells: Sequence[Cell], private: set[int]) -> Sequence[Cell]:
    """Returns a row whose private letters are masked."""
    return [
        replace(cell, text="x" if cell.width == 1 else "〓")
        if at in private and not cell.text.isspace() and cell.text not in FRAMES
        else cell
        for at, cell in enumerate(cells)
    ]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A screen of the output up to `end`, with the program's reports since the screen before, and the look at it."""

    end: int
    frame: DrawnScreen
    events: Sequence[ScanEvent]
    look: Look


def _screens(profile: Profile, output: TimedOutput) -> Iterator[_Seen]:
    """Yields each screen that the output draws, and the last one."""
    player, scanner, offset = Player(profile, output.record, output.raw), Scanner(), 0
    for each in player.play():
        end, now = player.observer.offset, each.look.screen
        if end > offset or each.mark is not None:
            rows = [player.observer.screen.row_cells(row) for row in range(now.rows)]
            title = "".join(letter if letter.isprintable() else " " for letter in now.title)
            yield _Seen(end, DrawnScreen(each.at, now, rows, title), scanner.feed(output.raw[offset:end]), each.look)
            offset = end


def _reports(events: Iterable[ScanEvent], words: PrivateWords) -> Iterator[bytes]:
    """Yields the program's reports of its state, without their texts."""
    for event in events:
        match event:
            case StatusReported(_, body) if (record := parse_report(body)) is not None:
                state = record.state if isinstance(record, Record) else "clear"
                named: dict[str, object] = {"id": words.mask(record.id), "app": words.mask(record.app or "")}
                if isinstance(record, Record):
                    named |= {"kind": record.kind, "progress": record.progress}
                rest = "".join(f":{key}={value}" for key, value in named.items() if value not in (None, ""))
                yield f"\x1b]7501;state={state}{rest}\x07".encode()
            case ProgressChanged(_, state, percent):
                yield b"\x1b]9;4;%d;%d\x07" % (state.value, percent or 0)
            case TerminalReset():
                yield RESET
            case ShellPrompted():
                yield b"\x1b]133;A\x07"
            case EditingBegan():
                yield EDITS


def drawn(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the recording, the beliefs at its end, and the `texts` of `asked`, all masked; and the counts of masked
    texts. Texts are cut, except the person's words (`says`), whose length the tool has checked. `drawn` is True if the
    last screen is `asked["screen"]`, None if that is not known; `altered` is True if the masked screens are read
    differently from the output itself."""
    profile, size = Profile.model_validate(asked["profile"]), (asked["size"][0], asked["size"][1])
    output = recorded(asked["pieces"], size, asked["now"])
    words, plain = PrivateWords(Word(*word) for word in asked["words"]), PlainText()
    masks = _Masks(words, size[0])
    seen = list(_screens(profile, output))
    for each in reversed(seen):
        masks.learn(each.frame)
    words.learn("\n".join([*plain.feed(output.raw[-LINES_FROM:]), *plain.flush()]))
    frames = [masks.masked(frame) for frame in _shown(seen, output.first, words)]
    pieces = _pieces(frames)
    raw, ends = b"".join(data for _, data in pieces), accumulate(len(data) for _, data in pieces)
    chunks = [(at, end) for (at, _), end in zip(pieces, ends, strict=True)]
    marks = [(at, len(raw), label) for at, _, label in output.record["marks"]]
    record = {"size": size, "chunks": chunks, "marks": marks}
    again = next(each.look for each in Player(profile, record, raw).play() if each.mark is not None)
    before, after = believed(profile, seen[-1].look), believed(profile, again)
    lines = [line.rstrip() for line in again.screen.lines]
    exact = lines == ["".join(cell.text for cell in row).rstrip() for row in frames[-1].rows]
    screen = asked.get("screen")
    return {
        "output": [(at, data.decode()) for at, data in pieces],
        "end": marks[0][0],
        "lines": "\n".join(lines).rstrip("\n").split("\n"),
        "seen": list(dict.fromkeys(row for frame in frames for row in _texts(frame) if row))[:SHOWN_MAX],
        "reads": cut(words.mask_json({**after, "evidence": again.verdict.evidence})),
        "altered": any(before[key] != after[key] for key in ("activity", "composer")),
        "drawn": exact and (None if screen is None else _same(screen, seen[-1].frame)),
        "masked": words.counts,
        "full": words.full,
        "texts": {key: cut(words.mask_json(value)) for key, value in asked["texts"].items()},
        "says": words.mask(asked.get("says") or ""),
    }


def _shown(seen: Sequence[_Seen], first: int, words: PrivateWords) -> Iterator[DrawnScreen]:
    """Yields the screens from offset `first` on, beginning with the one that was shown at that time."""
    told = dict[bytes, None]()
    for each, following in zip(seen, [*seen[1:], None], strict=True):
        for report in _reports(each.events, words):
            told.pop(report, None)
            told[report] = None
        if following is None or following.end > first:
            yield replace(each.frame, told=[*told][-TOLD_MAX:])
            told.clear()


def _pieces(frames: Sequence[DrawnScreen]) -> list[tuple[float, bytes]]:
    """Returns the bytes that draw the screens, each with its time; if there are too many bytes, only those of the last
    screens."""
    while True:
        drawing = Redrawing()
        pieces = [(frame.at, data) for frame in frames if (data := drawing.draw(frame))]
        if sum(len(data) for _, data in pieces) <= OUTPUT_MAX or len(frames) == 1:
            return pieces
        frames = frames[len(frames) // 2 :]


def _texts(frame: DrawnScreen) -> Iterator[str]:
    return ("".join(cell.text for cell in row).rstrip() for row in frame.rows)


def _same(screen: str, frame: DrawnScreen) -> bool:
    return "".join(screen.split()) == "".join("".join(_texts(frame)).split())


def readable(value: Any) -> Any:
    """Returns JSON in which bytes that are no UTF-8, in a variable of the environment for one, are written as a
    terminal shows them."""
    if isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        except UnicodeEncodeError:  # half of a letter of UTF-16
            return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {readable(key): readable(item) for key, item in value.items()}
    return [readable(item) for item in value] if isinstance(value, list | tuple) else value


def cut(value: Any) -> Any:
    """Returns JSON in which long texts and lists are cut."""
    if isinstance(value, str):
        return value[:CUT]
    if isinstance(value, Mapping):
        return {key[:CUT]: cut(item) for key, item in islice(value.items(), ITEMS_MAX)}
    return [cut(item) for item in value[:ITEMS_MAX]] if isinstance(value, list | tuple) else value


def main() -> int:
    asked = readable(json.load(sys.stdin))
    give_up_rights(cpu_s=CPU_S)
    json.dump(drawn(asked), sys.stdout)
    return 0
