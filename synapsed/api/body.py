"""Request bodies: JSON that is what it says, then a schema that names what is wrong with it."""

import json
from typing import Any, NoReturn

from aiohttp import web
from pydantic import BaseModel, TypeAdapter, ValidationError

from synapsed.api.context import CONTEXT
from synapsed.errors import InvalidRequest

__all__ = ["integer_query", "invalid", "json_response", "model_response", "parse_json", "read_model"]

ERRORS_TOLD = 10
"""Faults of one body that are listed."""
INPUT_SHOWN = 100
"""Characters of a wrong value that are shown."""


def parse_json(raw: bytes, nesting: int) -> Any:
    """The value of a JSON text in UTF-8. Raises InvalidRequest; NaN, infinities and lone surrogates are not JSON."""
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
        if b"\\u" in raw:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise InvalidRequest(f"the body is not valid UTF-8 text: {error.reason}") from error
    except json.JSONDecodeError as error:
        message = f"the body is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise InvalidRequest(message, line=error.lineno, column=error.colno) from error
    except RecursionError:
        raise InvalidRequest(f"the body is nested deeper than {nesting} levels") from None
    except ValueError as error:
        raise InvalidRequest(f"the body is not valid JSON: {error}") from error
    if _deeper_than(value, nesting):
        raise InvalidRequest(f"the body is nested deeper than {nesting} levels", limit=nesting)
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _deeper_than(value: Any, limit: int) -> bool:
    """Level by level, so that no nesting is too deep to be told."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


async def read_model[T: BaseModel](request: web.Request, schema: type[T]) -> T:
    """The request's body as `schema`. No body counts as `{}`. Raises InvalidRequest naming field and expectation."""
    raw = await request.read()
    value = parse_json(raw, request.app[CONTEXT].limits.nesting) if raw.strip() else {}
    if not isinstance(value, dict):
        raise InvalidRequest(f"the body must be a JSON object, not {_kind(value)}", expected="object")
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        raise invalid(error) from error


def invalid(error: ValidationError) -> InvalidRequest:
    """A schema's faults as one error: the first in the message, all in `details.errors`."""
    errors = [
        {"field": ".".join(str(step) for step in fault["loc"]) or "body", "expected": fault["msg"]}
        for fault in error.errors(include_url=False, include_context=False, include_input=False)[:ERRORS_TOLD]
    ]
    first = errors[0]
    return InvalidRequest(f"{first['field']}: {first['expected']}", field=first["field"], errors=errors)


def integer_query(request: web.Request, name: str, default: int, low: int, high: int) -> int:
    """The integer of the query, `default` where it is not given. Raises InvalidRequest outside `low`…`high`."""
    text = request.query.get(name)
    if text is None:
        return default
    expected = f"an integer from {low} to {high}"
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(text) <= high):
        raise InvalidRequest(f"{name}: must be {expected}, not {text[:INPUT_SHOWN]!r}", field=name, expected=expected)
    return int(text)


def json_response(value: Any, *, status: int = 200) -> web.Response:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return web.Response(text=text, status=status, content_type="application/json")


def model_response[T](adapter: TypeAdapter[T], value: T) -> web.Response:
    """A model, or what `adapter` is for, as JSON with the names of the wire."""
    body = adapter.dump_json(value, by_alias=True)
    return web.Response(body=body, content_type="application/json", charset="utf-8")


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
