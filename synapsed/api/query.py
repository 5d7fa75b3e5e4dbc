"""Parameters of queries: a model for each kind of query, which is read from a request and describes itself for the
OpenAPI document. A wrong value of a parameter raises InvalidRequest, with its name and the expected values."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Self, get_args

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from synapsed.errors import InvalidRequest
from synapsed.interfaces import EventLog

INPUT_SHOWN = 100
"""Characters of a wrong value that are shown."""
TEXT_MAX = 4096
"""Characters of a text: the same limit as for a path."""
EVENT_ID_MAX = 2**63 - 1
NAMES_MAX = 100
NAME_MAX = 200


@dataclass(frozen=True, slots=True)
class ReadAs:
    """Conversion of a parameter's text to its value, and its JSON Schema. `read` gets the parameter's name and its
    text, and raises InvalidRequest."""

    read: Callable[[str, str], Any]
    schema: dict[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(lambda text, info: self.read(info.field_name or "", text))


class Query(BaseModel):
    """The parameters of one route, by name, with their default values."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def of(cls, request: web.Request) -> Self:
        """Returns the query. Raises InvalidRequest. `check_names` has refused unknown and doubled names before."""
        return cls.model_validate(dict(request.query))

    @classmethod
    def parameters(cls) -> list[dict[str, Any]]:
        """Returns parameter objects of OpenAPI 3.1."""
        told = []
        for name, field in cls.model_fields.items():
            schema = dict(next(each for each in field.metadata if isinstance(each, ReadAs)).schema)
            if field.default is not None:
                schema.setdefault("default", field.default)
            one = {"name": field.alias or name, "in": "query", "required": False}
            one |= {"description": field.description, "schema": schema}
            if schema["type"] == "array":
                one |= {"style": "form", "explode": False}
            told.append(one)
        return told


def check_names(request: web.Request, query: type[Query] | None) -> None:
    """Raises InvalidRequest for a parameter that the route does not take, since a misspelt one must not be ignored
    silently, and for one that came twice."""
    if not request.query_string:
        return
    names = [one["name"] for one in query.parameters() if one["in"] == "query"] if query is not None else []
    for name in request.query:
        if name not in names:
            takes = f"it takes {', '.join(names)}" if names else "it takes none"
            raise InvalidRequest(f"{name[:INPUT_SHOWN]}: this path has no such parameter; {takes}", offered=names)
        if len(request.query.getall(name)) > 1:
            raise InvalidRequest(f"{name}: came more than once", field=name)


def between(low: int, high: int) -> ReadAs:
    """Returns the type of an integer from `low` to `high`."""

    def read(name: str, text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(text) <= high):
            raise _wrong(name, text, f"an integer from {low} to {high}")
        return int(text)

    return ReadAs(read, {"type": "integer", "minimum": low, "maximum": high})


def one_of(choice: Any) -> ReadAs:
    """Returns the type of one of the words of a Literal."""
    options = get_args(getattr(choice, "__value__", choice))

    def read(name: str, text: str) -> str:
        if text not in options:
            message = f"{name}: {text[:INPUT_SHOWN]!r} is not offered; there are {', '.join(options)}"
            raise InvalidRequest(message, field=name, offered=list(options))
        return text

    return ReadAs(read, {"type": "string", "enum": list(options)})


def some_of(options: Sequence[str]) -> ReadAs:
    """Returns the type of several of the `options`, with commas between them."""

    def read(name: str, text: str) -> list[str]:
        words = text.split(",")
        if not set(words) <= set(options):
            raise InvalidRequest(f"{name}: must be of {', '.join(options)}", field=name, expected=list(options))
        return words

    return ReadAs(read, {"type": "array", "items": {"type": "string", "enum": list(options)}, "minItems": 1})


def text_like(pattern: str, expected: str) -> ReadAs:
    """Returns the type of a text that matches `pattern`, as JSON Schema and `re` take it; `expected` describes it."""

    def read(name: str, text: str) -> str:
        if len(text) > TEXT_MAX or "\0" in text or not re.search(pattern, text):
            raise _wrong(name, text, expected)
        return text

    return ReadAs(read, {"type": "string", "maxLength": TEXT_MAX, "pattern": pattern})


def time_span(high: float) -> ReadAs:
    """Returns the type of a time such as `50ms` or `2s`, at most `high` seconds."""
    form = r"^([0-9]{1,5})(ms|s)$"

    def read(name: str, text: str) -> float:
        found = re.fullmatch(form, text)
        seconds = int(found[1]) / (1000 if found[2] == "ms" else 1) if found else high + 1
        if seconds > high:
            raise _wrong(name, text, f"a time such as 50ms or 2s, at most {high:g}s")
        return seconds

    return ReadAs(read, {"type": "string", "pattern": form, "example": "50ms"})


