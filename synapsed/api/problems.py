"""Turns all errors into HTTP answers: `{"error": {"code", "message", "details"}}` (docs/http-api.md), except for routes
of protocols that have their own form (`refusing_as`)."""

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from synapsed.api.describe import meant
from synapsed.errors import InvalidRequest, NotKnownYet, SynapsedError, TooLarge, UnknownAgent

type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
type Shape = Callable[[web.Request, SynapsedError, int], web.Response]
"""Writes an error in another form than ours; it gets the HTTP status."""
_SHAPE = "__synapsed_problem__"

RETRY_AFTER = 5
"""Seconds for a client of a full queue to wait if the error names none."""

_HTTP_CODES = {
    HTTPStatus.NOT_FOUND: ("NOT_FOUND", "there is nothing at this path"),
    HTTPStatus.METHOD_NOT_ALLOWED: ("METHOD_NOT_ALLOWED", "this path does not take this method"),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ("TOO_LARGE", "the body is larger than this server takes"),
    HTTPStatus.REQUEST_TIMEOUT: ("TIMEOUT", "the body did not come in time: send it whole, and again"),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: ("UNSUPPORTED_MEDIA", "this media type is not taken here"),
    HTTPStatus.EXPECTATION_FAILED: ("INVALID_REQUEST", "the only supported value of Expect is 100-continue"),
}

log = structlog.get_logger("synapsed.api")


def body_of(error: SynapsedError) -> dict[str, Any]:
    """Returns the error as it goes over the wire, in HTTP and in WebSocket frames alike."""
    return {"error": {"code": error.code, "message": error.message, "details": error.details}}


def refusing_as(shape: Shape) -> Callable[[Handler], Handler]:
    """Marks a route of a protocol that has a form of its own for errors."""

    def mark(handler: Handler) -> Handler:
        setattr(handler, _SHAPE, shape)
        return handler

    return mark


def problem(error: SynapsedError) -> web.Response:
    """Returns the response for an error of synapsed's own (`synapsed.errors`)."""
    return _response(error.http, body_of(error), refusal_headers(error))


def refusal_headers(error: SynapsedError) -> dict[str, str]:
    """Returns the headers of a refusal: when to try again, or how to prove who it is."""
    if error.code in ("QUEUE_FULL", "BUSY", "LOCKED_OUT") or isinstance(error, NotKnownYet):
        return {"Retry-After": str(error.details.get("retry_after", RETRY_AFTER))}
    if error.code == "UNAUTHORIZED":
        return {"WWW-Authenticate": 'Bearer realm="synapsed"'}
    return {}


def _shaped(request: web.Request, error: SynapsedError) -> web.Response:
    """Returns the error in the form of the request's route."""
    shape: Shape | None = getattr(meant(request.match_info.handler), _SHAPE, None)
    if shape is None:
        return problem(error)
    response = shape(request, error, error.http)
    response.headers.update(refusal_headers(error))
    return response


def plain_problem(status: int, code: str, message: str, **details: Any) -> web.Response:
    """Returns the response for an error of HTTP itself, which has no class in `synapsed.errors`."""
    body = {"error": {"code": code, "message": message, "details": details}}
    return _response(status, body, {"X-Content-Type-Options": "nosniff"})


def _response(status: int, body: dict[str, Any], headers: dict[str, str]) -> web.Response:
    text = json.dumps(body, ensure_ascii=False, default=str)
    return web.Response(status=status, text=text, content_type="application/json", headers=headers)


def http_problem(error: web.HTTPException) -> web.Response:
    """Returns the response for a refusal by aiohttp (no route, wrong method, large body), in our errors' form."""
    told = error.text if error.text != f"{error.status}: {error.reason}" else None
    code, message = _HTTP_CODES.get(HTTPStatus(error.status), ("INVALID_REQUEST", told or error.reason))
    headers = {name: error.headers[name] for name in ("Allow",) if name in error.headers}
    details = {"allow": headers["Allow"].split(",")} if "Allow" in headers else {}
    return _response(error.status, {"error": {"code": code, "message": message, "details": details}}, headers)


def what_is_wrong(error: Exception) -> str:
    """Returns aiohttp's error about bytes that it cannot read, without the bytes."""
    said = error.message if isinstance(error, HttpProcessingError) else str(error).partition("message:")[2]
    return said.strip().partition("\n")[0].strip(" .:")


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Handles all exceptions of the gate and the route. An unexpected one is logged whole and answered with INTERNAL,
    without its details."""
    try:
        return await handler(request)
    except SynapsedError as error:
        response = _shaped(request, error)
        if isinstance(error, UnknownAgent) and "port" in error.details:
            response.force_close()  # the next connection to this port may find another agent, or a stranger
        return response
    except web.HTTPRequestEntityTooLarge:
        return _shaped(request, TooLarge(_HTTP_CODES[HTTPStatus.REQUEST_ENTITY_TOO_LARGE][1]))
    except (web.RequestPayloadError, HttpProcessingError) as error:  # chunks, or a content coding
        response = _shaped(request, InvalidRequest(f"the body cannot be read: {what_is_wrong(error)}"))
        response.force_close()
        return response
    except web.HTTPException as error:
        if error.status < HTTPStatus.BAD_REQUEST:
            raise
        return http_problem(error)
    except (ConnectionError, TimeoutError):
        if request.transport is None or request.transport.is_closing():
            raise  # the client has left: an answer would have no reader
        return _internal(request)
    except Exception:  # noqa: BLE001 - the boundary: a bug in one request must not be seen outside, nor end the daemon
        return _internal(request)


def _internal(request: web.Request) -> web.Response:
    log.exception("request failed", method=request.method, path=request.path)
    return _shaped(request, SynapsedError("the daemon failed on this request; its log says why"))
