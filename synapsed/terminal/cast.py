"""Raw output as an asciicast, version 3: a line of JSON that describes the terminal, then one per piece of output.

Source of the format: https://docs.asciinema.org/manual/asciicast/v3/. Intervals are seconds since the event before.
"""

import codecs
import json
from collections.abc import Iterator, Sequence

PIECE_MAX = 64 * 1024
"""Bytes of output in one event."""


def asciicast(
    output: bytes, start: int, marks: Sequence[tuple[int, float]], *, cols: int, rows: int, title: str
) -> Iterator[str]:
    """The lines of a recording of `output`, which begins at offset `start`. `marks` tell when (Unix seconds) output
    from an offset on came; they are sorted. What is older than the first of them comes at once."""
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
