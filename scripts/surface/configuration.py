"""Keys of the configuration and of profiles with their types and defaults, and what is said of wrong ones."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pydantic import BaseModel

from scripts.surface.schemas import compact, untitled
from scripts.surface.wrong_files import OF_CONFIGURATION, OF_PROFILES, SAMPLES, Wrong
from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError
from synapsed.parts.loading import config_model
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile

_DATE = "1979-05-27"
"""A value of TOML that no key takes."""
_UNKNOWN = "zzz"


def keys() -> Iterator[str]:
    """`config.toml`; a file of `agents.d` has what stands below `agents.NAME`."""
    yield from _described(config_model())


def profile_keys() -> Iterator[str]:
    """A file of `profiles`, and the names of those that come along."""
    yield from _described(Profile)
    yield from (f"(comes along) {name}" for name in ProfileLibrary.builtin().names())


class _Key(NamedTuple):
    """One key: where it stands, with `NAME` for what a person names and `[]` for an element; and what it takes."""

    path: str
    required: bool
    takes: Mapping[str, Any]


def _described(model: type[BaseModel]) -> Iterator[str]:
    for key in _keys(model):
        yield f"{key.path}: {'(required) ' if key.required else ''}{compact(key.takes)}"


def _keys(model: type[BaseModel]) -> Iterator[_Key]:
    schema = untitled(model.model_json_schema())
    yield from _below("", schema, schema.get("$defs", {}), ())


def _below(path: str, schema: Mapping[str, Any], defs: Mapping[str, Any], inside: tuple[str, ...]) -> Iterator[_Key]:
    """The keys of the table `schema` at `path`, and those of the tables in it."""
    required = schema.get("required", ())
    for name, told in schema.get("properties", {}).items():
        key = f"{path}.{name}".removeprefix(".")
        plain = _plain(told, defs, inside)
        if isinstance(told.get("default"), dict):
            plain["default"] = "a table"
        yield _Key(key, name in required, plain)
        for where, table, seen in _tables(key, told, defs, inside):
            yield from _below(where, table, defs, seen)


def _tables(
    path: str, schema: Mapping[str, Any], defs: Mapping[str, Any], inside: tuple[str, ...]
) -> Iterator[tuple[str, Mapping[str, Any], tuple[str, ...]]]:
    """The tables that a value of `schema` may be or have: where they stand, and which definitions lead to each."""
    if (name := _definition(schema)) is not None:
        if name in inside:
            return
        schema, inside = defs[name], (*inside, name)
    if "properties" in schema:
        kind = schema["properties"].get("type", {}).get("const")
        yield (f"{path}({kind})" if kind else path), schema, inside
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _tables(path, one, defs, inside)
    if isinstance(items := schema.get("items"), dict):
        yield from _tables(f"{path}[]", items, defs, inside)
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield from _tables(f"{path}.NAME", values, defs, inside)


def _definition(schema: Mapping[str, Any]) -> str | None:
    return str(schema["$ref"]).rpartition("/")[2] if "$ref" in schema else None


def _plain(schema: Any, defs: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    """`schema` without names of definitions: a table, which has lines of its own, is a table, and all else is said."""
    if isinstance(schema, list):
        return sorted((_plain(one, defs, inside) for one in schema), key=compact)
    if not isinstance(schema, dict):
        return schema
    if (name := _definition(schema)) is not None:
        is_table = "properties" in defs[name] or name in inside
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {**({"type": "table"} if is_table else _plain(defs[name], defs, (*inside, name))), **rest}
    return {
        key: _plain(value, defs, inside) if key != "default" else value
        for key, value in schema.items()
        if key != "discriminator"
    }


def errors() -> Iterator[str]:
    """Wrong configurations, and what is said of each: every key with a value that it does not take, and the table of
    `wrong_files`."""
    yield from _messages([*_of_every_key(config_model(), "config.toml"), *OF_CONFIGURATION], _configuration)


def profile_errors() -> Iterator[str]:
    """The same of profiles."""
    yield from _messages([*_of_every_key(Profile, "profiles/x.toml"), *OF_PROFILES], _profile)


def _configuration(home: Path) -> None:
    load_config(Paths.from_environ({"SYNAPSED_HOME": str(home), "HOME": str(home)}), config_model())


def _profile(home: Path) -> None:
    ProfileLibrary([]).check(home / "profiles" / "x.toml")


def _messages(wrong: list[Wrong], read: Callable[[Path], None]) -> Iterator[str]:
    with TemporaryDirectory() as folder:
        for number, files in enumerate(wrong):
            home = Path(folder) / str(number)
            paths = Paths.from_environ({"SYNAPSED_HOME": str(home), "HOME": str(home)})
            for name, text in files.items():
                path = home / name if name.startswith("profiles/") else paths.config / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            told = " | ".join(f"{name}: {' ⏎ '.join(text.splitlines())}" for name, text in files.items())
            yield f"{told} → {_said(read, home, paths)}"


def _said(read: Callable[[Path], None], home: Path, paths: Paths) -> str:
    try:
        read(home)
    except ConfigError as error:
        return error.message.replace(f"{paths.config}/", "").replace(f"{home}/", "")
    return "(nothing is wrong)"


def _of_every_key(model: type[BaseModel], file: str) -> Iterator[Wrong]:
    """Each key with a value that no key takes, and an unknown key in each table; what else is required is there."""
    keys = [key for key in _keys(model) if "(" not in key.path]  # of tables of several kinds `wrong_files` has some
    needed: dict[str, dict[str, str]] = {"": {}}
    for key in keys:
        table, _, name = key.path.rpartition(".")
        needed.setdefault(table, {})
        if key.required and (sample := SAMPLES.get(key.path, _sample(key.takes))):
            needed[table][name] = sample
    for key in keys:
        yield {file: _toml(key.path, _DATE, needed)}
    for table in needed:
        yield {file: _toml(f"{table}.{_UNKNOWN}".removeprefix("."), "1", needed)}


def _sample(takes: Mapping[str, Any]) -> str:
    """What a required key may have."""
    match takes:
        case {"enum": [first, *_]}:
            return compact(first)
        case {"type": "array"}:
            return '["x"]'
        case {"type": "object" | "table"}:
            return "{}"
        case _:
            return '"x"'


def _toml(key: str, value: str, needed: Mapping[str, Mapping[str, str]]) -> str:
    """A file with `value` at `key`, and beside it and in the tables around it what is `needed` there."""
    place, _, last = key.rpartition(".")
    text = ""
    for table in sorted(table for table in needed if _leads(table, place)):
        mine = {name: sample for name, sample in needed[table].items() if not _leads(f"{table}.{name}", place)}
        if table == place:
            mine[last] = value
        if table and (mine or table.endswith("[]")):
            name = table.replace(".NAME", ".x").replace("[]", "")
            text += f"[[{name}]]\n" if table.endswith("[]") else f"[{name}]\n"
        text += "".join(f"{name} = {sample}\n" for name, sample in mine.items())
    tomllib.loads(text)
    return text


def _leads(table: str, place: str) -> bool:
    """Whether `place` is that table, or in it."""
    table = table.removeprefix(".")
    return not table or place == table or place.startswith((f"{table}.", f"{table}[]"))
