"""A2A 1.0 over JSON-RPC 2.0 (specification 9): envelope, version, dispatch. Knows nothing of HTTP but a status."""

import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Final

import structlog
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format
from google.protobuf.message import Message as ProtoMessage

from synapsed.a2a.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    PUSH_NOT_SUPPORTED,
    UNSUPPORTED_OPERATION,
    VERSION_NOT_SUPPORTED,
    A2aError,
    from_synapsed,
    invalid_params,
    rpc_error,
)
from synapsed.a2a.operations import Caller, Operations
from synapsed.a2a.replies import Reply, Stream
from synapsed.errors import HTTP_STATUS, Forbidden, SynapsedError, Unauthorized
from synapsed.interfaces import Control

__all__ = ["JsonRpc"]

VERSION: Final = "1.0"
_VERSION = re.compile(r"(\d{1,4}\.\d{1,4})(\.\d{1,6})?")
_FAILED_FIELD = re.compile(r"Failed to parse (\w+) field")
_PUSH_METHODS = frozenset(f"{verb}TaskPushNotificationConfig" for verb in ("Create", "Get", "Delete")) | {
    "ListTaskPushNotificationConfigs"
}
_OBJECTS = frozenset({"message", "configuration", "metadata"})
"""Parameters of which the SDK's parser makes an empty message where they are no objects."""
_STATES = frozenset(pb.TaskState.values()) - {pb.TaskState.TASK_STATE_UNSPECIFIED}
type RequestId = str | int | float | None

log = structlog.get_logger("synapsed.a2a")


type _Call = Callable[[str, Caller, Any], Coroutine[Any, Any, dict[str, Any]]]
type _Streaming = Callable[[str, Caller, Any], Coroutine[Any, Any, AsyncGenerator[dict[str, Any]]]]


class JsonRpc:
    """The endpoint of every agent."""

    def __init__(self, control: Control) -> None:
        operations = Operations(control)
        self._calls: dict[str, tuple[type[ProtoMessage], _Call]] = {
            "SendMessage": (pb.SendMessageRequest, operations.send_message),
            "GetTask": (pb.GetTaskRequest, operations.get_task),
            "ListTasks": (pb.ListTasksRequest, operations.list_tasks),
            "CancelTask": (pb.CancelTaskRequest, operations.cancel_task),
        }
        self._streams: dict[str, tuple[type[ProtoMessage], _Streaming]] = {
            "SendStreamingMessage": (pb.SendMessageRequest, operations.stream_message),
            "SubscribeToTask": (pb.SubscribeToTaskRequest, operations.subscribe),
        }

    async def handle(self, agent_id: str, caller: Caller, body: Any, version: str | None) -> Reply | Stream:
        """Answer one request, which is any JSON value. `version` is what the client said (3.6): none means 0.3."""
        request_id: RequestId = None
        try:
            request_id = _request_id(body)
            method, params = _envelope(body)
            _check_version(version)
            if method in self._streams:
                kind, stream = self._streams[method]
                return Stream(_envelopes(request_id, await stream(agent_id, caller, _parse(params, kind))))
            if method in self._calls:
                kind, call = self._calls[method]
                return Reply(_result(request_id, await call(agent_id, caller, _parse(params, kind))))
            return _refusal(request_id, _no_method(method))
        except (A2aError, SynapsedError) as error:
            return _refusal(request_id, error)
        except Exception:  # noqa: BLE001 - the boundary of a protocol with a shape of its own for what nobody foresaw
            return Reply(_internal(request_id))

    @staticmethod
    def parse_error(message: str) -> Reply:
        """The answer to a body that is no JSON."""
        return Reply(_error(None, A2aError(PARSE_ERROR, message)))

    @staticmethod
    def refused(body: Any, error: SynapsedError) -> Reply:
        """The answer to a request that reaches no agent."""
        return _refusal(_request_id(body), error)


def _request_id(body: Any) -> RequestId:
    """The id to answer with; null where the request has none that can be given back."""
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, str | int | float) and not isinstance(found, bool) else None


