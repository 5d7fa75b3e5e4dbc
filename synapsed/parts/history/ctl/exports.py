"""Writes items of the history in its export formats: a transcript, CSV, markdown."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from synapsectl.messages import INSTRUCTIONS, SYSTEM
from synapsectl.output import one_line, short_id
from synapsectl.times import shown

COLUMNS = (
    "id", "time", "kind", "agent", "task", "context", "thread", "by", "to", "tool", "state", "truncated", "text",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_UNSEEN = re.compile(r"^[\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
"""Characters at the beginning of a cell that a spreadsheet may drop."""
_FENCE = re.compile(r"(?:\A|[\r\n]) {0,3}(`{3,})")
WHOLE = "--format markdown has them"
_KEPT_HERE = "only the beginning is kept in the history"

type Names = Mapping[str, str]
"""Names of agents, by their ids."""


def as_csv(items: Iterable[Mapping[str, Any]]) -> str:
    """Returns CSV with a line of headings. A spreadsheet takes a cell that begins with `=`, `+`, `-` or `@` for a
    formula, also in an agent's text, in full width too, and after invisible characters: such a cell gets an apostrophe
    before it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([_cell(item[name]) for name in COLUMNS] for item in items)
    return text.getvalue()


def as_transcript(items: Sequence[Mapping[str, Any]], names: Names) -> str:
    """Returns a transcript for reading in a terminal. Instructions from synapsed are one line each, and never first
    where another message is there."""
    first = next((place for place, item in enumerate(items) if not of_instructions(item)), 0)
    ordered = [*items[first : first + 1], *items[:first], *items[first + 1 :]]
    return "\n".join(f"{_heading(item, names)}\n{_folded(item)}" for item in ordered)


def of_instructions(item: Mapping[str, Any]) -> bool:
    """Returns True for synapsed's own instructions to an agent, and for the answer to them."""
    return SYSTEM in (item["by"], item["to"])


def _folded(item: Mapping[str, Any]) -> str:
    return f"  ({INSTRUCTIONS}: {WHOLE})\n" if item["by"] == SYSTEM else _indented(item)


def as_markdown(items: Sequence[Mapping[str, Any]], names: Names, *, title: str) -> str:
    """Returns a document with one section for each item."""
    parts = [f"# {one_line(title)}"]
    for item in items:
        parts.append(f"## {_heading(item, names)}")
        parts.append(_fenced(item["text"]) if item["kind"] == "tool" else item["text"] or "*(no text)*")
        if item["truncated"]:
            parts.append(f"*({_KEPT_HERE})*")
    return "\n\n".join(parts) + "\n"


def _heading(item: Mapping[str, Any], names: Names) -> str:
    by = names.get(item["by"], item["by"]) if item["by"] is not None else "person"
    to = names.get(item["to"], item["to"]) if item["to"] is not None else "person"
    who = f"{by} → {to}" if item["kind"] != "tool" else f"{by} ran {item['tool']}"
    state = f", {item['state']}" if item["state"] not in (None, "completed") else ""
    task = f", task {short_id(item['task'])}" if item["task"] is not None else ""
    return one_line(f"{shown(item['time'])} {who} ({item['kind']}{state}{task})")


def _indented(item: Mapping[str, Any]) -> str:
    lines = [f"  {line}".rstrip() for line in item["text"].splitlines()]
    return "\n".join([*lines, f"  ({_KEPT_HERE})"] if item["truncated"] else lines) + "\n"


def _fenced(text: str) -> str:
    """Returns the text as code, in a fence that the text does not end."""
    longest = max((len(fence) for fence in _FENCE.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _cell(value: Any) -> Any:
    if isinstance(value, str) and _UNSEEN.sub("", value).startswith(_FORMULA):
        return f"'{value}"
    return value
