"""Finds the differences between two profiles of one name, and which of them decide what is run or typed. Pure.

A profile runs programs as the person. The keys that only say how a screen is read are listed by name; a person must see
any other change, even of a key from a newer version. Dialogs and limits are not in the list: they say what is typed,
and what an approval policy reads. Values are compared as JSON: to Python, true is 1.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from synapsed.profiles.library import Profile, order_of

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
        "composer",
        "answer",
        "stream",
        "tools",
        "parsers",
        "skills",
    }
)
"""Keys that say how a screen is read, or that a person reads about the program."""
_OURS = frozenset({"name", "source"})
_ABSENT: Final = object()
OTHER: Final = "(other)"
"""Stands for a key if two profiles differ, but no key shows the difference."""
SHOWN_MAX = 400
"""Most characters that are shown of a value that does not decide what is run or typed; a longer list is shown item by
item."""

AROUND: Final = 40
"""Number of these characters before the first difference."""


@dataclass(frozen=True, slots=True)
class Change:
    """A key with another value. `runs`: it decides what is run or typed, or what the program may do."""

    key: str
    before: str | None
    after: str | None
    runs: bool


def changes(before: Profile | None, after: Profile) -> list[Change]:
    """Returns the differences in `after`; for a new profile, all keys that it sets."""
    old, new = {} if before is None else _set_keys(before), _set_keys(after)
    at_versions = list(_at_versions(before, after))
    found: list[Change] = []
    for key in _differing(old, new, _OURS):
        runs = key not in READING if key != "versions" else bool(at_versions) or _overrides(before, after)
        found += _of_key(key, old.get(key, _ABSENT), new.get(key, _ABSENT), runs=runs)
    found += at_versions
    if not found and before is not None and _exactly(before) != _exactly(after):
        found.append(Change(OTHER, None, None, runs=True))
    return found


def _set_keys(profile: Profile) -> dict[str, Any]:
    """Returns the values of the keys that the profile sets; its command in any case."""
    keys = profile.model_dump(mode="json", exclude_defaults=True)
    return {**keys, "command": profile.command}


def _exactly(profile: Profile) -> str:
    return repr(profile.model_dump(exclude=set(_OURS)))


def _at_versions(before: Profile | None, after: Profile) -> Iterator[Change]:
    """Yields changes of what is run or typed that apply only from some version of the program on."""
    old, new = {} if before is None else _set_keys(before), _set_keys(after)
    variants = [*(before.versions if before is not None else ()), *after.versions]
    bounds = {bound for variant in variants for bound in (variant.since, variant.below) if bound is not None}
    for bound in sorted({"0", *bounds} if bounds else (), key=lambda bound: order_of(bound) or ()):
        then, now = {} if before is None else _set_keys(before.at(bound)), _set_keys(after.at(bound))
        for key in _differing(then, now, _OURS | READING | {"versions"}):
            pair = then.get(key, _ABSENT), now.get(key, _ABSENT)
            if not (_same(pair[0], old.get(key, _ABSENT)) and _same(pair[1], new.get(key, _ABSENT))):
                yield from _of_key(f"from {bound} on: {key}", *pair, runs=True)


def _overrides(before: Profile | None, after: Profile) -> bool:
    """Returns True if a variant that only one of the profiles has is about more than reading a screen."""
    old, new = before.versions if before is not None else [], after.versions
    either = [variant for variant in [*old, *new] if variant not in old or variant not in new]
    return any(variant.overrides.keys() - READING for variant in either)


def _differing(old: Mapping[str, Any], new: Mapping[str, Any], without: frozenset[str] = frozenset()) -> list[str]:
    keys = sorted((old.keys() | new.keys()) - without)
    return [key for key in keys if not _same(old.get(key, _ABSENT), new.get(key, _ABSENT))]


def _same(old: Any, new: Any) -> bool:
    if old is _ABSENT or new is _ABSENT:
        return old is new
    return json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)


def _of_key(key: str, old: Any, new: Any, *, runs: bool) -> list[Change]:
    return [Change(path, *_shown(before, after, whole=runs), runs) for path, before, after in _leaves(key, old, new)]


def _leaves(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields the differences: tables key by key, long lists item by item. An added or removed value may be an empty
    table."""
    if _is_either(Mapping, old, new):
        olds, news = ({} if each is _ABSENT else each for each in (old, new))
        if olds or news:
            for key in _differing(olds, news):
                yield from _leaves(f"{path}.{key}", olds.get(key, _ABSENT), news.get(key, _ABSENT))
            return
    elif _is_either(list, old, new) and max(map(len, map(_json, (old, new)))) > SHOWN_MAX:
        yield from _items(path, *([] if each is _ABSENT else each for each in (old, new)))
        return
    yield path, old, new


def _items(path: str, old: list[Any], new: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yields the items that differ, without those with which both lists begin, and those with which both end."""
    shorter = min(len(old), len(new))
    first = next((n for n in range(shorter) if not _same(old[n], new[n])), shorter)
    last = next((n for n in range(shorter - first) if not _same(old[-1 - n], new[-1 - n])), shorter - first)
    pairs = zip_longest(old[first : len(old) - last], new[first : len(new) - last], fillvalue=_ABSENT)
    for number, (before, after) in enumerate(pairs, first):
        if not _same(before, after):
            yield from _leaves(f"{path}[{number}]", before, after)


def _is_either(kind: type, old: Any, new: Any) -> bool:
    """Returns True if both are of that kind, or one is and the other is missing."""
    return all(isinstance(each, kind) or each is _ABSENT for each in (old, new)) and (old is not new)


def _shown(old: Any, new: Any, *, whole: bool) -> tuple[str | None, str | None]:
    """Returns both as JSON. `whole`, because a person decides on them: complete, and without invisible characters.
    Otherwise long texts are shown from their first difference on."""
    texts = [None if each is _ABSENT else json.dumps(each, ensure_ascii=whole) for each in (old, new)]
    if not whole and max(len(text or "") for text in texts) > SHOWN_MAX:
        pairs = enumerate(zip_longest(texts[0] or "", texts[1] or ""))
        start = max(0, next(number for number, (one, other) in pairs if one != other) - AROUND)
        texts = [text and _cut(text, start) for text in texts]
    return texts[0], texts[1]


def _cut(text: str, start: int) -> str:
    return f"{'…' if start else ''}{text[start : start + SHOWN_MAX]}{'…' if len(text) > start + SHOWN_MAX else ''}"


def _json(value: Any) -> str:
    return "" if value is _ABSENT else json.dumps(value)
