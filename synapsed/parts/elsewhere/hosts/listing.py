"""Reads lists that another host sends, row by row: in a thread, so that others get the interpreter between two rows."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError

from synapsed.interfaces import AgentView
from synapsed.shared.outside_json import NotJson, read_json

ROWS_MAX: Final = 1000
"""Most agents of one host that are listed."""
_BEGIN: Final = re.compile(r"\s*\[\s*").match
_NEXT: Final = re.compile(r"\s*,\s*").match
_END: Final = re.compile(r"\s*\]\s*\Z").match


def agents(answer: bytes, host: str) -> tuple[list[AgentView], int]:
    """Returns the agents in the answer of `host`, by the names that they have here, and how many are left out: those
    above the limit, and those that this daemon does not understand. Raises ValueError."""
    found, count = list[AgentView](), 0
    for row in rows(answer.decode()):
        count += 1
        if len(found) < ROWS_MAX and (view := _here(row, host)) is not None:
            found.append(view)
    return found, count - len(found)


def _here(row: Any, host: str) -> AgentView | None:
    try:
        view = AgentView.model_validate(row, extra="ignore")
    except ValidationError:
        return None
    return view.model_copy(update={"name": f"{view.name}@{host}", "id": f"{view.id}@{host}", "host": host})


def _row(text: str) -> Any:
    try:
        return read_json(text)
    except NotJson:
        return None


def rows(text: str) -> Iterator[Any]:
    """Yields the elements of an array, one at a time, and None for one that cannot be worked with. Raises
    ValueError."""
    decode = json.JSONDecoder().raw_decode
    at = _BEGIN(text)
    end = _END(text, at.end()) if at is not None else None
    while at is not None and end is None:
        try:
            _, stop = decode(text, at.end())
        except RecursionError:
            break
        yield _row(text[at.end() : stop])
        end = _END(text, stop)
        at = _NEXT(text, stop) if end is None else at
    if end is None:
        raise ValueError("it is no array")
