"""Versions of programs: found in what they print, compared, and held against the one that a profile was measured on.

The person's tool imports it too.
"""

import re

PRINTED = re.compile(r"\d+(?:\.\d+)+(?:-[0-9A-Za-z][0-9A-Za-z.-]*)?", re.MULTILINE)
"""A version as most programs print it."""

_RELEASE = re.compile(r"(?P<numbers>\d+(?:\.\d+)*)(?P<preview>-[0-9A-Za-z.-]+)?(?:\+.*)?")
NUMBERS_MAX = 8


def key(version: str) -> tuple[int, ...] | None:
    """What orders versions: their numbers, a preview before its release. None for what is no version."""
    found = _RELEASE.fullmatch(version.removeprefix("v"))
    if found is None:
        return None
    numbers = [int(number) for number in found["numbers"].split(".")[:NUMBERS_MAX]]
    return (*numbers, *[0] * (NUMBERS_MAX - len(numbers)), 0 if found["preview"] else 1)


def find(pattern: re.Pattern[str], printed: str) -> str | None:
    """The version in what a program `printed`: the first match of `pattern`, or its group `version`."""
    found = pattern.search(printed)
    if found is None:
        return None
    return found["version"] if "version" in found.re.groupindex else found[0]


def within(version: str, since: str | None, below: str | None) -> bool:
    """Whether `version` is one from `since` on and before `below`; False for what cannot be compared."""
    number = key(version)
    first, end = (None if bound is None else key(bound) for bound in (since, below))
    return number is not None and (first is None or first <= number) and (end is None or number < end)


def drift(version: str | None, *, verified: str | None, since: str | None) -> str | None:
    """What a person should know of a program that is not of the version that its profile was `verified` on; None where
    there is nothing to tell. `since`: the oldest that the profile is known to work with. An empty version is one that
    the program was asked for, and did not tell."""
    if version == "" and verified is not None:
        return f"profile verified on {verified}, and its version is not known: it did not tell it"
    if version is None or verified is None or version == verified:
        return None
    told = f"profile verified on {verified}, this is {version}"
    if since is not None and within(version, None, since):
        return f"{told}, older than any it is known to work with ({since} and later): update it"
    return told
