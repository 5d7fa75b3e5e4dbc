"""A2A over JSON-RPC 2.0 (specification 9): envelope, version, dispatch. It knows nothing of HTTP but a status.

Only `A2A-Version` says if a request speaks 1.0 or 0.3 (3.6.2): each has methods of its own.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from http import HTTPStatus
from typing import Any, Final

import structlog

from synapsed.a2a_types.a2a_errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    A2aError,
    from_synapsed,
    invalid_params,
    rpc_failure,
)
from synapsed.a2a_types.extensions import activated
from synapsed.documents.writing import has_large
from synapsed.errors import Busy, Forbidden, SynapsedError, Unauthorized
from synapsed.parts.a2a.endpoint_types import MessageReply, StreamReply, headers_of
from synapsed.parts.a2a.methods import Method
from synapsed.parts.a2a.operations import RequestScope
from synapsed.parts.a2a.params import parse
from synapsed.parts.a2a.v03 import METHODS_03, STREAMING_03, Dialect03
from synapsed.parts.a2a.version import V03, V10, require_version

type RequestId = str | int | float | None
ID_MAX: Final = 1024
"""Most characters of a request's id: every event of a stream repeats it."""
NAME_SHOWN: Final = 60
"""Most characters of an unknown method that are shown."""

log = structlog.get_logger("synapsed.a2a")


class JsonRpc:
    """The endpoint of every agent. `methods03` are the operations for clients of 0.3."""

    def __init__(self, methods: Iterable[Method], methods03: Iterable[Method]) -> None:
        self._methods = {method.name: method for method in methods}
        self._v03 = Dialect03(methods03)

    async def handle(
        self, agent_id: str, caller: RequestScope, body: Any, version: str | None
    ) -> MessageReply | StreamReply:
        """Answers one request, which is any JSON value. `version` is the client's (3.6): None means 0.3."""
        request_id: RequestId = None
        streams = False
        try:
            request_id = _request_id(body)
            name, params = _envelope(body)
            activated(caller.extensions)
            if require_version(version, V10, V03) == V03:
                streams = name in STREAMING_03
                answer = await self._v03.answer(agent_id, caller, name, params)
            else:
                _require_10(body)
                answer = await self._answer(agent_id, caller, name, params)
            if isinstance(answer, AsyncGenerator):
                return StreamReply(_envelopes(request_id, answer))
            return MessageReply(_result(request_id, answer))
        except (A2aError, SynapsedError) as error:
            reply = _refusal(request_id, error)
            # A client of 0.3 that asked for a stream takes nothing else, a refusal neither.
            return StreamReply(_only(reply.body)) if streams and reply.status == HTTPStatus.OK else reply
        except Exception:  # noqa: BLE001 - the boundary of a protocol with a shape of its own for what nobody foresaw
            return MessageReply(_internal(request_id))

    async def _answer(self, agent_id: str, caller: RequestScope, name: str, params: dict[str, Any]) -> Any:
        method = self._methods.get(name)
        if method is None:
            shown = name[:NAME_SHOWN]
            hint = "; it is one of 0.3: send 'A2A-Version: 0.3'" if name in METHODS_03 else ""
            raise A2aError(METHOD_NOT_FOUND, f"there is no method {shown!r}{hint}", metadata={"method": shown})
        request = parse(params, method.request)
        if has_large(params):
            await asyncio.sleep(0)  # parsing took long, and so does the next step
        if method.stream is not None:
            return await method.stream(agent_id, caller, request)
        assert method.call is not None
        return await method.call(agent_id, caller, request)

    @staticmethod
    def parse_error(message: str) -> MessageReply:
        """Returns the answer to a body that is no JSON."""
        return MessageReply(rpc_failure(None, A2aError(PARSE_ERROR, message)))

    @staticmethod
    def refused(body: Any, error: SynapsedError) -> MessageReply:
        """Returns the answer to a request that reaches no agent."""
        return _refusal(_request_id(body), error)


def _request_id(body: Any) -> RequestId:
    """Returns the id to answer with; null if the request has no valid one."""
    found = body.get("id") if isinstance(body, dict) else None
    return found if _is_id(found) else None


def _is_id(found: Any) -> bool:
    if isinstance(found, str):
        return len(found) <= ID_MAX
    return found is None or (isinstance(found, int | float) and not isinstance(found, bool))


def _envelope(body: Any) -> tuple[str, dict[str, Any]]:
    """Returns method and parameters; the method is empty if it is no string."""
    if not isinstance(body, dict):
        what = "batches are not part of A2A" if isinstance(body, list) else "a request is a JSON object"
        raise A2aError(INVALID_REQUEST, what)
    if body.get("jsonrpc") != "2.0":
        raise A2aError(INVALID_REQUEST, "jsonrpc: must be exactly '2.0'")
    if not _is_id(body.get("id")):
        raise A2aError(INVALID_REQUEST, f"id: must be a string of at most {ID_MAX} characters, a number or null")
    method = body.get("method")
    if not method:
        raise A2aError(INVALID_REQUEST, "method: is required")
    params = {} if (given := body.get("params")) is None else given  # null is said by those who leave nothing out
    if not isinstance(params, dict):
        raise invalid_params("params", "must be an object")
    return method if isinstance(method, str) else "", params


def _require_10(body: dict[str, Any]) -> None:
    """Checks the members that JSON-RPC demands and the test kit of 0.3 does not: it sends requests without an id, and
    objects as methods, and expects the errors for their other faults."""
    if "id" not in body:
        raise A2aError(INVALID_REQUEST, "id: is required; A2A has no notifications")
    if not isinstance(body["method"], str):
        raise A2aError(INVALID_REQUEST, "method: must be a string")


async def _only(body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
    yield body


async def _envelopes(request_id: RequestId, results: AsyncGenerator[dict[str, Any]]) -> AsyncGenerator[dict[str, Any]]:
    try:
        async for result in results:
            yield _result(request_id, result)
            del result  # it may be large, and the next one may be long in coming
    except (A2aError, SynapsedError) as error:
        yield _refusal(request_id, error).body
    except Exception:  # noqa: BLE001 - the head of the response is out: the envelope is the only way left to say it
        yield _internal(request_id)
    finally:
        await results.aclose()


def _result(request_id: RequestId, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def _refusal(request_id: RequestId, error: A2aError | SynapsedError) -> MessageReply:
    """Returns the refusal. A caller without the right gets HTTP's status too, as the specification demands for
    authentication (7), and HTTP's headers: how to prove who it is, and when to try again."""
    status = error.http if isinstance(error, Forbidden | Unauthorized | Busy) else 200
    told = error if isinstance(error, A2aError) else from_synapsed(error)
    return MessageReply(rpc_failure(request_id, told), status, headers_of(error))


def _internal(request_id: RequestId) -> dict[str, Any]:
    log.exception("request failed")
    return rpc_failure(request_id, A2aError(INTERNAL_ERROR, "the daemon failed on this request; its log says why"))
