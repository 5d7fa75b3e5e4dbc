"""Errors become HTTP here and nowhere else: `{"error": {"code", "message", "details"}}` (DESIGN §6)."""

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import structlog
from aiohttp import web

from synapsed.errors import HTTP_STATUS, SynapsedError, UnknownAgent

__all__ = ["Handler", "body_of", "problem", "problems"]

type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

RETRY_AFTER = 5
"""Seconds told to a client of a full queue when the error names none."""

_HTTP_CODES = {
    HTTPStatus.NOT_FOUND: ("NOT_FOUND", "there is nothing at this path"),
    HTTPStatus.METHOD_NOT_ALLOWED: ("METHOD_NOT_ALLOWED", "this path does not take this method"),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ("TOO_LARGE", "the body is larger than this server takes"),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: ("UNSUPPORTED_MEDIA", "this media type is not taken here"),
}

log = structlog.get_logger("synapsed.api")


def body_of(error: SynapsedError) -> dict[str, Any]:
    """The error as it goes over the wire, in HTTP and in WebSocket frames alike."""
    return {"error": {"code": error.code, "message": error.message, "details": error.details}}


def problem(error: SynapsedError) -> web.Response:
    """The response for an error of the tree."""
    headers = {}
    if error.code == "QUEUE_FULL":
        headers["Retry-After"] = str(error.details.get("retry_after", RETRY_AFTER))
    elif error.code == "UNAUTHORIZED":
        headers["WWW-Authenticate"] = 'Bearer realm="synapsed"'
    return _response(HTTP_STATUS.get(error.code, 500), body_of(error), headers)


def _response(status: int, body: dict[str, Any], headers: dict[str, str]) -> web.Response:
    text = json.dumps(body, ensure_ascii=False, default=str)
    return web.Response(status=status, text=text, content_type="application/json", headers=headers)


def _http_problem(error: web.HTTPException) -> web.Response:
    """aiohttp's own refusals (no route, wrong method, body too large), in our shape."""
    code, message = _HTTP_CODES.get(HTTPStatus(error.status), ("INVALID_REQUEST", error.reason))
    headers = {name: error.headers[name] for name in ("Allow",) if name in error.headers}
    details = {"allow": headers["Allow"].split(",")} if "Allow" in headers else {}
    return _response(error.status, {"error": {"code": code, "message": message, "details": details}}, headers)


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The outermost middleware. What nobody foresaw is logged whole and told as INTERNAL, without its inside."""
    try:
        return await handler(request)
    except SynapsedError as error:
        response = problem(error)
        if isinstance(error, UnknownAgent) and "port" in error.details:
            response.force_close()  # the next connection to this port may find another agent, or a stranger
        return response
    except web.HTTPException as error:
        if error.status < HTTPStatus.BAD_REQUEST:
            raise
        return _http_problem(error)
    except (ConnectionError, TimeoutError):
        if request.transport is None or request.transport.is_closing():
            raise  # the client has left: nobody is there to be told
        return _internal(request)
    except Exception:  # noqa: BLE001 - the boundary: a bug in one request must not be seen outside, nor end the daemon
        return _internal(request)


def _internal(request: web.Request) -> web.Response:
    log.exception("request failed", method=request.method, path=request.path)
    return problem(SynapsedError("the daemon failed on this request; its log says why"))
