"""Reads the person's own settings of an agent's program, as far as additions to a launch depend on them.

`read` reads their files, arguments and variables, as the profile's `SettingsSpec` describes them. `judge` is pure: it
finds additions to leave out because of those settings, settings that go into a file of synapsed's, and the consequences
in words.
"""

import json
import tomllib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from synapsed.interfaces import PersonSettings, RefusingRules, SettingsReading
from synapsed.kernel import Kernel, Running
from synapsed.profiles.library import KeysSpec, SettingsNote, SettingsSpec, Yields
from synapsed.shared.regex import regex

SIZE_MAX = 1 << 20
"""Most characters of a file of settings; a larger one is skipped, and reported."""

_VARIABLE = regex(r"\$(\w+)")
_COMMENTS = regex(r'("(?:\\.|[^"\\])*+")|/\*[\s\S]*?\*/|//[^\n]*|,(?=\s*[\]}])')
_SAME_KEYS = {"return": "enter", "esc": "escape"}


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings from one place, which `source` names for people."""

    source: str
    values: Mapping[str, Any]
    in_folder: bool = False
    """True if the file is in the agent's folder, and may belong to a repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Settings that were found."""

    layers: tuple[Layer, ...] = ()
    """The weakest comes first."""
    keys: Layer | None = None
    documents: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    """The person's own arguments, without a document that goes into a file of synapsed's."""
    unread: tuple[str, ...] = ()
    """Existing files that could not be read, with the reasons."""


def read(spec: SettingsSpec, *, env: Mapping[str, str], cwd: str, args: Sequence[str]) -> Read:
    """Reads the settings, from some small files. Never raises."""
    reader = _Reader(env, cwd)
    layers = [layer for paths in spec.files if (layer := reader.load(paths, spec.format)) is not None]
    layers += [Layer(name, _filled(values, env[name])) for name, values in spec.env.items() if env.get(name)]
    documents = {}
    for name, places in spec.merged.items():
        if (found := reader.first(places, spec.format)) is not None:
            documents[name] = dict(found.values)
            layers.insert(0, found)
    rest: list[str] = []
    end = args.index("--") if "--" in args and not spec.beyond else len(args)  # the words after it are no options
    for words, value in _options(args[:end], spec):
        name = words[0].partition("=")[0]
        if spec.into is not None and name == spec.document and value is not None:
            if (document := reader.document(name, value, spec.format)) is not None:
                documents[spec.into] = dict(document.values)
                layers.append(document)
                continue
        elif (values := _stands_for(spec, name, value)) is not None:
            layers.append(Layer(name if value is None else f"{name} {value}", values))
        rest += words
    keys = None
    for paths in spec.keys.files if spec.keys is not None else ():
        keys = reader.load(paths, spec.keys.format if spec.keys is not None else "json") or keys
    return Read(
        layers=tuple(layers), keys=keys, documents=documents, args=(*rest, *args[end:]), unread=tuple(reader.unread)
    )


class _Reader:
    """Reads files of settings, as the program finds them."""

    def __init__(self, env: Mapping[str, str], cwd: str) -> None:
        self._env = env
        self._cwd = cwd
        self.unread: list[str] = []

    def load(self, paths: str | list[str], form: str) -> Layer | None:
        """Returns the file at the first of `paths` whose variables are set; None if no such file can be read."""
        path = self._place(paths)
        if path is None:
            return None
        try:
            in_folder = isinstance(paths, str) and paths[0] not in "/$~"
            return Layer(self._shown(path), _parsed(_text(path), form), in_folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, RecursionError) as error:
            self.unread.append(f"{self._shown(path)} cannot be read ({error}): what it says is not known")
            return None

    def first(self, places: Sequence[str], form: str) -> Layer | None:
        """Returns the first of these files that can be read."""
        return next((layer for place in places if (layer := self.load(place, form)) is not None), None)

    def document(self, option: str, value: str, form: str) -> Layer | None:
        """Returns an option's value, or the file that it names; None if it is neither, which the program itself
        reports."""
        if not value.lstrip().startswith("{"):
            found = self.load(value, form)
            return None if found is None else replace(found, in_folder=False)
        try:
            return Layer(option, _parsed(value, form))
        except (ValueError, RecursionError):
            return None

    def _place(self, paths: str | list[str]) -> Path | None:
        for path in [paths] if isinstance(paths, str) else paths:
            if all(self._env.get(name) for name in _VARIABLE.findall(path)):
                return Path(self._cwd, _VARIABLE.sub(lambda match: self._env[match[1]], path)).expanduser()
        return None

    def _shown(self, path: Path) -> str:
        home = self._env.get("HOME")
        return f"~/{path.relative_to(home)}" if home and path.is_relative_to(home) else str(path)


