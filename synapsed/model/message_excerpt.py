"""Excerpt of a message to an agent, no longer than is needed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

END_MAX = 1000
"""Characters at the beginning, and as many at the end, that are used; the middle is mostly pasted."""

PARTS_MAX = 20
"""Text parts of a message that are used."""


@dataclass(frozen=True, slots=True)
class Said:
    """A task's message: `text` is its `ends`, `metadata` that of the task."""

    text: str
    metadata: dict[str, Any]
    priority: int = 1

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Said":
        """Returns the excerpt of a task as JSON."""
        parts = (part["text"] for part in document["message"]["parts"] if part["type"] == "text")
        return cls(ends(parts), document.get("metadata", {}), document.get("priority", 1))


def ends(texts: Iterable[str]) -> str:
    """The beginning and the end of the texts, joined by newlines."""
    pieces = [_ends(text) for _, text in zip(range(PARTS_MAX), texts, strict=False)]
    return _ends("\n".join(pieces))


def _ends(text: str) -> str:
    return text if len(text) <= 2 * END_MAX else f"{text[:END_MAX]}\n{text[-END_MAX:]}"
