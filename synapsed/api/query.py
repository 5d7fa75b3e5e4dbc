"""Parameters of queries: each reads itself out of a request, and describes itself for the OpenAPI document.

What is not among the values that a parameter takes is InvalidRequest, with its name and what is expected.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from aiohttp import web

from synapsed.errors import InvalidRequest

INPUT_SHOWN = 100
"""Characters of a wrong value that are shown."""
TEXT_MAX = 4096
"""Characters of a text: as many as a path may have."""
EVENT_ID_MAX = 2**63 - 1
NAMES_MAX = 100
NAME_MAX = 200


class Parameter(Protocol):
    def described(self) -> list[dict[str, Any]]:
        """Parameter objects of OpenAPI 3.1."""
        ...


def check_names(request: web.Request, known: Sequence[Parameter]) -> None:
    """Raises InvalidRequest for a parameter that the route does not take, since a misspelt one must not be ignored
    silently, and for one that came twice."""
    if not request.query_string:
        return
    names = [one["name"] for parameter in known for one in parameter.described() if one["in"] == "query"]
    for name in request.query:
        if name not in names:
            takes = f"it takes {', '.join(names)}" if names else "it takes none"
            raise InvalidRequest(f"{name[:INPUT_SHOWN]}: this path has no such parameter; {takes}", offered=names)
        if len(request.query.getall(name)) > 1:
            raise InvalidRequest(f"{name}: came more than once", field=name)


@dataclass(frozen=True, slots=True)
class Integer[D: int | None]:
    """From `low` to `high`, `default` where it is not given."""

    name: str
    about: str
    default: D
    low: int
    high: int

    def of(self, request: web.Request) -> int | D:
        text = request.query.get(self.name)
        if text is None:
            return self.default
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and self.low <= int(text) <= self.high):
            raise _wrong(self.name, text, f"an integer from {self.low} to {self.high}")
        return int(text)

    def described(self) -> list[dict[str, Any]]:
        schema: dict[str, Any] = {"type": "integer", "minimum": self.low, "maximum": self.high}
        if self.default is not None:
            schema["default"] = self.default
        return [_described(self.name, self.about, schema)]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the `options`; the first of them where it is not given."""

    name: str
    about: str
    options: Sequence[str]

    def of(self, request: web.Request) -> str:
        text = request.query.get(self.name, self.options[0])
        if text not in self.options:
            raise InvalidRequest(
                f"{self.name}: {text[:INPUT_SHOWN]!r} is not offered; there are {', '.join(self.options)}",
                field=self.name,
                offered=list(self.options),
            )
        return text

    def described(self) -> list[dict[str, Any]]:
        schema = {"type": "string", "enum": list(self.options), "default": self.options[0]}
        return [_described(self.name, self.about, schema)]


@dataclass(frozen=True, slots=True)
class Flag:
    """Off where it is not given. Its words are taken in any case, since programs write their own truth (`True`); a name
    without a value is neither on nor off, and refused."""

    name: str
    about: str

    def of(self, request: web.Request) -> bool:
        text = request.query.get(self.name, "0")
        for words, on in ((_ON, True), (_OFF, False)):
            if text.isascii() and text.lower() in words:
                return on
        raise _wrong(self.name, text, "1 or 0")

    def described(self) -> list[dict[str, Any]]:
        schema = {"type": "string", "pattern": _FLAG, "default": "0"}
        return [_described(self.name, f"{self.about}: 1 or 0, true or false, yes or no", schema)]


_ON = ("1", "true", "yes")
_OFF = ("0", "false", "no")
_FLAG = "^({})$".format(
    "|".join("".join(f"[{char.upper()}{char}]" if char.isalpha() else char for char in word) for word in (*_ON, *_OFF))
)
"""JSON Schema has no expression for letters of any case."""


@dataclass(frozen=True, slots=True)
class Text:
    """None where it is not given. No NUL: no name and no path has one."""

    name: str
    about: str
    pattern: str = r"^[^\u0000]*$"
    """What it must look like, as JSON Schema and `re` both understand it; `expected` says it in words."""
    expected: str = f"at most {TEXT_MAX} characters, none of them NUL"

    def of(self, request: web.Request) -> str | None:
        text = request.query.get(self.name)
        if text is not None and (len(text) > TEXT_MAX or "\0" in text or not re.search(self.pattern, text)):
            raise _wrong(self.name, text, self.expected)
        return text

    def described(self) -> list[dict[str, Any]]:
        schema = {"type": "string", "maxLength": TEXT_MAX, "pattern": self.pattern}
        return [_described(self.name, self.about, schema)]