def judge(spec: SettingsSpec, found: Read, replaced: Collection[str] = ()) -> PersonSettings:
    """Returns the consequences of the person's settings, when the channels in `replaced` are not used."""
    notes, loses = list(found.unread), set[RefusingRules]()
    lost_by: list[str] = []
    layers = list(found.layers)
    for each in spec.yields:
        layers, refused = _without_folders(layers, each)
        notes += refused
    for note in spec.notes:
        if note.channel not in replaced and (said := _note_text(note, layers)) is not None:
            notes += [said] if note.told else []
            lost_by += [said] if note.loses else []
            loses |= set(note.loses)
    keys = _bound_otherwise(spec.keys, found.keys) if spec.keys and found.keys else ""
    own = _at(layers, spec.instructions) if spec.instructions else None
    return PersonSettings(
        notes=(*notes, *([keys] if keys else ())),
        withheld=tuple(tuple(each.args) for each in spec.yields if _at(layers, each.to) is not None),
        documents=found.documents,
        loses=frozenset(loses),
        lost_by=tuple(lost_by),
        keys=keys,
        instructions=own[0] if own is not None and isinstance(own[0], str) else "",
    )


def _without_folders(layers: Sequence[Layer], said: Yields) -> tuple[list[Layer], list[str]]:
    """Returns the layers without the settings that a repository may not have, and the consequences."""
    kept, notes = [], []
    for layer in layers:
        value = _value(layer.values, said.to)
        if layer.in_folder and isinstance(value, str | bool) and value in said.not_by_folder:
            where = f"{said.to} = {_word(value)} in {layer.source}"
            notes.append(f"{where}: not followed, as that may be a repository's; say so in settings of your own")
            layer = Layer(layer.source, _without(layer.values, said.to), in_folder=True)  # noqa: PLW2901
        kept.append(layer)
    return kept, notes


