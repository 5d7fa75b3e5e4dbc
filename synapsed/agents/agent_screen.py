"""The screen and the output of an agent's program, now or at its end: as text, as raw bytes, and as a recording.

A recording is an asciicast, version 3: a line of JSON that describes the terminal, then one line for each piece of
output. Intervals are seconds since the event before. Source: https://docs.asciinema.org/manual/asciicast/v3/.
"""

import asyncio
import codecs
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from synapsed.agents.agent_process import AgentProcess
from synapsed.agents.last_screen import last_screen
from synapsed.interfaces import AgentLink, OutputPiece, Store
from synapsed.keeper.spool import SpoolReader
from synapsed.keepers.launch_plan import LinkFactory
from synapsed.model.agent import ProcessState
from synapsed.model.picture import ScreenForm, Shown
from synapsed.pty.output_times import TIMES_FILE, OutputTimes

SCREEN_KEPT = 20_000
"""Characters of the last screen kept after the program ended, so that a person sees why."""


class AgentScreen:
    """Shows the screen and the output of an agent. `spool` holds the output of its launches."""

    def __init__(self, process: AgentProcess, *, store: Store, factory: LinkFactory, spool: Path) -> None:
        self._process = process
        self._store = store
        self._factory = factory
        self._spool = spool
        self._last = ""

    async def keep(self, link: AgentLink) -> None:
        """Keeps the screen of a program that is about to end, or has ended, until another one runs."""
        self._last = await last_screen(link, SCREEN_KEPT)

    async def text(self, limit: int | None = None) -> str:
        """Returns the text on the screen, or the last one."""
        if (link := self._process.link) is not None:
            return await link.terminal.screen_text(limit)
        if not self._last and self._process.state is ProcessState.PARKED:  # parked by the last daemon
            was = await self._store.checkpoint(self._process.record.id)
            self._last = "" if was is None else str(await self._factory.kept(was, "scrollback"))[-SCREEN_KEPT:]
        return self._last[-limit:] if limit else self._last

    async def shown(self, fmt: ScreenForm) -> Shown:
        """Implements `Control.screen`. Raises NotReady for an ended program that is not parked, except for its text."""
        if (link := self._process.link) is not None:
            return await link.terminal.screen_as(fmt)
        parked = self._process.state is ProcessState.PARKED
        if parked and (was := await self._store.checkpoint(self._process.record.id)) is not None:
            return await self._factory.kept(was, fmt)
        if fmt == "text" and self._last:
            return self._last
        raise self._process.not_running()

    async def output(self, start: int | None, limit: int) -> OutputPiece:
        over = self._process.state in (ProcessState.STOPPED, ProcessState.EXITED, ProcessState.FAILED)
        begin, data = await asyncio.to_thread(_read_output, self._spool, start, limit)
        return OutputPiece(begin, data, ended=over and not data)

    async def recording(self, limit: int) -> str:
        record = self._process.record
        size = {"cols": record.cols, "rows": record.rows}
        return await asyncio.to_thread(_recording, self._spool, limit, **size, title=record.name)


def _read_output(spool: Path, start: int | None, limit: int) -> tuple[int, bytes]:
    """Returns the offset and at most `limit` bytes from there on, up to a gap; `start` None: the last `limit` bytes.
    Blocks on the disk, as does `_recording`."""
    reader = SpoolReader(str(spool))
    wanted = reader.end - limit if start is None else min(start, reader.end)
    begin = offset = max(reader.start, wanted)
    pieces: list[bytes] = []
    while offset < min(reader.end, begin + limit):
        at, data = reader.read(offset, begin + limit - offset)
        if not data or (at != offset and pieces):
            break
        begin = begin if pieces else at
        pieces.append(data)
        offset = at + len(data)
    return begin, b"".join(pieces)


def _recording(spool: Path, limit: int, *, cols: int, rows: int, title: str) -> str:
    """Returns the last `limit` bytes as an asciicast, with the times at which they came."""
    start, data = _read_output(spool, None, limit)
    times = OutputTimes(spool.parent / TIMES_FILE)
    return "".join(asciicast(data, start, times.read(), cols=cols, rows=rows, title=title))


PIECE_MAX = 64 * 1024
"""Largest number of bytes of output in one event."""


def asciicast(
    output: bytes, start: int, marks: Sequence[tuple[int, float]], *, cols: int, rows: int, title: str
) -> Iterator[str]:
    """Yields the lines of a recording of `output`, which begins at offset `start`. `marks` pair an offset with the time
    (Unix seconds) of the output from there on; they are sorted. Output before the first mark comes at once."""
    known = [(max(offset, start), at) for offset, at in marks if offset < start + len(output)]
    older = [at for offset, at in known if offset == start]
    began = older[-1] if older else known[0][1] if known else 0.0
    cuts = [(start, began), *((offset, at) for offset, at in known if offset > start)]
    term = {"cols": cols, "rows": rows, "type": "xterm-256color"}
    yield _line({"version": 3, "term": term, "timestamp": int(began), "title": title})
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    now = began
    ends = [offset for offset, _ in cuts[1:]] + [start + len(output)]
    for (offset, at), end in zip(cuts, ends, strict=True):
        for place in range(offset - start, end - start, PIECE_MAX):
            text = decoder.decode(output[place : min(place + PIECE_MAX, end - start)])
            if text:
                pause, now = max(0.0, at - now), max(now, at)
                yield _line([round(pause, 3), "o", text])


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
