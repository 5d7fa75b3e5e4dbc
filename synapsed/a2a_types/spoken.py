"""Makes a text of the parts with which an agent elsewhere explains its state. Pure."""

import json
from collections.abc import Iterable
from typing import Final

from synapsed.model.task import DataPart, FilePart, Part, TextPart

DATA_MAX: Final = 4_000
"""Characters of data that a question shows."""


def spoken(parts: Iterable[Part], *, data: bool = True) -> str:
    """Returns the texts, a line each. Data (a form) and the address of a file (a page to sign in) belong to the
    question, and are shown as they came; without `data`, data are left out."""
    return "\n".join(words for part in parts if (words := _words(part, data)))


def _words(part: Part, data: bool) -> str:
    match part:
        case TextPart(text=text):
            return text
        case DataPart(data=form):
            words = json.dumps(form, ensure_ascii=False, indent=2) if data else ""
            return words if len(words) <= DATA_MAX else f"{words[:DATA_MAX]}…"
        case FilePart(file=file):
            return file.uri or (f"(a file: {file.name})" if file.name else "")
