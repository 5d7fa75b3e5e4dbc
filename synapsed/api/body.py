"""Request bodies: strict JSON, then a schema that names the errors in it."""

from typing import Any

from aiohttp import web
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from synapsed.api.context import CONTEXT, rights_of
from synapsed.api.memory_reservation import SMALL_BODY, others_first, reserve_body
from synapsed.api.rights import Standing
from synapsed.documents.reading import KEYS_MAX, VALUES_MAX, TooMuch, read
from synapsed.errors import InvalidRequest, TooLarge

ERRORS_TOLD = 10
"""Faults of one body that are listed."""


async def parse_json(raw: bytes) -> Any:
    """Returns a JSON text's value. Raises InvalidRequest for a text that `synapsed.documents.reading` does not take."""
    try:
        return await read(raw)
    except TooMuch as error:
        raise InvalidRequest(
            f"the body has too much in it: {error}", keys_max=KEYS_MAX, values_max=VALUES_MAX
        ) from error
    except ValueError as error:
        raise InvalidRequest(f"the body is not valid JSON: {error}") from error


async def read_body(request: web.Request, *, times: int = 1) -> bytes:
    """Returns the request's body, once there is room for it. `times`: how many times the usual memory is needed, if
    more copies are held at once. Raises Busy, and TooLarge for a large body of an unknown caller: idle uploads of
    strangers must not take the room."""
    context = request.app[CONTEXT]
    small = request.content_length is not None and request.content_length <= SMALL_BODY
    if not small and request.can_read_body and rights_of(request).standing is Standing.NONE:
        raise TooLarge(f"of an unknown caller a body has at most {SMALL_BODY} bytes, and a 'Content-Length'")
    await reserve_body(request, context.bodies, context.limits.body, times=times)
    return await request.read()


async def read_model[T: BaseModel](request: web.Request, schema: type[T]) -> T:
    """Returns the body as `schema`; a missing body counts as `{}`. Raises InvalidRequest, which names the field."""
    raw = await read_body(request)
    value = await parse_json(raw) if raw.strip() else {}
    await others_first(request)
    if not isinstance(value, dict):
        raise InvalidRequest(f"the body must be a JSON object, not {_kind(value)}", expected="object")
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        raise _invalid(error, value, schema) from error


def _invalid(error: ValidationError, value: Any, schema: type[BaseModel]) -> InvalidRequest:
    """Returns a schema's errors as one: the first in the message, all in `details.errors`."""
    errors = [
        {"field": _place(fault["loc"], value), "expected": _expected(fault, schema)}
        for fault in error.errors(include_url=False, include_context=False, include_input=False)[:ERRORS_TOLD]
    ]
    first = errors[0]
    return InvalidRequest(f"{first['field']}: {first['expected']}", field=first["field"], errors=errors)


def _place(steps: tuple[int | str, ...], value: Any) -> str:
    """Returns the place of an error in the body, without the names of kinds that the schema puts among the steps."""
    place, kind = [], None
    for number, step in enumerate(steps, 1):
        if kind is not value and isinstance(value, dict) and number < len(steps) and value.get("type") == step:
            kind = value
            continue
        place.append(str(step))
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            value = None
    return ".".join(place) or "body"


def _expected(fault: ErrorDetails, schema: type[BaseModel]) -> str:
    if fault["type"] != "extra_forbidden":
        return fault["msg"]
    known = f"; there are {', '.join(schema.model_fields)}" if len(fault["loc"]) == 1 else ""
    return f"no such key is known{known}"


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
