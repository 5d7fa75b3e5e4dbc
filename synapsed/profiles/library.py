"""The library of profiles: found by name in the user's directory and among the built-in ones; a user's file of the same
name overrides the built-in key by key, and so does one that `extends` another.

A stand-in replaces the built-in profile of its name as a whole: it was tested without that profile.

Parts use the names listed here.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from synapsed import __version__
from synapsed.config.toml_errors import describe_validation, line_of, parse_toml, unreadable
from synapsed.errors import ConfigError, UnknownProfile
from synapsed.profiles.profile import Profile
from synapsed.profiles.releases import key as order_of
from synapsed.profiles.releases import within
from synapsed.profiles.setting_spec import KeysSpec, SettingsNote, SettingsSpec, Yields
from synapsed.profiles.variants import Variant
from synapsed.shared.files import toml_files

__all__ = [
    "NEWER",
    "KeysSpec",
    "Profile",
    "ProfileLibrary",
    "SettingsNote",
    "SettingsSpec",
    "StandIn",
    "StandIns",
    "Yields",
    "order_of",
]

BUILTIN = Path(__file__).parent.parent / "_profiles"
"""The place of the built-in profiles in a wheel; a checkout has them beside the package."""
CHECKOUT = Path(__file__).parent.parent.parent / "profiles"


_ITS_OWN = ("ports", "description")
"""Keys that a profile does not take from the one that it extends."""
_OF_ONE_PROGRAM = ("verified", "unverified", "install", "version", "versions")
"""Keys that it does not take either if the two have different commands."""
_OF_A_TERMINAL = frozenset({"composer", "ready", "busy", "answer"})
NEWER = "the one that comes with this version of synapsed is newer"
"""The usual reason that a stand-in does not count."""


class StandIn(NamedTuple):
    """A file that replaces a built-in profile, or adds one. `since`: the first version of synapsed that had it."""

    path: Path
    since: str


type StandIns = Callable[[], Mapping[str, StandIn]]
"""Returns the current stand-ins by their names."""


def _none() -> Mapping[str, StandIn]:
    return {}


class _Written:
    """Contents of all files of one name, with the `path` and the `text` of the last file."""

    def __init__(self, path: Path, text: str, base: Sequence[Mapping[str, Any]] = ()) -> None:
        self.path = path
        self.text = text
        self._base = base

    @cached_property
    def layers(self) -> Sequence[Mapping[str, Any]]:
        """Contents of each file; the last one wins."""
        return [*self._base, _parse_toml(self.path, self.text)]

    @property
    def data(self) -> Mapping[str, Any]:
        return _merged(self.layers)


class ProfileLibrary:
    """Holds the profiles of `directories`, the last one winning key by key, with `stand_ins` in place of those of the
    first directory. Files are read once; `reload` reads them again.

    A built-in profile that nothing changes is made when it is first asked for, which takes up to 70 ms. All others are
    made at once, so that their faults are reported at the start."""

    def __init__(self, directories: list[Path], stand_ins: StandIns = _none) -> None:
        self._directories = directories
        self._stand_ins = stand_ins
        self._written: dict[str, _Written] = {}
        self._profiles: dict[str, Profile] = {}
        self.left_out: dict[str, str] = {}
        """Stand-ins that do not count, with the reason."""
        self.reload()

    @classmethod
    def standard(cls, user: Path, stand_ins: StandIns = _none) -> "ProfileLibrary":
        """Returns the built-in profiles, overridden by those in the directory `user`."""
        return cls([_builtin(), user], stand_ins)

    @classmethod
    def builtin(cls) -> "ProfileLibrary":
        """Returns the built-in profiles as they are shipped."""
        return cls([_builtin()])

    @classmethod
    def builtin_with(cls, stand_ins: StandIns) -> "ProfileLibrary":
        """Returns the built-in profiles with their stand-ins, and none of the person's own."""
        return cls([_builtin()], stand_ins)

    @staticmethod
    def one(user: Path, name: str, stand_ins: StandIns = _none) -> Profile:
        """Returns the profile `name` as `standard` has it. Without stand-ins only its files are read, and those of the
        profiles that it extends."""
        if standing := stand_ins():
            return ProfileLibrary.standard(user, lambda: standing).get(name)

        def find(name: str) -> _Written | None:
            found = None
            for directory in (_builtin(), user):
                if (path := directory / f"{name}.toml").stem == name and path.is_file():
                    found = _written(path, found)
            return found

        if (written := find(name)) is None:
            return ProfileLibrary.standard(user).get(name)  # its error names the profiles
        return _profile(written.path, written.text, _extended(written, find))

    def reload(self) -> None:
        """Reads all files; ConfigError leaves the profiles as they were."""
        written, left_out = self._read_all()
        changed = any(each.path.parent != _builtin() for each in written.values())
        self._profiles = {name: _made(name, written) for name in written if changed and not _is_shipped(name, written)}
        self._written, self.left_out = written, left_out

    def _read_all(self) -> tuple[dict[str, _Written], dict[str, str]]:
        """Returns the contents of the files, and the stand-ins that do not count."""
        written: dict[str, _Written] = {}
        left_out: dict[str, str] = {}
        for number, directory in enumerate(self._directories):
            written |= _in_directory(directory, written)
            if number == 0:
                standing, left_out = _standing_in(written, self._stand_ins())
                written |= standing
        return written, left_out

    def again(self) -> "ProfileLibrary":
        """Returns a library with the current contents of the files, in which those profiles are made that are made
        here. Raises ConfigError."""
        found = ProfileLibrary(self._directories, self._stand_ins)
        for name in list(self._profiles):
            found.find(name)
        return found

    def become(self, other: "ProfileLibrary") -> None:
        """Takes over the profiles of `other`."""
        self._written, self._profiles = other._written, other._profiles  # noqa: SLF001 - of the same class
        self.left_out = other.left_out

    def find(self, name: str) -> Profile | None:
        if name not in self._profiles and name in self._written:
            self._profiles[name] = _made(name, self._written)
        return self._profiles.get(name)

    def names(self) -> list[str]:
        return sorted(self._written)

    def check(self, path: Path) -> Profile:
        """Returns the profile that the file `path` would make, over the known one of its name. A profile that it
        extends may be in a file beside it, over the known one of that name. Raises ConfigError."""
        known, _ = self._read_all()
        checked = _written(path, known.get(path.stem))

        def find(name: str) -> _Written | None:
            if name == path.stem:
                return checked
            beside = path.with_name(f"{name}.toml")
            return _written(beside, known.get(name)) if beside.is_file() else known.get(name)

        return _profile(path, checked.text, _extended(checked, find))

    def get_or_bare(self, name: str) -> Profile:
        """Returns the profile `name`; if it is gone, one with which a running program can be stopped, but not used."""
        try:
            return self.get(name)
        except UnknownProfile as error:
            import structlog  # a program that only shows a profile does not need it

            log = structlog.stdlib.get_logger(__name__)
            log.error("an agent's profile is gone: it can be stopped, not used", profile=name, why=error.message)  # noqa: TRY400
            return Profile(name=name, command=name)

    def get(self, name: str) -> Profile:
        """Returns the profile `name`. Raises UnknownProfile, which names the nearest one."""
        if (profile := self.find(name)) is not None:
            return profile
        near = difflib.get_close_matches(name, self._written, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.names())}"
        if any(file.stem == name for directory in self._directories for file in toml_files(directory)):
            hint = "its file came after these were read: 'synapsectl reload' reads them again"
        raise UnknownProfile(f"no profile {name[:80]!r}: {hint}", profile=name[:80], profiles=self.names())


