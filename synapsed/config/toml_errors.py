"""Errors in a TOML file of the user's, with file, line, key and the nearest known key."""

import difflib
import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from synapsed.errors import ConfigError
from synapsed.model.released_names import CONFIG_KEYS, installing
from synapsed.shared.regex import regex

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """Returns the tables of the file at `path`, whose text is `text`. Raises ConfigError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(describe_syntax(error, path), file=str(path)) from None
    except (ValueError, RecursionError):  # from Python itself, which names no place
        raise ConfigError(f"{path}: has a number of too many digits, or too many brackets", file=str(path)) from None


def describe_validation(
    error: ValidationError, path: Path, text: str, model: type[BaseModel], inside: Sequence[int | str] = ()
) -> str:
    """Returns the first error in `text`, with file, line, key, and for an unknown key the nearest known one. `inside`
    leads to the table of the file that was validated as a whole `model`."""
    data = tomllib.loads(text)
    for step in inside:
        data = data[step]  # type: ignore[index]  # a number where it is a list
    errors = [((*inside, *_written(data, each)), each) for each in error.errors()]
    steps, first = errors[0]
    location = [str(part) for part in steps]
    key = location[-1] if location else ""
    line = line_of(text, _place(steps, first))
    where = f"{path}:{line}" if line else str(path)
    dotted = ".".join(location)
    name = key if len(location) == 3 and location[0] == "agents" else dotted
    installed = name == key != dotted and key in model.model_fields  # a section that stands in an agent's table
    of_agents = key == dotted and key in _known_keys(model, ["agents"])  # and not at the top
    part = None if installed or of_agents else CONFIG_KEYS.get(name)
    if first["type"] == "extra_forbidden" and part is not None:
        how = f"{command}, or take it out" if (command := installing(part)) else "take it out"
        return f"{where}: {dotted!r} belongs to the part {part}, which is not installed: {how}"
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, _known_keys(model, location[len(inside) : -1]), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        hint = "; it belongs in the table of an agent, [agents.NAME]" if of_agents else hint
        return f"{where}: unknown key {dotted!r}{hint}"
    # A value of several kinds has an error for each.
    wrong = dict.fromkeys(_in_toml(each, dotted) for at, each in errors if at == steps)
    return f"{where}: {dotted}: {', or '.join(wrong)}"


def _place(steps: "_Steps", error: "ErrorDetails") -> "_Steps":
    """Returns the steps to the error's place: for a list with too many tables, to the first that is too many."""
    if error["type"] == "missing":
        return steps[:-1]
    if error["type"] == "too_long" and isinstance(error["input"], list):
        return [*steps, error["ctx"]["max_length"]]
    return steps


def describe_syntax(error: tomllib.TOMLDecodeError, path: Path) -> str:
    """Returns the reason why the file at `path` is no TOML."""
    reason, at, place = str(error).partition(" (at line ")
    line, _, column = place.rstrip(")").partition(", column ")
    where = f"{path}:{line}: {reason} at column {column}" if at else f"{path}: {reason}"
    return f"{where}; what has backslashes stands in single quotes" if "'\\'" in reason else where


def _written(data: Any, error: "ErrorDetails") -> tuple[int | str, ...]:
    """Returns the steps to the error in the file, without those that only name the kind of value that was tried."""
    steps = error["loc"]
    for number, step in enumerate(steps):
        if isinstance(data, dict) and step not in data and data.get("type") == step:
            return _written_below(data, error, number)
        inner = dict(enumerate(data)) if isinstance(data, list) else data
        if isinstance(inner, dict) and step in inner:
            data = inner[step]
        else:
            return steps if error["type"] == "missing" and number == len(steps) - 1 else steps[:number]
    return steps


_KINDS = {
    "string_type": "a string",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
}
_BOUNDS = {
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "finite_number": "must be a number that is not infinite",
    "int_parsing_size": "must be a smaller number",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must be of the form {pattern}",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "union_tag_invalid": "{discriminator} must be one of {expected_tags}, not {tag!r}",
    "union_tag_not_found": "{discriminator} is missing",
}
_ABOUT = regex(r"^Input should |^Value error, ")


