"""Answers requests that no route and no middleware sees: those that are not HTTP, too long, or of another version of
HTTP. The answers have the form of all errors; the connection ends if aiohttp cannot read on."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import structlog
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMethod, HttpProcessingError, InvalidURLError, LineTooLong

from synapsed.api.problems import http_problem, plain_problem, what_is_wrong
from synapsed.shared.regex import regex

LINE_MAX = 65_536
"""Bytes of a request's target: a parameter of 4,096 characters takes up to 12 bytes for each when it is encoded."""
FIELD_MAX = 8_190
"""Bytes of a header, with its name."""
HEADERS_MAX = 128

_UNKNOWN_METHOD = regex(r"b['\"]([A-Za-z0-9!#$%&*+.^_`|~-]{1,30}) \S+ HTTP/1\.[01]")

log = structlog.get_logger("synapsed.api")


def speaking(server: web.Server, loop: asyncio.AbstractEventLoop) -> Callable[[], web.RequestHandler]:
    """Returns the factory of `server`'s protocols, each for one connection."""
    server.request_handler = _in_our_shape(server.request_handler)
    server.request_factory = _alone_if_chunked(server.request_factory)
    return lambda: _Speaker(
        server,
        loop=loop,
        access_log=None,  # type: ignore[arg-type]  # none is kept
        max_line_size=LINE_MAX,
        max_headers=HEADERS_MAX,
        max_field_size=FIELD_MAX,
        auto_decompress=False,  # room is for the bytes as sent, and 10 KB can become 10 MB: `security` refuses it
    )


class _Speaker(web.RequestHandler):
    __slots__ = ()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Returns the answer to a request that could not be read, or failed outside of everything else. The connection
        ends with the answer."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already")
        if isinstance(exc, ConnectionError) and request.transport is None:
            raise exc  # the client has left in the middle of a body: nothing failed, and an answer has no reader
        if isinstance(exc, HttpProcessingError):
            response = _unread(exc)
        else:
            log.error("request failed", method=request.method, exc_info=exc)
            response = plain_problem(500, "INTERNAL", "the daemon failed on this request; its log says why")
        response.force_close()
        return response


def _unread(error: HttpProcessingError) -> web.Response:
    """Returns the answer to bytes that are no request, by the parser's error."""
    if isinstance(error, LineTooLong):
        limit = error.args[1]
        what = ("the target of a request", 414) if limit == LINE_MAX else ("a header", 431)
        return plain_problem(what[1], "TOO_LARGE", f"{what[0]} may have {limit} bytes: send less", limit=limit)
    if error.message.startswith("Too many headers"):
        return plain_problem(
            431, "TOO_LARGE", f"a request may have {HEADERS_MAX} headers: send fewer", limit=HEADERS_MAX
        )
    if isinstance(error, BadHttpMethod):
        if "HTTPS" in error.message:
            return _invalid("this port speaks HTTP without TLS: use http://")
        if (method := _UNKNOWN_METHOD.search(error.message)) is not None:
            return plain_problem(
                501, "METHOD_NOT_ALLOWED", f"there is no method {method[1]}; GET and its like are in capitals"
            )
        return _invalid("this is no request: this port speaks HTTP/1.1")
    if isinstance(error, InvalidURLError):
        return _invalid("the target of the request is no URL: percent-encode what may not stand in one")
    if "PRI/Upgrade" in error.message:
        return _other_version("HTTP/2")
    return _invalid(f"the request cannot be read: {what_is_wrong(error)}")


def _invalid(message: str) -> web.Response:
    return plain_problem(400, "INVALID_REQUEST", message)


def _other_version(version: str) -> web.Response:
    return plain_problem(505, "INVALID_REQUEST", f"{version} is not supported: use HTTP/1.1")


def _alone_if_chunked(make: Callable[..., web.BaseRequest]) -> Any:
    """Wraps `make`, so that a connection ends with its first request in chunks: aiohttp's parser takes the last line
    after the chunks for a header of the next request, which is another client's behind a proxy."""

    def request(message: Any, *others: Any) -> web.BaseRequest:
        return make(message._replace(should_close=True) if message.chunked else message, *others)

    return request


def _in_our_shape(handle: Callable[[Any], Awaitable[web.StreamResponse]]) -> Any:
    """Wraps `handle` for requests that neither aiohttp nor our routes could handle."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.version.major != 1:
            response = _other_version(f"HTTP/{request.version.major}.{request.version.minor}")
            response.force_close()
            return response
        if (name := _not_utf8(request)) is not None:
            return plain_problem(400, "INVALID_REQUEST", f"the header {name} is not UTF-8", field=name)
        try:
            return await handle(request)
        except web.HTTPException as error:  # an `Expect` that aiohttp does not know: it asks no middleware
            if error.status < HTTPStatus.BAD_REQUEST:
                raise
            return http_problem(error)

    return answer


def _not_utf8(request: web.BaseRequest) -> str | None:
    """Returns the first header whose bytes are no text: aiohttp passes them on as lone surrogates, which no answer and
    no record can hold. Cookies belong to other servers on this machine, and are not read here."""
    for name, value in request.headers.items():
        if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value) and name.lower() != "cookie":
            return name
    return None