def _builtin() -> Path:
    return BUILTIN if BUILTIN.is_dir() else CHECKOUT


def _in_directory(directory: Path, over: Mapping[str, _Written]) -> dict[str, _Written]:
    """Returns the contents of the files of a directory, over those of the directories before it."""
    paths = toml_files(directory)
    if directory == _builtin():
        return {path.stem: _Written(path, _read(path)) for path in paths}  # each is parsed when it is first needed
    return {path.stem: _written(path, over.get(path.stem)) for path in paths}


def _standing_in(
    built_in: Mapping[str, _Written], given: Mapping[str, StandIn]
) -> tuple[dict[str, _Written], dict[str, str]]:
    """Returns the stand-ins that count, and the reasons why the others do not. A stand-in that this version cannot read
    is left out, and so is one that extends it: after an upgrade a person must not be without profiles."""
    standing: dict[str, _Written] = {}
    left_out: dict[str, str] = {}
    for name, each in given.items():
        try:
            written = _written(each.path, None)
        except ConfigError as error:
            left_out[name] = error.message
            continue
        if name in built_in and _is_newer(built_in[name].data, written.data, each.since):
            left_out[name] = NEWER
        else:
            standing[name] = written
    for _ in range(len(standing)):
        together = {**built_in, **standing}
        faults: dict[str, str] = {}
        for name, written in standing.items():
            try:
                _profile(written.path, written.text, _extended(written, together.get))
            except ConfigError as error:
                faults[name] = error.message
        left_out |= faults
        standing = {name: written for name, written in standing.items() if name not in faults}
        if not faults:
            break
    return standing, left_out


def _is_newer(built_in: Mapping[str, Any], other: Mapping[str, Any], since: str) -> bool:
    """Returns whether the built-in profile is newer than `other`, which exists since version `since` of synapsed: the
    program's version that each was tested on decides, and if these are the same (or missing), that of synapsed."""
    ours, theirs = (order_of(str(data.get("verified", ""))) for data in (built_in, other))
    if ours != theirs and ours is not None and theirs is not None:
        return ours > theirs
    made, here = order_of(since), order_of(__version__)
    return made is None or here is None or here > made


