"""Checks profiles before they replace built-in ones: whether they can be read, what they change, and whether they read
their recordings as expected. Reads files, and writes none.

A folder has them as `profiles/NAME.toml`, and recordings of a program of that version as `recordings/NAME-VERSION/`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from synapsed.errors import ConfigError
from synapsed.parts.profile_tools.changes import changes
from synapsed.parts.profile_tools.recordings import prove, read_recordings
from synapsed.profiles.library import NEWER, Profile, ProfileLibrary, StandIn, StandIns
from synapsed.shared.regex import regex

_FOLDER = regex(r"(?P<profile>[a-z0-9][a-z0-9_.-]*?)-(?P<version>\d[0-9A-Za-z.+-]*)")
"""The name of a folder of recordings."""
FAULTS_MAX = 50
"""Most differences that are reported."""


@dataclass(slots=True)
class Proved:
    """The findings."""

    profiles: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Profiles by name, including those that only extend one in the folder."""
    gone: list[str] = field(default_factory=list)
    """Names of profiles that will no longer exist."""
    recordings: int = 0
    faults: list[str] = field(default_factory=list)
    """The first faults, in sentences."""
    faults_in_all: int = 0

    def document(self) -> dict[str, Any]:
        return asdict(self)


def prove_folder(folder: Path, since: str, *, user: Path, now: StandIns, recorded: bool) -> Proved:
    """Checks the profiles in `folder`, which exist since version `since` of synapsed, as replacements for the stand-ins
    that count now (`now`). Raises ConfigError if one cannot be read, or the person's own profiles cannot be read with
    them."""
    files = {path.stem: StandIn(path, since) for path in sorted((folder / "profiles").glob("*.toml"))}
    before, after = ProfileLibrary.builtin_with(now), ProfileLibrary.builtin_with(lambda: files)
    if wrong := [why for why in after.left_out.values() if why != NEWER]:
        raise ConfigError(wrong[0], file=str(folder))
    own = ProfileLibrary.standard(user, lambda: files)
    found = Proved(gone=sorted({*before.names()} - {*after.names()}))
    for name in after.names():
        if name in files or changes(before.find(name), after.get(name)):
            found.profiles[name] = {"inside": name in files, **_of_one(name, before, after, own)}
    if recorded:
        _prove_recordings(folder, {name: after.get(name) for name in files if name not in after.left_out}, found)
    return found


def _of_one(name: str, before: ProfileLibrary, after: ProfileLibrary, own: ProfileLibrary) -> dict[str, Any]:
    then, now = before.find(name), after.get(name)
    return {
        "verified": now.verified,
        "since": now.version.since if now.version is not None else None,
        "new": then is None,
        "left_out": after.left_out.get(name),
        "own": own.get(name).source != now.source,
        "recordings": 0,
        "changes": [asdict(change) for change in changes(then, now)],
    }


def _prove_recordings(folder: Path, profiles: Mapping[str, Profile], found: Proved) -> None:
    for place in sorted(path for path in (folder / "recordings").glob("*") if path.is_dir()):
        named = _FOLDER.fullmatch(place.name)
        if named is None or not (folder / "profiles" / f"{named['profile']}.toml").is_file():
            raise ConfigError(
                f"{place.name}: belongs to none of these profiles: name it PROFILE-VERSION", file=str(place)
            )
        name = named["profile"]
        if name not in profiles:
            continue
        runs = read_recordings(place)
        if missing := [run.name for run in runs if run.expected is None]:
            raise ConfigError(f"{place.name}/{missing[0]}: has no expectation beside it", file=str(place))
        faults = [
            f"{place.name}/{proof.name}: {difference}"
            for proof in prove(profiles[name].at(named["version"]), runs)
            for difference in proof.differences
        ]
        found.profiles[name]["recordings"] += len(runs)
        found.recordings += len(runs)
        found.faults_in_all += len(faults)
        found.faults += faults[: FAULTS_MAX - len(found.faults)]
