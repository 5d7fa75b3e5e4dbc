"""Makes the OpenAPI 3.1 document from the route table, the descriptions at the handlers, and the pydantic models.

Routes that are described elsewhere are left out (`kernel.Route.described`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import hdrs, web
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from synapsed.api import Description, ErrorAnswer, description_of, is_public, route_of
from synapsed.api.operation import Response, Streamed
from synapsed.errors import (
    AmbiguousAddress,
    Busy,
    Forbidden,
    InvalidRequest,
    SynapsedError,
    TaskNotFound,
    TooLarge,
    Unauthorized,
    UnknownAgent,
    UnsupportedMedia,
)
from synapsed.shared.regex import regex

_REFS = "#/components/schemas/{model}"
_PARAMETER = regex(r"\{(\w+)\}")
_PATH: Final = {
    "agent": ("an agent's name, id, `type-port`, or a type with one running instance; a leading `@` is allowed", 128),
    "event": ("an event's id, a number", 20),
    "task": ("a task's id, or its first 8 or more characters", 128),
}
_BEARER: Final[dict[str, list[str]]] = {"bearer": []}
_ABOUT = """Command-line agents in terminals, over HTTP. Errors have one shape everywhere: `ErrorAnswer`.

On loopback no token is needed but for `/control/…`; the Unix socket serves everything without one. On an agent's own
port the routes below `/agents/{agent}` stand at the root. A protocol with a specification of its own is described by
that."""


@dataclass(frozen=True, slots=True)
class Operation:
    path: str
    method: str
    handler: Any
    described: Description | None
    """Description, or None if it is missing."""


def operations(app: web.Application) -> Iterator[Operation]:
    """Yields the operations of `app`, except those that are described elsewhere; HEAD, which every GET implies, is not
    listed."""
    for route in app.router.routes():
        path = route.resource.canonical if route.resource else ""
        of_part = route_of(route.handler)
        if route.method != hdrs.METH_HEAD and (of_part is None or of_part.described):
            yield Operation(path, route.method.lower(), route.handler, description_of(route.handler))


def document(app: web.Application, *, version: str, server: str) -> dict[str, Any]:
    """Returns the document; `server` is the address that the client used."""
    known = list(operations(app))
    schemas = _Schemas(_models(known))
    paths: dict[str, dict[str, Any]] = {}
    for operation in known:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation, schemas)
    tags = sorted({_tag(operation) for operation in known})
    return {
        "openapi": "3.1.0",
        "info": {"title": "synapsed", "version": version, "description": _ABOUT},
        "servers": [{"url": server}],
        "tags": [{"name": tag} for tag in tags],
        "paths": paths,
        "components": {
            "schemas": schemas.definitions,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "the control token (`state/token`)"}
            },
        },
    }


type _Key = tuple[Any, JsonSchemaMode]


def _models(known: Iterable[Operation]) -> Iterator[_Key]:
    yield ErrorAnswer, "serialization"
    for operation in known:
        if (described := operation.described) is None:
            continue
        if described.body is not None:
            yield described.body, "validation"
        if isinstance(described.answer, Response) and described.answer.model is not None:
            yield described.answer.model, "serialization"


class _Schemas:
    """All models of the document, so that each is defined once, under a unique name."""

    def __init__(self, models: Iterable[_Key]) -> None:
        wanted = list(dict.fromkeys(models))
        adapters = [(number, mode, TypeAdapter(model)) for number, (model, mode) in enumerate(wanted)]
        found, rest = TypeAdapter.json_schemas(adapters, ref_template=_REFS)
        self.definitions: dict[str, Any] = rest.get("$defs", {})
        self._of = {key: found[(number, key[1])] for number, key in enumerate(wanted)}

    def of(self, model: Any, mode: JsonSchemaMode) -> dict[str, Any]:
        return self._of[(model, mode)]


def _operation(operation: Operation, schemas: _Schemas) -> dict[str, Any]:
    described = operation.described
    told: dict[str, Any] = {
        "operationId": _operation_id(operation),
        "summary": described.summary if described else "",
        "tags": [_tag(operation)],
        "security": _security(operation),
    }
    route = route_of(operation.handler)
    own = {} if route is None else route.parameters
    parameters = [_path_parameter(name, own) for name in _PARAMETER.findall(operation.path)]
    if described is not None:
        parameters += described.query.parameters() if described.query is not None else []
        if described.body is not None:
            told["requestBody"] = _body(described.body, schemas)
    if parameters:
        told["parameters"] = parameters
    told["responses"] = _responses(operation, schemas)
    return told


def _operation_id(operation: Operation) -> str:
    return "_".join([operation.method, *re.findall(r"[A-Za-z0-9]+", operation.path)])


def _tag(operation: Operation) -> str:
    """Returns the tag: the name of the handler's module."""
    return str(operation.handler.__module__).rpartition(".")[2]


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    if is_public(operation.handler):
        return []
    return [_BEARER] if operation.path.startswith("/control/") else [{}, _BEARER]


