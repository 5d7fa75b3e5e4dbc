"""Reports as they might come, screens that are drawn again, and the output of an agent as the daemon gives it."""

import codecs
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synapsed.parts.profile_tools.reports import drawing, report_verb
from synapsed.parts.profile_tools.reports.private_words import Word
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile

__all__ = ["BEGAN", "KEY", "PI", "cast", "document", "drawn", "of_pi", "output", "pieces_of", "shown"]

RECORDINGS = Path(__file__).parents[3] / "recordings"
BEGAN = 1_700_000_000.0
KEY = "sk-ant-api03-AbCd1234EfGh5678IjKl9012MnOp"
PI = ProfileLibrary.builtin().get("pi")


def document() -> dict[str, Any]:
    """One with all that it must have."""
    return {
        "synapsed_report": 1,
        "made": "2026-01-02T03:04:05+00:00",
        "profile_name": "claude",
        "versions": {"synapsed": "0.1.0", "program": "2.1.330"},
        "recording": {
            "size": [120, 40],
            "start": "launch",
            "output": [[0.0, "hello"]],
            "end": 1.0,
            "reads": {"activity": "busy", "composer": "absent", "evidence": "x"},
            "screen": ["hello"],
        },
        "profile": {},
        "masked": {},
    }


def drawn(pieces: str | Sequence[str], *words: Word, size: tuple[int, int] = (60, 12), **asked: Any) -> dict[str, Any]:
    """What becomes of output that came in pieces, a second after each other."""
    parts = [pieces] if isinstance(pieces, str) else pieces
    given = {
        "profile": PI.model_dump(mode="json", exclude_none=True),
        "size": size,
        "pieces": [(BEGAN + number, part) for number, part in enumerate(parts)],
        "now": BEGAN + len(parts) + 5,
        "words": words,
        "texts": {},
        **asked,
    }
    found = drawing.drawn(json.loads(json.dumps(given)))
    assert found["drawn"] is not False
    return found


def output(found: Mapping[str, Any]) -> str:
    return "".join(text for _, text in found["output"])


def shown(found: Mapping[str, Any]) -> str:
    """All that stands on its last screen, without frames and blanks."""
    return "".join(letter for line in found["lines"] for letter in line if letter not in " │")


def pieces_of(chunks: Sequence[tuple[float, int]], raw: bytes) -> list[tuple[float, str]]:
    """The pieces in which output came, as a recording of the daemon has them."""
    decoder, starts = codecs.getincrementaldecoder("utf-8")("replace"), [0, *(offset for _, offset in chunks)]
    return [
        (at, decoder.decode(raw[start:offset]))
        for (at, offset), start in zip(chunks, starts, strict=False)
        if start < len(raw)
    ]


def cast(pieces: Sequence[tuple[float, str]], cols: int = 120, rows: int = 40) -> str:
    head = {"version": 3, "term": {"cols": cols, "rows": rows}, "timestamp": int(pieces[0][0]), "title": "x"}
    lines, before = [json.dumps(head)], pieces[0][0]
    for at, text in pieces:
        lines.append(json.dumps([round(at - before, 3), "o", text], ensure_ascii=False))
        before = at
    return "".join(f"{line}\n" for line in lines)


def of_pi(profile: Profile = PI, *, before: str = "", environ: Mapping[str, str] = {}, **body: Any) -> dict[str, Any]:
    """The report of an agent whose program, pi, works, and has written `before` at first."""
    recorded = json.loads((RECORDINGS / "pi-0.74.2" / "delayed.json").read_text())
    raw = (RECORDINGS / "pi-0.74.2" / "delayed.raw").read_bytes()
    end = next(offset for _, offset, label in recorded["marks"] if label == "busy")
    pieces = [(BEGAN, before)] if before else []
    pieces += [(BEGAN + at, text) for at, text in pieces_of(recorded["chunks"], raw[:end])]
    status = {
        "name": "pi",
        "type": "pi",
        "state": "exited",
        "activity": "ready",
        "evidence": "composer: empty",
        "version": "0.74.2",
        "pid": None,
    }
    status |= body.pop("status", {})
    given = {"status": status, "cast": cast(pieces), "limit": 8 << 20, "says": None, "should_be": None, "words": []}
    return report_verb.report({**given, **body}, profile, {"HOME": "/home/jane", **environ})
