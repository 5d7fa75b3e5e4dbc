"""Reads lists that another host sends, row by row: in a thread, so that others get the interpreter between two rows."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from pydantic import ValidationError

from synapsed.interfaces import AgentView, AttentionItem
from synapsed.shared.outside_json import NotJson, read_json
from synapsed.shared.regex import regex

ROWS_MAX: Final = 1000
"""Most agents of one host that are listed."""
_BEGIN: Final = regex(r"\s*\[\s*").match
_NEXT: Final = regex(r"\s*,\s*").match
_END: Final = regex(r"\s*\]\s*\Z").match


def agents(answer: bytes, host: str) -> tuple[list[AgentView], int]:
    """Returns the agents in the answer of `host`, as `known` does."""
    return known(AgentView, answer, host, ("name", "id"), most=ROWS_MAX)


def known[M: (AgentView, AttentionItem)](
    kind: type[M], answer: bytes, host: str, names: Sequence[str], *, most: int
) -> tuple[list[M], int]:
    """Returns the rows in the answer of `host`, with the fields `names` as they are called here (`NAME@HOST`), and how
    many are left out: those above the limit `most`, and those that this daemon does not understand. Raises
    ValueError."""
    found, count = list[M](), 0
    for row in rows(answer.decode()):
        count += 1
        if len(found) < most:
            with suppress(ValidationError):
                there = kind.model_validate(row, extra="ignore")
                here = {name: f"{getattr(there, name)}@{host}" for name in names}
                found.append(there.model_copy(update={**here, "host": host}))
    return found, count - len(found)


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