def _envelope(body: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(body, dict):
        what = "batches are not part of A2A" if isinstance(body, list) else "a request is a JSON object"
        raise A2aError(INVALID_REQUEST, what)
    if body.get("jsonrpc") != "2.0":
        raise A2aError(INVALID_REQUEST, "jsonrpc: must be exactly '2.0'")
    if isinstance(body.get("id"), bool | dict | list):
        raise A2aError(INVALID_REQUEST, "id: must be a string, a number or null")
    method = body.get("method")
    if not isinstance(method, str) or not method:
        raise A2aError(INVALID_REQUEST, "method: must be a string")
    params = body.get("params", {})
    if not isinstance(params, dict):
        raise A2aError(INVALID_PARAMS, "params: must be an object", violations=(("params", "must be an object"),))
    return method, params


def _check_version(version: str | None) -> None:
    """Major and minor count, the patch does not."""
    said = version or "0.3"
    match = _VERSION.fullmatch(said.strip())
    if match is None or match[1] != VERSION:
        hint = "" if version else " (none was sent, which means 0.3)"
        raise A2aError(
            VERSION_NOT_SUPPORTED,
            f"A2A-Version {said[:20]!r} is not served{hint}; send 'A2A-Version: {VERSION}'",
            metadata={"requestedVersion": said[:20], "supportedVersions": VERSION},
        )


def _no_method(method: str) -> A2aError:
    if method in _PUSH_METHODS:
        return A2aError(PUSH_NOT_SUPPORTED, "push notifications are not offered")
    if method == "GetExtendedAgentCard":
        return A2aError(UNSUPPORTED_OPERATION, "there is no extended card")
    return A2aError(METHOD_NOT_FOUND, f"there is no method {method[:60]!r}", metadata={"method": method[:60]})


def _parse[M: ProtoMessage](params: dict[str, Any], kind: type[M]) -> M:
    """ProtoJSON with unknown fields ignored, as the specification wants. The SDK's parser makes nothing of an unknown
    enum value then; where that would change the meaning silently it is refused here."""
    message = kind()
    for name in _OBJECTS & params.keys():
        if not isinstance(params[name], dict | None):
            raise invalid_params(name, "must be an object")
    try:
        json_format.ParseDict(params, message, ignore_unknown_fields=True)
    except (json_format.ParseError, TypeError, ValueError, AttributeError) as error:
        field = ".".join(_FAILED_FIELD.findall(str(error))) or "params"
        raise invalid_params(field, f"is not what it should be: {str(error)[-200:]}") from error
    if isinstance(message, pb.ListTasksRequest) and params.get("status") is not None and message.status not in _STATES:
        raise invalid_params("status", f"must be one of {', '.join(pb.TaskState.keys()[1:])}")
    return message


async def _envelopes(request_id: RequestId, results: AsyncGenerator[dict[str, Any]]) -> AsyncGenerator[dict[str, Any]]:
    try:
        async for result in results:
            yield _result(request_id, result)
    except (A2aError, SynapsedError) as error:
        yield _refusal(request_id, error).body
    except Exception:  # noqa: BLE001 - the head of the response is out: the envelope is the only way left to say it
        yield _internal(request_id)
    finally:
        await results.aclose()


def _result(request_id: RequestId, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def _error(request_id: RequestId, error: A2aError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": rpc_error(error)}


def _refusal(request_id: RequestId, error: A2aError | SynapsedError) -> Reply:
    """Who may not is told by HTTP's status too, as the specification has it for authentication (7)."""
    status = HTTP_STATUS[error.code] if isinstance(error, Forbidden | Unauthorized) else 200
    return Reply(_error(request_id, error if isinstance(error, A2aError) else from_synapsed(error)), status)


def _internal(request_id: RequestId) -> dict[str, Any]:
    log.exception("request failed")
    return _error(request_id, A2aError(INTERNAL_ERROR, "the daemon failed on this request; its log says why"))
