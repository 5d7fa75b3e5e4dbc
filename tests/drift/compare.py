"""The differences between a new release and the recordings of the verified version. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from synapsed.parts.profile_tools.recorded import differences
from synapsed.profiles.profile import Profile
from tests.drift.drawing import Drawn

__all__ = [
    "COMPARED",
    "AtMark",
    "Cells",
    "Release",
    "Reported",
    "Verdict",
    "at_marks",
    "patterns",
    "unmatched",
    "verdict",
]

COMPARED = ("start", "turn", "accept", "interrupt", "long")
"""Scenarios of `tests.real.recorded` that are recorded again."""

PLACES: Mapping[str, tuple[str, str]] = {
    "starts": ("start", "ready"),
    "turns": ("turn", "answered"),
    "permission": ("accept", "dialog settled"),
    "cancel": ("interrupt", "held"),
    "restart": ("start", "ready"),
    "draft": ("start", "draft"),
}
"""For each cell of a row, the scenario and the mark of the recorded screen that is shown beside its failure."""

TABLES = ("composer", "ready", "busy", "interrupt", "answer", "prompts")
"""Tables of a profile with patterns that are looked for on screens."""

type Cells = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AtMark:
    """The differences at one mark of a scenario, with both screens, where they are known."""

    scenario: str
    mark: str
    differences: tuple[str, ...]
    recorded: Drawn | None = None
    new: Drawn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What a report says, and what the shipped profile reads in it."""

    file: str
    profile: str
    version: str
    says: str
    told: str
    reads: str
    should_be: str | None
    differences: tuple[str, ...]
    shown: Drawn | None = None
    recorded: tuple[str, Drawn] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """All that was found out about the newest release of a program. `cells` are those of its row, `before` those of
    the verified version, which is tried only where the newest fails; `reason` says why nothing was tried."""

    name: str
    verified: str
    version: str | None = None
    reason: str | None = None
    cells: Cells = field(default_factory=dict)
    faults: Sequence[str] = ()
    before: Cells = field(default_factory=dict)
    told: str = ""
    failed_at: AtMark | None = None
    marks: Sequence[AtMark] = ()
    recorded: Sequence[str] = ()
    unmatched: Sequence[str] = ()
    proposal: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`code` is the exit code, `line` the last line."""

    code: int
    line: str


def differs(one: Release) -> bool:
    """Returns True if the release differs from the verified version: a row that fails on both is no difference."""
    worse = any(cell == "NO" and one.before.get(what) != "NO" for what, cell in one.cells.items())
    return worse or any(mark.differences for mark in one.marks)


def could_not(one: Release) -> bool:
    """Returns True if a part of the release could not be tried, and nothing else tells that it differs."""
    return not differs(one) and (one.reason is not None or "NO" in one.cells.values())


def verdict(releases: Sequence[Release], reports: Sequence[Reported], unread: Sequence[str]) -> Verdict:
    """Returns 1 if something differs, else 2 if something could not be tried, else 0."""
    drifted = [f"{one.name} {one.version}" for one in releases if differs(one)]
    drifted += [f"the report {one.file}" for one in reports if one.differences]
    failed = [one.name for one in releases if could_not(one)] + list(unread)
    said = [f"{', '.join(drifted)} differ{'s' if len(drifted) == 1 else ''}"] if drifted else []
    said += [f"could not be tried: {', '.join(failed)}"] if failed else []
    code = 1 if drifted else 2 if failed else 0
    return Verdict(code, f"drift: {'; '.join(said) or 'none found'} (exit code {code})")


# --- marks -----------------------------------------------------------------------------------------------------------


def at_marks(scenario: str, told: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]]) -> list[AtMark]:
    """Returns the differences at each mark of a scenario, as far as it came through the marks of the recording. `told`:
    what the profile reads in the new recording, at each mark."""
    found = list[AtMark]()
    for n, wanted in enumerate(expected):
        label = wanted["mark"]
        if n >= len(told) or told[n]["mark"] != label:
            came = repr(told[n]["mark"]) if n < len(told) else "its end"
            found.append(AtMark(scenario, label, (f"{label!r} was never seen: it came to {came}",)))
            break
        read = {key: value for key, value in told[n].items() if key != "mark"}
        found.append(AtMark(scenario, label, tuple(differences(label, read, wanted))))
    return found


# --- patterns --------------------------------------------------------------------------------------------------------


def patterns(profile: Profile) -> list[tuple[str, re.Pattern[str]]]:
    """Returns the patterns of the profile that read its screen, each with its place in the file."""
    told = profile.model_dump(include=set(TABLES), exclude_none=True)
    return list(dict(_patterns(told, "")).items())


def _patterns(value: Any, place: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, re.Pattern):
        yield place, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _patterns(each, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for n, each in enumerate(value):
            yield from _patterns(each, f"{place}[{n}]")


def unmatched(profile: Profile, recorded: Sequence[Drawn], new: Sequence[Drawn]) -> list[str]:
    """Returns the places of the patterns that are found on a recorded screen, and on no new one."""
    return [
        f"{place} = {pattern.pattern!r}"
        for place, pattern in patterns(profile)
        if any(_shows(one, pattern) for one in recorded) and not any(_shows(one, pattern) for one in new)
    ]


def _shows(screen: Drawn, pattern: re.Pattern[str]) -> bool:
    rows = [line.rstrip() for line in screen.lines]
    return any(pattern.search(text) for text in (screen.title, "\n".join(rows), *rows))
