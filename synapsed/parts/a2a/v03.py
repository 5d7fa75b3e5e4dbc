"""A2A 0.3's methods, on the operations of 1.0.

Requests are read by the SDK's types of 0.3 and made into those of 1.0 by its conversions; results are 1.0's JSON, made
into that of 0.3 by `convert03` (docs/adr/0010 says why not by the SDK's `RequestHandler03`).

Where 0.3 is silent the SDKs agree, and so do we: `blocking` is true where it is not given, and a `historyLength` of 0
limits nothing.
"""

import base64
import binascii
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from a2a.compat.v0_3 import conversions
from a2a.compat.v0_3 import types as v03
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format
from pydantic import BaseModel, ValidationError

from synapsed.a2a_types.a2a_errors import METHOD_NOT_FOUND, UNSUPPORTED_OPERATION, A2aError, invalid_params
from synapsed.a2a_types.free_json import check_arrays, packed
from synapsed.parts.a2a.convert03 import push_config03, stream_event03, task03
from synapsed.parts.a2a.methods import Method
from synapsed.parts.a2a.operations import RequestScope
from synapsed.parts.a2a.params import unreadable

type Json = dict[str, Any]

ERRORS_TOLD: Final = 10
"""Most faults of one request that are listed."""


@dataclass(frozen=True, slots=True)
class _Row:
    """Conversion of a request of 0.3 into one for `method` of 1.0, and of its result into one of 0.3."""

    request: type[BaseModel]
    convert: Callable[[Any], Any]
    method: str
    result: Callable[[Json], Any]


_ROWS: Final = {
    "message/send": _Row(
        v03.SendMessageRequest,
        conversions.to_core_send_message_request,
        "SendMessage",
        lambda answer: task03(answer["task"]),
    ),
    "message/stream": _Row(
        v03.SendStreamingMessageRequest,
        conversions.to_core_send_message_request,
        "SendStreamingMessage",
        stream_event03,
    ),
    "tasks/get": _Row(v03.GetTaskRequest, conversions.to_core_get_task_request, "GetTask", task03),
    "tasks/cancel": _Row(v03.CancelTaskRequest, conversions.to_core_cancel_task_request, "CancelTask", task03),
    "tasks/resubscribe": _Row(
        v03.TaskResubscriptionRequest,
        conversions.to_core_subscribe_to_task_request,
        "SubscribeToTask",
        stream_event03,
    ),
    "tasks/pushNotificationConfig/set": _Row(
        v03.SetTaskPushNotificationConfigRequest,
        conversions.to_core_create_task_push_notification_config_request,
        "CreateTaskPushNotificationConfig",
        push_config03,
    ),
    "tasks/pushNotificationConfig/get": _Row(
        v03.GetTaskPushNotificationConfigRequest,
        conversions.to_core_get_task_push_notification_config_request,
        "GetTaskPushNotificationConfig",
        push_config03,
    ),
    "tasks/pushNotificationConfig/list": _Row(
        v03.ListTaskPushNotificationConfigRequest,
        conversions.to_core_list_task_push_notification_config_request,
        "ListTaskPushNotificationConfigs",
        lambda answer: [push_config03(config) for config in answer.get("configs", ())],
    ),
    "tasks/pushNotificationConfig/delete": _Row(
        v03.DeleteTaskPushNotificationConfigRequest,
        conversions.to_core_delete_task_push_notification_config_request,
        "DeleteTaskPushNotificationConfig",
        lambda _: None,
    ),
    "agent/getAuthenticatedExtendedCard": _Row(
        v03.GetAuthenticatedExtendedCardRequest,
        conversions.to_core_get_extended_agent_card_request,
        "GetExtendedAgentCard",
        lambda card: card,  # every card of ours is one of 0.3 too
    ),
}
_ARRAYS: Final = (
    "message.parts",
    "message.extensions",
    "message.referenceTaskIds",
    "configuration.acceptedOutputModes",
    "configuration.pushNotificationConfig.authentication.schemes",
    "pushNotificationConfig.authentication.schemes",
)
"""Places at which the types of 0.3 have arrays."""
METHODS_03: Final = frozenset(_ROWS)
_ANY_CONFIG: Final = frozenset({"", "default"})
"""Ids by which 0.3 asks for the configuration of a task that was given none of its own."""
STREAMING_03: Final = frozenset({"message/stream", "tasks/resubscribe"})