def _without(values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Returns the document without the value at `path`."""
    first, _, rest = path.partition(".")
    if not rest:
        return {key: value for key, value in values.items() if key != first}
    return {key: _without(value, rest) if key == first else value for key, value in values.items()}


def _note_text(note: SettingsNote, layers: Sequence[Layer]) -> str | None:
    if note.lacks:
        values = [value for layer in layers for value in _every(_value(layer.values, note.path))]
        return note.says if not any(value in note.lacks for value in values) else None
    if (found := _at(layers, note.path)) is None:
        return None
    value, source = found
    if "*" not in note.values and not any(value == each and type(value) is type(each) for each in note.values):
        return None
    place = f"{note.path} = {_word(value)} in {source}" if "/" in source else source
    return f"{place}: {note.says}"


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _at(layers: Sequence[Layer], path: str) -> tuple[Any, str] | None:
    """Returns the value at `path` that counts, and its place."""
    for layer in reversed(layers):
        if (value := _value(layer.values, path)) is not None:
            return value, layer.source
    return None


def _value(values: Any, path: str) -> Any:
    for part in path.split(".") if path else ():
        if not isinstance(values, Mapping):
            return None
        values = values.get(part)
    return values


def _every(value: Any) -> Iterator[Any]:
    """Yields all values of a document."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _every(item)
    elif isinstance(value, list):
        for item in value:
            yield from _every(item)
    else:
        yield value


# --- keys ---


def _bound_otherwise(spec: KeysSpec, found: Layer) -> str:
    """Returns, in words, the keys that synapsed presses and that do something else; empty if there are no such keys."""
    at = _value(found.values, spec.at)
    otherwise = _taken if spec.adapter == "bindings" else _moved
    lost = [f"{key} ({action})" for action, key in spec.pressed.items() if otherwise(at, spec, action, key)]
    return f"{found.source} binds {', '.join(lost)} otherwise: what is pressed here may not do it" if lost else ""


def _taken(at: Any, spec: KeysSpec, action: str, key: str) -> bool:
    """Returns True if the key is bound: its last binding counts; `-command` removes one."""
    lost = False
    for bound, does in _bindings(at, spec):
        if _key(bound) == _key(key):
            lost = (lost or does == f"-{action}") if does is not None and does.startswith("-") else does != action
    return lost


def _bindings(at: Any, spec: KeysSpec) -> Iterator[tuple[str, str | None]]:
    listed = at.get("") if isinstance(at, Mapping) else at
    for item in listed if isinstance(listed, list) else ():
        if not isinstance(item, Mapping):
            continue
        if isinstance(item.get("bindings"), Mapping):
            if not spec.contexts or item.get("context") in spec.contexts:
                yield from ((str(key), _text_or_none(does)) for key, does in item["bindings"].items())
        elif isinstance(item.get("key"), str):
            yield item["key"], _text_or_none(item.get("command"))


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _moved(at: Any, spec: KeysSpec, action: str, key: str) -> bool:
    """Returns True if the action is moved: a named action has the named keys, and no others."""
    keys = _value(at, action)
    if keys is None:
        return False
    named = keys if isinstance(keys, list) else str(keys).split(",")
    return _key(key) not in [_key(each) for each in named if isinstance(each, str)]


def _key(name: str) -> str:
    name = name.strip().casefold()
    return _SAME_KEYS.get(name, name)


# --- files and arguments ---


def _text(path: Path) -> str:
    if not path.is_file():  # reading a pipe would block
        raise FileNotFoundError(path)
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(SIZE_MAX + 1)
    if len(text) > SIZE_MAX:
        raise ValueError(f"more than {SIZE_MAX} characters")
    return text


def _parsed(text: str, form: str) -> dict[str, Any]:
    if form == "toml":
        return tomllib.loads(text)
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        found = json.loads(_COMMENTS.sub(lambda match: match[1] or "", text))
    if isinstance(found, list):
        return {"": found}
    if not isinstance(found, dict):
        raise ValueError("no object of JSON")  # noqa: TRY004 - like other faults of the file
    return found


def _assigned(text: str) -> dict[str, Any]:
    name, _, value = text.partition("=")
    try:
        return tomllib.loads(f"{name}={value}")
    except (ValueError, RecursionError):  # a word without quotes is a string there
        try:
            return tomllib.loads(f"{name}={json.dumps(value.strip())}")
        except (ValueError, RecursionError):
            return {}


def _options(args: Sequence[str], spec: SettingsSpec) -> Iterator[tuple[list[str], str | None]]:
    """Yields the arguments; an argument that takes the next one as its value is yielded together with it."""
    valued = {name.partition(" ")[0] for name in spec.options if " " in name} | {*spec.assignments, spec.document}
    words = iter(args)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in valued or not name.startswith("-"):
            yield [word], None
        elif equals:
            yield [word], value
        else:
            follows = next(words, None)
            yield [word, *([follows] if follows is not None else [])], follows


def _stands_for(spec: SettingsSpec, name: str, value: str | None) -> dict[str, Any] | None:
    """Returns the settings that this argument means; None if it means no setting."""
    if value is not None and name in spec.assignments:
        return _assigned(value)
    named = [(option.partition(" "), given) for option, given in spec.options.items()]
    wanted = [given for (own, takes, _), given in named if own == name and bool(takes) is (value is not None)]
    return _filled(wanted[0], value or "") if wanted else None


def _filled(template: Mapping[str, Any], value: str) -> dict[str, Any]:
    """Returns the template's settings with the option's value; dots in a path separate nested keys."""
    filled: dict[str, Any] = {}
    for path, wanted in template.items():
        *above, last = path.replace("{value}", value).split(".")
        at = filled
        for part in above:
            at = at.setdefault(part, {})
        at[last] = wanted.replace("{value}", value) if isinstance(wanted, str) else wanted
    return filled


class ReadingSettings(Running):
    def __init__(self) -> None:
        self.provides = {SettingsReading: self}

    def read(
        self, spec: SettingsSpec, *, env: Mapping[str, str], cwd: str, args: Sequence[str], replaced: Collection[str]
    ) -> tuple[tuple[str, ...], PersonSettings]:
        """Implements `SettingsReading`."""
        found = read(spec, env=env, cwd=cwd, args=args)
        return found.args, judge(spec, found, replaced)


@asynccontextmanager
async def opened(_: Kernel) -> AsyncIterator[Running]:
    yield ReadingSettings()
