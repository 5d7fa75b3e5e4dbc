"""The differences between two profiles of one name, and which of them decide what is run or typed. Pure.

A profile runs programs as the person. The keys that only say how a screen is read are listed here by name; a person
must see any other change, also that of a key from a newer version.

A profile runs programs as the person. Keys that only say how a screen is read are known here by name; whatever else
changes, a key that came with a newer version too, is for a person to see.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from synapsed.profiles.profile import Profile

READING = frozenset(
    {
        "description",
        "verified",
        "unverified",
        "ports",
        "cols",
        "rows",
        "status_records",
        "ready",
        "busy",
        "waiting",
        "error",
        "limit",
        "composer",
        "answer",
        "stream",
        "prompts",
        "tools",
        "parsers",
        "skills",
    }
)
"""Keys that say how a screen is read, or that a person reads about the program."""
_OURS = frozenset({"name", "source"})
SHOWN_MAX = 400
"""Largest number of characters shown of a value by which nothing is run or typed."""


@dataclass(frozen=True, slots=True)
class Change:
    """A key with another value. `runs`: it decides what is run or typed, or what the program may do."""

    key: str
    before: str | None
    after: str | None
    runs: bool


def changes(before: Profile | None, after: Profile) -> list[Change]:
    """Returns the differences in `after`; for a new profile, all keys that it sets."""
    old = {} if before is None else _said(before)
    new = _said(after)
    found: list[Change] = []
    for key in sorted(old.keys() | new.keys()):
        if key not in _OURS and old.get(key) != new.get(key):
            found += _of_key(key, old.get(key), new.get(key))
    return found


def _said(profile: Profile) -> dict[str, Any]:
    """Returns the keys that are set."""
    told = profile.model_dump(mode="json", exclude_defaults=True)
    return {**told, "command": profile.command}


def _of_key(key: str, old: Any, new: Any) -> list[Change]:
    runs = _runs(key, old, new)
    return [
        Change(path, _shown(before, runs), _shown(after, runs), runs) for path, before, after in _leaves(key, old, new)
    ]


def _leaves(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields the differences, tables key by key."""
    if not isinstance(old, Mapping | None) or not isinstance(new, Mapping | None):
        yield path, old, new
        return
    olds, news = old or {}, new or {}
    for key in sorted(olds.keys() | news.keys()):
        if olds.get(key) != news.get(key):
            yield from _leaves(f"{path}.{key}", olds.get(key), news.get(key))


def _runs(key: str, old: Any, new: Any) -> bool:
    """Returns whether the key decides what is run; for `versions`, the keys that they override decide."""
    if key != "versions":
        return key not in READING
    either = [
        variant for variant in [*(old or []), *(new or [])] if variant not in (old or []) or variant not in (new or [])
    ]
    return any(name not in READING | {"since", "below", "note"} for variant in either for name in variant)


def _shown(value: Any, whole: bool) -> str | None:
    """Returns the value as JSON. `whole`, for a person's decision: complete, and with no invisible character."""
    if value is None:
        return None
    text = json.dumps(value, ensure_ascii=whole)
    return text if whole or len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