@dataclass(frozen=True, slots=True)
class Words:
    """Several of the `options`, with commas between them; None where it is not given."""

    name: str
    about: str
    options: Sequence[str]

    def of(self, request: web.Request) -> list[str] | None:
        text = request.query.get(self.name)
        if text is None:
            return None
        words = text.split(",")
        if not set(words) <= set(self.options):
            expected = list(self.options)
            raise InvalidRequest(f"{self.name}: must be of {', '.join(expected)}", field=self.name, expected=expected)
        return words

    def described(self) -> list[dict[str, Any]]:
        schema = {"type": "array", "items": {"type": "string", "enum": list(self.options)}, "minItems": 1}
        return [{**_described(self.name, self.about, schema), "style": "form", "explode": False}]


@dataclass(frozen=True, slots=True)
class Names:
    """One or several names or ids, with commas between them; None where it is not given. What they name is for the
    route to find."""

    name: str
    about: str

    def of(self, request: web.Request) -> list[str] | None:
        text = request.query.get(self.name)
        if text is None:
            return None
        names = text.split(",")
        if len(names) > NAMES_MAX or not all(0 < len(name) <= NAME_MAX and name.isprintable() for name in names):
            raise _wrong(self.name, text, f"1 to {NAMES_MAX} names of at most {NAME_MAX} characters, commas between")
        return names

    def described(self) -> list[dict[str, Any]]:
        item = {"type": "string", "minLength": 1, "maxLength": NAME_MAX, "pattern": r"^[^,\u0000-\u001f\u007f]+$"}
        schema = {"type": "array", "items": item, "minItems": 1, "maxItems": NAMES_MAX}
        return [{**_described(self.name, self.about, schema), "style": "form", "explode": False}]


@dataclass(frozen=True, slots=True)
class Time:
    """A time of RFC 3339, in seconds since the epoch; None where it is not given."""

    name: str
    about: str

    def of(self, request: web.Request) -> float | None:
        text = request.query.get(self.name)
        if text is None:
            return None
        try:
            when = datetime.fromisoformat(text.upper())
            if when.tzinfo is not None:
                return when.timestamp()
        except (ValueError, OverflowError):
            pass
        raise _wrong(self.name, text, "a time such as 2026-01-31T14:00:00Z")

    def described(self) -> list[dict[str, Any]]:
        return [_described(self.name, self.about, {"type": "string", "format": "date-time"})]


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time such as `50ms` or `2s`, in seconds; 0 where it is not given."""

    name: str
    about: str
    high: float

    def of(self, request: web.Request) -> float:
        text = request.query.get(self.name)
        if text is None:
            return 0.0
        found = re.fullmatch(_SPAN, text)
        seconds = int(found[1]) / (1000 if found[2] == "ms" else 1) if found else self.high + 1
        if seconds > self.high:
            raise _wrong(self.name, text, f"a time such as 50ms or 2s, at most {self.high:g}s")
        return seconds

    def described(self) -> list[dict[str, Any]]:
        return [_described(self.name, self.about, {"type": "string", "pattern": _SPAN, "example": "50ms"})]


_SPAN = r"^([0-9]{1,5})(ms|s)$"


class _Cursor:
    """Where a stream goes on; `synapsed.api.sse.cursor_of` reads it."""

    def described(self) -> list[dict[str, Any]]:
        schema = {"type": "integer", "minimum": 0, "maximum": EVENT_ID_MAX}
        about = "go on after the event with this id"
        return [
            _described("Last-Event-ID", about, schema, place="header"),
            _described("lastEventId", f"{about}: for clients that cannot set headers", schema),
            _described("after", f"{about}: the same, shorter", schema),
        ]


CURSOR = _Cursor()


def _described(name: str, about: str, schema: dict[str, Any], *, place: str = "query") -> dict[str, Any]:
    return {"name": name, "in": place, "required": False, "description": about, "schema": schema}


def _wrong(name: str, text: str, expected: str) -> InvalidRequest:
    return InvalidRequest(f"{name}: must be {expected}, not {text[:INPUT_SHOWN]!r}", field=name, expected=expected)
