"""What an agent's program wrote, from the spool: there whatever becomes of program and keeper. Blocks on the disk."""

from pathlib import Path

from synapsed.keeper.spool import SpoolReader
from synapsed.pty.output_times import TIMES_FILE, OutputTimes
from synapsed.terminal.cast import asciicast


def read_output(spool: Path, start: int | None, limit: int) -> tuple[int, bytes]:
    """The offset where it begins, and at most `limit` bytes from there on, up to a gap; `start` None: the last ones."""
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


def recording(spool: Path, limit: int, *, cols: int, rows: int, title: str) -> str:
    """The last `limit` bytes as an asciicast, with the times at which they came."""
    start, data = read_output(spool, None, limit)
    times = OutputTimes(spool.parent / TIMES_FILE)
    return "".join(asciicast(data, start, times.read(), cols=cols, rows=rows, title=title))
