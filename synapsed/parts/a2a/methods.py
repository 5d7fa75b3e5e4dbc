"""The one table of A2A's operations (specification 5.3), by which both bindings dispatch.

A row names an operation's JSON-RPC method, its HTTP verbs and path, the request that it takes and the function that
performs it. A path may have the variables `{id}` and `{task_id}`, which are fields of the request; the first verb is
the one of 5.3, and every path is served below `/{tenant}` too.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from a2a.types import a2a_pb2 as pb
from google.protobuf.message import Message as ProtoMessage

from synapsed.parts.a2a.operations import Operations, RequestScope

type Call = Callable[[str, RequestScope, Any], Coroutine[Any, Any, dict[str, Any]]]
type Streaming = Callable[[str, RequestScope, Any], Coroutine[Any, Any, AsyncGenerator[dict[str, Any]]]]


@dataclass(frozen=True, slots=True)
class Method:
    """One operation. Exactly one of `call` (one result) and `stream` (a StreamResponse each) is there."""

    name: str
    verbs: tuple[str, ...]
    path: str
    request: type[ProtoMessage]
    call: Call | None = None
    stream: Streaming | None = None


def table(do: Operations) -> tuple[Method, ...]:
    """Returns every operation of A2A 1.0."""
    configs = "/tasks/{task_id}/pushNotificationConfigs"
    return (
        Method("SendMessage", ("POST",), "/message:send", pb.SendMessageRequest, do.send_message),
        Method("SendStreamingMessage", ("POST",), "/message:stream", pb.SendMessageRequest, stream=do.stream_message),
        Method("GetTask", ("GET",), "/tasks/{id}", pb.GetTaskRequest, do.get_task),
        Method("ListTasks", ("GET",), "/tasks", pb.ListTasksRequest, do.list_tasks),
        Method("CancelTask", ("POST",), "/tasks/{id}:cancel", pb.CancelTaskRequest, do.cancel_task),
        Method(
            "SubscribeToTask",
            ("POST", "GET"),
            "/tasks/{id}:subscribe",
            pb.SubscribeToTaskRequest,
            stream=do.subscribe,
        ),
        Method(
            "CreateTaskPushNotificationConfig",
            ("POST",),
            configs,
            pb.TaskPushNotificationConfig,
            do.push.create,
        ),
        Method(
            "GetTaskPushNotificationConfig",
            ("GET",),
            f"{configs}/{{id}}",
            pb.GetTaskPushNotificationConfigRequest,
            do.push.get,
        ),
        Method(
            "ListTaskPushNotificationConfigs",
            ("GET",),
            configs,
            pb.ListTaskPushNotificationConfigsRequest,
            do.push.list,
        ),
        Method(
            "DeleteTaskPushNotificationConfig",
            ("DELETE",),
            f"{configs}/{{id}}",
            pb.DeleteTaskPushNotificationConfigRequest,
            do.push.delete,
        ),
        Method(
            "GetExtendedAgentCard", ("GET",), "/extendedAgentCard", pb.GetExtendedAgentCardRequest, do.extended_card
        ),
    )