def _wrong(name: str, text: str, expected: str) -> InvalidRequest:
    return InvalidRequest(f"{name}: must be {expected}, not {text[:INPUT_SHOWN]!r}", field=name, expected=expected)


_ON = ("1", "true", "yes")
_OFF = ("0", "false", "no")
_FLAG = "^({})$".format(
    "|".join("".join(f"[{char.upper()}{char}]" if char.isalpha() else char for char in word) for word in (*_ON, *_OFF))
)
"""Pattern of the words; JSON Schema has no expression for letters of any case."""


def _flag(name: str, text: str) -> bool:
    if not text.isascii() or text.lower() not in (*_ON, *_OFF):
        raise _wrong(name, text, "1 or 0")
    return text.lower() in _ON


def flag(about: str) -> Any:
    """Returns the field of a `Flag`, which is off by default."""
    return Field(default=False, description=f"{about}: 1 or 0, true or false, yes or no")


def _names(name: str, text: str) -> list[str]:
    names = text.split(",")
    if len(names) > NAMES_MAX or not all(0 < len(one) <= NAME_MAX and one.isprintable() for one in names):
        raise _wrong(name, text, f"1 to {NAMES_MAX} names of at most {NAME_MAX} characters, commas between")
    return names


_NAME = {"type": "string", "minLength": 1, "maxLength": NAME_MAX, "pattern": r"^[^,\u0000-\u001f\u007f]+$"}


def _time(name: str, text: str) -> float:
    try:
        when = datetime.fromisoformat(text.upper())
        if when.tzinfo is not None:
            return when.timestamp()
    except (ValueError, OverflowError):
        pass
    raise _wrong(name, text, "a time such as 2026-01-31T14:00:00Z")


Flag = Annotated[bool, ReadAs(_flag, {"type": "string", "pattern": _FLAG, "default": "0"})]
"""Its words are accepted in capital and small letters, because programs write their own form (`True`); a name without a
value is refused, because it is neither on nor off."""
Text = Annotated[str | None, text_like(r"^[^\u0000]*$", f"at most {TEXT_MAX} characters, none of them NUL")]
"""A text without NUL: no name and no path has one."""
Names = Annotated[
    list[str] | None, ReadAs(_names, {"type": "array", "items": _NAME, "minItems": 1, "maxItems": NAMES_MAX})
]
"""One or several names or ids, with commas between them. The route looks them up."""
Time = Annotated[float | None, ReadAs(_time, {"type": "string", "format": "date-time"})]
"""A time of RFC 3339, in seconds since the epoch."""

_EventId = Annotated[
    str | None, ReadAs(lambda _, text: text, {"type": "integer", "minimum": 0, "maximum": EVENT_ID_MAX})
]
"""Checked by `Resumed.cursor`, which knows the log."""
_HEADER = "Last-Event-ID"
_GO_ON = "go on after the event with this id"


class Resumed(Query):
    """Parameters for the place where a stream goes on; the header is a parameter too."""

    header: _EventId = Field(None, alias="Last-Event-ID", description=_GO_ON)
    query: _EventId = Field(None, alias="lastEventId", description=f"{_GO_ON}: for clients that cannot set headers")
    after: _EventId = Field(None, description=f"{_GO_ON}: the same, shorter")

    @classmethod
    def of(cls, request: web.Request) -> Self:
        header = {_HEADER: request.headers[_HEADER]} if _HEADER in request.headers else {}
        return cls.model_validate({**request.query, **header})

    @classmethod
    def parameters(cls) -> list[dict[str, Any]]:
        return [{**one, "in": "header"} if one["name"] == _HEADER else one for one in super().parameters()]

    def cursor(self, log: EventLog, default: int) -> int:
        """Returns the first of the three that is given. Raises InvalidRequest for a value that is no id of this log: a
        client that went on silently would miss events."""
        cursors = [_event_id(text, log.last_id) for text in (self.header, self.query, self.after) if text is not None]
        return cursors[0] if cursors else default


def _event_id(text: str, newest: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        message = (
            f"the cursor (Last-Event-ID, lastEventId or after) must be an id of an event, not {text[:INPUT_SHOWN]!r}"
        )
        raise InvalidRequest(message, field="lastEventId")
    if int(text) > newest:
        raise InvalidRequest(f"there is no event {text} yet; the newest is {newest}", last_id=newest)
    return int(text)