class Dialect03:
    """Answers 0.3's methods, for every agent."""

    def __init__(self, methods: Iterable[Method]) -> None:
        self._methods = {method.name: method for method in methods}

    async def answer(self, agent_id: str, caller: RequestScope, name: str, params: Json) -> Any:
        """Returns the result, or an async generator of the results of a stream. Raises A2aError, SynapsedError."""
        row = _ROWS.get(name)
        if row is None:
            raise self._no_method(name)
        request = _request(row, name, params)
        if isinstance(request, pb.GetTaskPushNotificationConfigRequest) and request.id in _ANY_CONFIG:
            request.id = await self._first_config(agent_id, caller, request.task_id) or request.id
        method = self._methods[row.method]
        if isinstance(request, pb.SubscribeToTaskRequest):
            return _results(await self._resubscribed(agent_id, caller, request), row)
        if method.stream is not None:
            return _results(await method.stream(agent_id, caller, request), row)
        assert method.call is not None
        return row.result(await method.call(agent_id, caller, request))

    async def _resubscribed(
        self, agent_id: str, caller: RequestScope, request: pb.SubscribeToTaskRequest
    ) -> AsyncGenerator[Json]:
        """Yields the task's events; for a task that is over, which 1.0 refuses, the task as it is: a client that lost a
        stream just before its end comes back for that."""
        stream, get = self._methods["SubscribeToTask"].stream, self._methods["GetTask"].call
        assert stream is not None
        assert get is not None
        try:
            return await stream(agent_id, caller, request)
        except A2aError as error:
            if error.code != UNSUPPORTED_OPERATION:
                raise
        return _once({"task": await get(agent_id, caller, pb.GetTaskRequest(id=request.id))})

    async def _first_config(self, agent_id: str, caller: RequestScope, task_id: str) -> str:
        """Returns the id of the task's first push notification configuration, empty if it has none."""
        listing = self._methods["ListTaskPushNotificationConfigs"].call
        assert listing is not None
        found = await listing(agent_id, caller, pb.ListTaskPushNotificationConfigsRequest(task_id=task_id))
        return next((str(config["id"]) for config in found.get("configs", ())), "")

    def _no_method(self, name: str) -> A2aError:
        shown = name[:60]
        hint = "; it is one of 1.0: send 'A2A-Version: 1.0' (none means 0.3)" if name in self._methods else ""
        return A2aError(METHOD_NOT_FOUND, f"A2A 0.3 has no method {shown!r}{hint}", metadata={"method": shown})


async def _once(response: Json) -> AsyncGenerator[Json]:
    yield response


async def _results(responses: AsyncGenerator[Json], row: _Row) -> AsyncGenerator[Json]:
    try:
        async for response in responses:
            yield row.result(response)
            del response  # it may be large, and the next one may be long in coming
    finally:
        await responses.aclose()


def _request(row: _Row, name: str, params: Json) -> Any:
    """Returns the request in 1.0's types. Raises A2aError (-32602)."""
    check_arrays(params, *_ARRAYS)
    params = packed(params, objects_only=True)
    try:
        # The envelope has been checked, and its id does not matter to the parameters.
        request = row.request.model_validate({"id": 0, "method": name, "params": params})
    except ValidationError as error:
        raise _invalid(error) from error
    asked = getattr(request, "params", None)
    if isinstance(asked, v03.MessageSendParams):
        _check_message(asked.message)
    try:
        return row.convert(request)
    except (
        *(json_format.ParseError, ValueError, TypeError, OverflowError, RecursionError),
        *(KeyError, AttributeError),  # of data that its part's metadata promises, and that is not there
    ) as error:
        raise unreadable(params) from error


def _check_message(message: v03.Message) -> None:
    """Checks the message for faults that the types of 0.3 allow, and that 1.0 would report in its own words."""
    if message.role is not v03.Role.user:
        raise invalid_params("message.role", "must be 'user'")
    for index, part in enumerate(message.parts):
        file = part.root.file if isinstance(part.root, v03.FilePart) else None
        if isinstance(file, v03.FileWithBytes) and not _is_base64(file.bytes):
            raise invalid_params(f"message.parts[{index}].file.bytes", "must be base64")


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _invalid(error: ValidationError) -> A2aError:
    faults = error.errors(include_url=False, include_context=False, include_input=False)[:ERRORS_TOLD]
    violations = [(_path(fault["loc"]), fault["msg"]) for fault in faults]
    return invalid_params(*violations[0], *violations[1:])


def _path(place: tuple[str | int, ...]) -> str:
    """Returns a place such as `message.parts[0].file`: without the envelope's `params` and the names of tried
    classes."""
    path = ""
    for step in place[1:]:
        if isinstance(step, int):
            path += f"[{step}]"
        elif not step[:1].isupper():
            path += f".{step}" if path else step
    return path or "params"
