"""Finds blocks outside of fenced code, line by line: JSON documents, errors and references to files.

A JSON document begins on a line of its own, ends at a line's end and has no blank line in it; an error is a line that
begins with a word for one, with the indented lines below it, or a Python traceback. All other lines are text. A
reference stays in its text, and its block follows the text.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from synapsed.model.task import BlockKinds
from synapsed.shared.regex import regex

DEPTH_MAX = 100
"""Most levels of brackets in a JSON document; a deeper one is text."""

_JSON_BEGINS = regex(r" {0,3}(?:\{\s*(?:[\"}]|$)|\[\s*(?:[\"{\[\]tfn\d-]|$))")
_JSON_NUMBERS = regex(r"[\s\d,.\[\]-]*")
"""Brackets with only numbers, such as `[1]` and `[1, 2]`: these are more likely footnotes."""
_STRING = regex(r"\"(?:[^\"\\]|\\.?)*+(?:\"|$)")
"""A string; one that is not closed runs to the line's end, so that the rest of the line is not searched again and
again."""

_TRACEBACK = regex(r" {0,3}Traceback \(most recent call last\):\s*")
_TRACEBACK_ENDS = regex(r" {0,3}(?:\w+\.)*(?P<code>[A-Za-z_]\w*)(?::|$)")
_SIGN = r" {0,3}(?:[✗✘✖❌⛔×]\ufe0f? *)?(?:\*\*)?"
_ERROR = regex(
    _SIGN + r"(?:(?:\w+\.)*(?P<type>[A-Z]\w*(?:Error|Exception))"
    r"|(?P<word>(?i:fatal error|error|fatal|panic)|エラー)"
    r"(?:\[(?P<tag>\w+)\]| \((?P<named>[A-Z][A-Z0-9_]*|\d{3})\)| (?P<number>\d{3}))?)"
    r"(?:\*\*)?(?::(?:\*\*)?(?:\s|$)|\uff1a)"
)

_VERB = regex(
    r"\s*(?:[-*+•●⎿└✓✔✅]\ufe0f?\s+|\d+[.)]\s+)*(?:\*\*)?(?i:created|wrote)(?:\*\*)?:(?:\*\*)?\s*"
    r"(?:(?P<path>`[^`]+`|\"[^\"]+\"|'[^']+'|\S+)(?:\s+\(.*\))?|(?P<rooted>(?:\.{0,2}/|~/|[A-Za-z]:\\).*))\s*"
)
_NOTE = regex(r"\s\(")
_BRACKET = regex(r"\[File:(?P<path>[^\]\n]*+)(?P<closed>\])?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of an answer (S2). `type` is `text`, `code`, `file` or `data`; `data` is a JSON document's value."""

    type: Literal["text", "code", "file", "data"]
    name: str
    text: str
    data: Any = None
    metadata: dict[str, Any] | None = None


class PlainReader:
    """Takes lines and yields blocks as soon as they are complete. The text around them becomes a block when another
    block begins, and at the end."""

    def __init__(self, kinds: BlockKinds) -> None:
        self._kinds = kinds
        self._run: list[str] = []
        self._held: list[str] = []
        """Lines that may begin a document or an error."""
        self._holding: Literal["json", "traceback", "error"] | None = None
        self._depth = 0

    def feed(self, line: str) -> Iterator[Block]:
        """Takes the next line."""
        match self._holding:
            case "json" if line.strip():
                yield from self._json(line)
            case "traceback" if line.strip():
                yield from self._traceback(line)
            case "error" if line[:1].isspace() and line.strip():
                self._held.append(line)
            case None:
                yield from self._begin(line)
            case _:
                yield from self._release()
                yield from self._begin(line)

    def verbatim(self, line: str) -> None:
        """Takes a line that is text, whatever it looks like; call it only while no lines are held."""
        self._run.append(line)

    def release(self) -> Iterator[Block]:
        """Ends an open document or error; the text goes on."""
        yield from self._release()

    def end(self) -> Iterator[Block]:
        """Ends the text, too."""
        yield from self._release()
        yield from self._text()

    def _begin(self, line: str) -> Iterator[Block]:
        if self._kinds.data and _JSON_BEGINS.match(line):
            self._holding, self._depth = "json", 0
            yield from self._json(line)
        elif self._kinds.errors and _TRACEBACK.fullmatch(line):
            self._holding, self._held = "traceback", [line]
        elif self._kinds.errors and _ERROR.match(line):
            self._holding, self._held = "error", [line]
        else:
            self._run.append(line)

    def _json(self, line: str) -> Iterator[Block]:
        self._held.append(line)
        bare = _STRING.sub("", line)
        for mark in bare:
            self._depth += (mark in "{[") - (mark in "}]")
            if not 0 <= self._depth <= DEPTH_MAX:
                yield from self._release()
                return
        if self._depth:
            return
        document = "\n".join(self._held)
        value = _value(document)
        if value is None:
            yield from self._release()
            return
        self._held, self._holding = [], None
        yield from self._text()
        yield Block("data", "json_output", document.strip(), data=value)

    def _traceback(self, line: str) -> Iterator[Block]:
        self._held.append(line)
        if line[:1].isspace():
            return
        if (ends := _TRACEBACK_ENDS.match(line)) is None:
            yield from self._release()
            return
        yield from self._error(ends["code"])

    def _error(self, code: str) -> Iterator[Block]:
        text = "\n".join(self._held).strip()
        self._held, self._holding = [], None
        yield from self._text()
        yield Block("text", "error", text, metadata={"isError": True, "errorCode": code})

    def _release(self) -> Iterator[Block]:
        """Ends the held lines: as an error, or else as text."""
        if self._holding == "error":
            yield from self._error(_code(self._held[0]))
            return
        self._run += self._held
        self._held, self._holding = [], None

    def _text(self) -> Iterator[Block]:
        lines, self._run = self._run, []
        while lines and not lines[-1].strip():
            lines.pop()
        first = next((number for number, line in enumerate(lines) if line.strip()), None)
        if first is None:
            return
        lines = lines[first:]
        yield Block("text", "output", "\n".join(lines))
        if self._kinds.files:
            for line in lines:
                for path in _files(line):
                    yield Block("file", path, f"File reference: {path}", metadata={"path": path})


def _files(line: str) -> Iterator[str]:
    if (verb := _VERB.fullmatch(line)) is not None:
        path = verb["path"] or _without_note(verb["rooted"])
        quoted = path[0] in "`\"'" and path[0] == path[-1] and len(path) > 1
        path = path[1:-1].strip() if quoted else path.strip("*").rstrip(".,;:")
        if path and not path.startswith("["):
            yield path
            return
    for reference in _BRACKET.finditer(line):
        if reference["closed"] and (path := reference["path"].strip()):
            yield path


def _without_note(path: str) -> str:
    """Returns a path, which may have blanks, without the text in brackets after it."""
    path = path.rstrip()
    return _NOTE.split(path, maxsplit=1)[0].rstrip() if path.endswith(")") else path


def _code(line: str) -> str:
    found = _ERROR.match(line)
    assert found is not None
    word = "ERROR" if found["word"] == "エラー" else (found["word"] or "").upper().replace(" ", "_")
    return found["type"] or found["tag"] or found["named"] or found["number"] or word


def _value(document: str) -> Any:
    """Returns the value of the document; None if it is not JSON, or cannot be sent."""
    if _JSON_NUMBERS.fullmatch(document):
        return None
    try:
        value = json.loads(document, parse_constant=_refuse, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair cannot be sent
    except (ValueError, RecursionError):
        return None
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is beyond a float")
    return value