def _in_toml(error: "ErrorDetails", key: str) -> str:
    """Returns the error in words for an author of TOML, and the right form."""
    if error["type"] == "missing":
        return "is missing"
    kind = _KINDS.get(error["type"])
    if (bound := _BOUNDS.get(error["type"])) is not None:
        return _of_bound(bound, error)
    if kind is None:
        about = _ABOUT.match(error["msg"])
        said = error["msg"][about.end() :] if about else error["msg"]
        return f"must {said}" if about and "should" in about[0] else said
    match error["type"], error["input"]:
        case "list_type", str() | int() | float() as one:
            return f"must be a list: [{json.dumps(one, ensure_ascii=False)}]"
        case "list_type", dict():
            return f"must be a list; one of tables is written [[{key}]]"
        case "string_type", list():
            return "must be a string, not a list"
        case _ if kind == "a table":
            return f"must be one table: [{key}]"
        case _:
            return f"must be {kind}"


def _of_bound(bound: str, error: "ErrorDetails") -> str:
    bounds = error.get("ctx", {}).items()
    told = bound.format(**{name: int(one) if str(one).endswith(".0") else one for name, one in bounds})
    if error["type"] == "too_long":
        return f"{told}, and has {len(error['input'])}: take some out"
    return re.sub(r"\b1 (character|entrie)s", lambda found: f"1 {found[1].replace('ie', 'y')}", told)


def unreadable(path: Path, error: OSError | UnicodeDecodeError) -> str:
    """Returns the reason why the file at `path` cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        return f"{path}: is not UTF-8 (byte {error.start})"
    return f"{path}: {error.strerror or error}"


_TABLE = regex(r"\s*(?P<array>\[)?\[(?P<name>[^\[\]]+)\]")

type _Steps = Sequence[int | str]


def line_of(text: str, steps: _Steps) -> int | None:
    """Returns the line of the key at `steps`: in the innermost table that leads to it, else the first line that has it.
    For an element of a list, it is the line of the list's key."""
    end = max((number for number, step in enumerate(steps, 1) if isinstance(step, str)), default=0)
    key = str(steps[end - 1]) if end else ""
    pattern = re.compile(rf"(?:^|[\[.\s{{,\"']){re.escape(key)}(?:[\]\s=.\"']|$)")
    tables = _Tables()
    best, line_of_best = -1, None
    for number, line in enumerate(text.splitlines(), 1):
        table = tables.at(line)
        fits = len(table) + 1 if table == tuple(steps[: len(table)]) else 0
        if fits > best and pattern.search(line):
            best, line_of_best = fits, number
    return line_of_best


class _Tables:
    """Finds the table of a line, as steps: arrays of tables with the number of the element."""

    def __init__(self) -> None:
        self._here: tuple[int | str, ...] = ()
        self._elements: dict[tuple[int | str, ...], int] = {}

    def at(self, line: str) -> tuple[int | str, ...]:
        header = _TABLE.match(line)
        if header is not None:
            self._here = ()
            *before, last = (part.strip(" \t\"'") for part in header["name"].split("."))
            for name in before:
                self._enter(name)
            if header["array"]:
                array = (*self._here, last)
                self._elements[array] = self._elements.get(array, -1) + 1
            self._enter(last)
        return self._here

    def _enter(self, name: str) -> None:
        self._here += (name,)
        if (element := self._elements.get(self._here)) is not None:
            self._here += (element,)


def _known_keys(model: type[BaseModel], path: list[str]) -> list[str]:
    current: type[BaseModel] = model
    for part in path:
        field = current.model_fields.get(part)
        nested = _nested_model(field.annotation) if field is not None else None
        if nested is not None:
            current = nested
    return list(current.model_fields)


def _nested_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        if (found := _nested_model(argument)) is not None:
            return found
    return None


def _written_below(data: Any, error: "ErrorDetails", at: int) -> tuple[int | str, ...]:
    """Returns the steps of `_written` to an error in the table `data`, whose kind the step `at` only names."""
    steps = error["loc"]
    below: ErrorDetails = {**error, "loc": steps[at + 1 :]}
    return (*steps[:at], *_written(data, below))
