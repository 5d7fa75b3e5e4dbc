"""What is wrong in a TOML file of the user's, told by file, line, key and the nearest known key."""

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

__all__ = ["describe_validation", "unreadable"]


def describe_validation(error: ValidationError, path: Path, text: str, model: type[BaseModel]) -> str:
    """The first thing wrong in `text`, with file, line, key, and for an unknown key the nearest known one."""
    first = error.errors()[0]
    steps = first["loc"]
    location = [str(part) for part in steps]
    key = location[-1] if location else ""
    line = _line_of(text, steps[:-1] if first["type"] == "missing" else steps)
    where = f"{path}:{line}" if line else str(path)
    dotted = ".".join(location)
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, _known_keys(model, location[:-1]), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{where}: unknown key {dotted!r}{hint}"
    return f"{where}: {dotted}: {first['msg'].removeprefix('Value error, ')}"


def unreadable(path: Path, error: OSError | UnicodeDecodeError) -> str:
    """Why the file at `path` cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        return f"{path}: is not UTF-8 (byte {error.start})"
    return f"{path}: {error.strerror or error}"


_TABLE = re.compile(r"\s*(?P<array>\[)?\[(?P<name>[^\[\]]+)\]")

type _Steps = Sequence[int | str]


def _line_of(text: str, steps: _Steps) -> int | None:
    """Where the key at `steps` stands: in the innermost table that leads to it, else the first line that has it. Of
    one that has a list, that is the key's line too."""
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
    """Which table a line is in, as steps: arrays of tables with the number of the element."""

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