def _is_shipped(name: str, written: Mapping[str, _Written]) -> bool:
    """Returns whether only built-in files make the profile."""
    if (each := written.get(name)) is None or each.path.parent != _builtin():
        return False
    return "extends" not in each.data or _is_shipped(each.data["extends"], written)


def _made(name: str, written: Mapping[str, _Written]) -> Profile:
    each = written[name]
    return _profile(each.path, each.text, _extended(each, written.get))


def _profile(path: Path, text: str, layers: Sequence[Mapping[str, Any]]) -> Profile:
    """Makes the profile from `layers`, the last of which is `text`, at `path`. Errors name the place in the file."""
    if len(layers) > 1 and "versions" in layers[-1]:
        _validated(path, text, {"versions": layers[-1]["versions"]}, ())  # by their numbers in this file
    profile = _validated(path, text, _merged(layers), ())
    bounds = {bound for variant in profile.versions for bound in (variant.since, variant.below) if bound is not None}
    own = len(profile.versions) - len(layers[-1].get("versions", ()))
    for number, variant in enumerate(profile.versions[own:]):
        _validated(path, text, _overlay(_merged(layers), variant.overrides), ("versions", number))
    variants = {bound: _validated(path, text, _merged(layers, bound), ()) for bound in {"0", *bounds}} if bounds else {}
    return profile.with_variants(variants)


def _merged(layers: Iterable[Mapping[str, Any]], version: str | None = None) -> dict[str, Any]:
    """Merges `layers` for that version: each layer's variants count before the next layer, so that the keys in a user's
    file count for every version."""
    data: dict[str, Any] = {}
    versions: list[Any] = []
    for layer in layers:
        data = _overlay(data, layer)
        if not isinstance(own := layer.get("versions", []), list):
            return data  # validating it raises the error
        versions += own
        for variant in map(Variant.model_validate, own) if version is not None else ():
            if within(version or "", variant.since, variant.below):
                data = _overlay(data, variant.overrides)
    return data | {"versions": versions} if versions else data


def _validated(path: Path, text: str, data: Mapping[str, Any], inside: Sequence[int | str]) -> Profile:
    """Returns the profile of `data`. `inside` leads to the file's table that `data` comes from. Raises ConfigError."""
    try:
        return Profile.model_validate({"command": path.stem, **data, "name": path.stem, "source": str(path)})
    except ValidationError as error:
        raise ConfigError(describe_validation(error, path, text, Profile, inside), file=str(path)) from None


def _written(path: Path, over: _Written | None) -> _Written:
    """Reads `path`, `over` the contents of the earlier file of the same name."""
    written = _Written(path, _read(path))
    data = written.data
    return written if over is None or _is_whole(data, over.data) else _Written(path, written.text, over.layers)


def _is_whole(data: Mapping[str, Any], over: Mapping[str, Any]) -> bool:
    """Returns whether `data` takes nothing from the profile `over` of its name: `over` describes no terminal, and
    `data` does, or extends another profile. Such a file may be older than that profile."""
    return not _OF_A_TERMINAL & over.keys() and bool((_OF_A_TERMINAL | {"extends"}) & data.keys())


def _extended(
    one: _Written, find: Callable[[str], _Written | None], chain: tuple[str, ...] = ()
) -> list[Mapping[str, Any]]:
    """Returns the layers of `one`, on top of those of the profile that it extends; `chain` has the names before it."""
    data, base_name = one.data, one.data.get("extends")
    if not isinstance(base_name, str):
        return list(one.layers)
    chain = (*chain, one.path.stem)
    where = f"{one.path}:{line_of(one.text, ('extends',))}: extends"
    if base_name in chain:
        circle = " → ".join((*chain[chain.index(base_name) :], base_name))
        own = "; a file of a profile's name overrides it without that" if len(chain) == 1 else ""
        raise ConfigError(f"{where}: these profiles extend each other in a circle: {circle}{own}", file=str(one.path))
    if (base := find(base_name)) is None:
        raise ConfigError(f"{where}: no profile {base_name[:80]!r}; 'profiles list' names them", file=str(one.path))
    inherited = [{"command": base_name}, *_extended(base, find, chain)]
    _profile(base.path, base.text, inherited)  # so that an error in that file names that file
    command = _merged(inherited)["command"]
    left = {*_ITS_OWN, *(_OF_ONE_PROGRAM if data.get("command", command) != command else ())}
    kept = [{key: value for key, value in layer.items() if key not in left} for layer in inherited]
    return [*kept, *one.layers]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(unreadable(path, error), file=str(path)) from None


def _parse_toml(path: Path, text: str) -> dict[str, Any]:
    data = parse_toml(text, path)
    for key in {"name", "source"} & data.keys():  # ours
        where = f"{path}:{line_of(text, (key,))}"
        raise ConfigError(f"{where}: unknown key {key!r}: a profile is named by its file", file=str(path))
    return data


def _overlay(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `over` on top of `base`, tables merged key by key, everything else replaced."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = _overlay(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result
