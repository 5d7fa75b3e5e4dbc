"""What is wrong in a TOML file of the user's, told by file, line, key and the nearest known key."""

import difflib
import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

__all__ = ["describe_validation"]


def describe_validation(error: ValidationError, path: Path, text: str, model: type[BaseModel]) -> str:
    """The first thing wrong in `text`, with file, line, key, and for an unknown key the nearest known one."""
    first = error.errors()[0]
    location = [str(part) for part in first["loc"]]
    key = location[-1] if location else ""
    line = _line_of(text, location)
    where = f"{path}:{line}" if line else str(path)
    dotted = ".".join(location)
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, _known_keys(model, location[:-1]), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{where}: unknown key {dotted!r}{hint}"
    return f"{where}: {dotted}: {first['msg'].removeprefix('Value error, ')}"


_TABLE = re.compile(r"\s*\[+([^\[\]]+)\]")


def _line_of(text: str, location: list[str]) -> int | None:
    """Where the key at `location` stands: in the innermost table that leads to it, else the first line that has it."""
    key = location[-1] if location else ""
    pattern = re.compile(rf"(?:^|[\[.\s{{,\"']){re.escape(key)}(?:[\]\s=.\"']|$)")
    table: list[str] = []
    best, line_of_best = -1, None
    for number, line in enumerate(text.splitlines(), 1):
        if (header := _TABLE.match(line)) is not None:
            table = [part.strip(" \t\"'") for part in header[1].split(".")]
        fits = len(table) + 1 if table == location[: len(table)] else 0
        if fits > best and pattern.search(line):
            best, line_of_best = fits, number
    return line_of_best


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