def _path_parameter(name: str, own: Mapping[str, str]) -> dict[str, Any]:
    about, longest = (own[name], 128) if name in own else _PATH.get(name, (name, 256))
    schema = {"type": "string", "minLength": 1, "maxLength": longest}
    return {"name": name, "in": "path", "required": True, "description": about, "schema": schema}


def _body(model: type[BaseModel], schemas: _Schemas) -> dict[str, Any]:
    """Returns the description of the body, which is optional if `{}` is valid."""
    needed = any(one.is_required() for one in model.model_fields.values())
    return {"required": needed, "content": {"application/json": {"schema": schemas.of(model, "validation")}}}


def _responses(operation: Operation, schemas: _Schemas) -> dict[str, Any]:
    described = operation.described
    responses = _success(described.answer, schemas) if described else {}
    by_status: dict[int, list[str]] = {}
    for error in _errors(operation):
        by_status.setdefault(error.http, []).append(error.code)
    for status, codes in sorted(by_status.items()):
        responses[str(status)] = _error(", ".join(dict.fromkeys(codes)), schemas)
    return {**responses, "default": _error("any other error", schemas)}


def _success(answer: Response | Streamed, schemas: _Schemas) -> dict[str, Any]:
    if isinstance(answer, Streamed):
        responses: dict[str, Any] = {}
        if answer.websocket:
            responses["101"] = {"description": f"a WebSocket: {answer.about}"}
        if answer.sse:
            content = {"text/event-stream": {"schema": _SSE}}
            responses["200"] = {"description": f"server-sent events: {answer.about}", "content": content}
        if answer.ends:
            responses["204"] = {"description": "there is nothing after the cursor, and nothing will follow"}
        return responses
    schema: dict[str, Any] | None = None if answer.model is None else schemas.of(answer.model, "serialization")
    told: dict[str, Any] = {
        "description": answer.about,
        "content": {media: {"schema": schema} if schema and "json" in media else {} for media in answer.media},
    }
    if answer.headers:
        told["headers"] = {name: {"description": text, "schema": _TEXT} for name, text in answer.headers.items()}
    responses = {"200": told}
    if "ETag" in answer.headers:
        responses["304"] = {"description": "it is as the client has it"}
    return responses


_TEXT: Final = {"type": "string"}
_SSE: Final = {
    "type": "object",
    "description": "One event of the stream",
    "properties": {"id": _TEXT, "event": _TEXT, "data": _TEXT},
    "required": ["data"],
}
"""Schema of one event. OpenAPI 3.1 does not define what the schema of a stream means; tools read it as that of each
event."""


def _errors(operation: Operation) -> Iterator[type[SynapsedError]]:
    """Yields the errors that follow from the form of the request, then the operation's own."""
    described = operation.described
    names = _PARAMETER.findall(operation.path)
    if "agent" in names:
        yield from (UnknownAgent, AmbiguousAddress)
    if "task" in names:
        yield from (TaskNotFound, AmbiguousAddress, Busy)
    if described is not None and (described.body or described.query):
        yield InvalidRequest
    if described is not None and described.body:
        yield from (TooLarge, UnsupportedMedia, Busy)
    if not is_public(operation.handler):
        yield Unauthorized
    yield Forbidden
    yield from described.errors if described else ()


def _error(about: str, schemas: _Schemas) -> dict[str, Any]:
    content = {"application/json": {"schema": schemas.of(ErrorAnswer, "serialization")}}
    return {"description": about, "content": content}
