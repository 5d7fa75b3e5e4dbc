"""The four operations on push notification configs (specification 3.1.7-10), and configs that come with a message.

A caller may have notifications of a task sent to a receiver if it may control the whole task: a person, or the agent
that sent it. A config is shown without its token and credentials.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from a2a.types import a2a_pb2 as pb

from synapsed.a2a_types.a2a_errors import PUSH_NOT_SUPPORTED, A2aError, invalid_params
from synapsed.errors import InvalidRequest, TaskNotFound
from synapsed.interfaces import EventLog
from synapsed.model.task import Task
from synapsed.parts.a2a.push.push_record import PushRecord
from synapsed.parts.a2a.push.sender import PushSender
from synapsed.shared.regex import regex

_ID = regex(r"[^\s/?#%\x00-\x1f\x7f]{1,128}")
"""Pattern of an id that can stand in a path."""
_SCHEME = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_SECRET = regex(r"[\x21-\x7e](?:[\x20-\x7e]{0,8190}[\x21-\x7e])?")
"""Pattern of a secret that can stand in a header."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A config as a client gave it, checked except for the target of its URL."""

    id: str | None
    url: str
    token: str | None
    scheme: str | None
    credentials: str | None

    def record(self, task: Task, *, cursor: int, dialect: Literal["1.0", "0.3"]) -> PushRecord:
        """Returns the record of a config that reports events of `task` after `cursor`. A config without an id gets the
        task's id."""
        return PushRecord(
            task_id=task.id,
            id=self.id or task.id,
            agent_id=task.agent_id,
            url=self.url,
            token=self.token,
            scheme=self.scheme,
            credentials=self.credentials,
            dialect=dialect,
            cursor=cursor,
        )


def receiver_from(config: pb.TaskPushNotificationConfig, *, within: str = "") -> Receiver:
    """Returns the receiver of a config. Raises A2aError; `within` is the place of the config in the request. Values are
    never repeated."""
    scheme, credentials = config.authentication.scheme, config.authentication.credentials
    if not config.url:
        raise invalid_params(f"{within}url", "is required")
    if config.id and not _ID.fullmatch(config.id):
        raise invalid_params(f"{within}id", "has at most 128 characters, no blanks and none of / ? # %")
    if config.token and not _SECRET.fullmatch(config.token):
        raise invalid_params(f"{within}token", "must fit into a header: at most 8192 printable ASCII characters")
    if scheme and not _SCHEME.fullmatch(scheme):
        raise invalid_params(f"{within}authentication.scheme", "is no name of an HTTP authentication scheme")
    if credentials and not scheme:
        raise invalid_params(f"{within}authentication.scheme", "is required with credentials")
    if credentials and not _SECRET.fullmatch(credentials):
        raise invalid_params(
            f"{within}authentication.credentials", "must fit into a header: printable ASCII, at most 8192"
        )
    return Receiver(config.id or None, config.url, config.token or None, scheme or None, credentials or None)


def config_dict(record: PushRecord) -> dict[str, Any]:
    """Returns the config as ProtoJSON, without its secrets."""
    document: dict[str, Any] = {"id": record.id, "taskId": record.task_id, "url": record.url}
    if record.scheme:
        document["authentication"] = {"scheme": record.scheme}
    return document


INLINE = "configuration.taskPushNotificationConfig."
"""Place in a request of a config that comes with a message."""


class PushCaller(Protocol):
    """The caller. Refusals are Forbidden."""

    def require_notify(self, task: Task) -> None: ...


class PushOperations[C: PushCaller]:
    """The operations. `find` returns a task by agent, caller and id, or raises; `pushes` is None if notifications are
    not offered. `dialect` is the version of A2A of the requests."""

    def __init__(
        self,
        find: Callable[[str, C, str], Awaitable[Task]],
        events: EventLog,
        pushes: PushSender | None,
        *,
        dialect: Literal["1.0", "0.3"] = "1.0",
    ) -> None:
        self._find = find
        self._events = events
        self._pushes = pushes
        self._dialect = dialect

    async def create(self, agent_id: str, caller: C, request: pb.TaskPushNotificationConfig) -> dict[str, Any]:
        """Starts notifications of coming events; of a task that is over, one of its end. A config with the same id is
        replaced; without an id it gets the task's."""
        pushes = self._offered()
        cursor = self._events.last_id  # before the task is looked at: its end is in one or the other
        task = await self._task(agent_id, caller, request.task_id)
        receiver = receiver_from(request)
        await _check(pushes, receiver, "")
        return config_dict(await pushes.put(receiver.record(task, cursor=cursor, dialect=self._dialect)))

    async def get(self, agent_id: str, caller: C, request: pb.GetTaskPushNotificationConfigRequest) -> dict[str, Any]:
        pushes = self._offered()
        task = await self._task(agent_id, caller, request.task_id)
        if (record := await pushes.get(task.id, request.id or task.id)) is None:
            raise TaskNotFound(f"task {task.id} has no push notification config {request.id[:128]!r}", task_id=task.id)
        return config_dict(record)

    async def list(
        self, agent_id: str, caller: C, request: pb.ListTaskPushNotificationConfigsRequest
    ) -> dict[str, Any]:
        """Returns all configs of the task: there are few."""
        pushes = self._offered()
        task = await self._task(agent_id, caller, request.task_id)
        return {"configs": [config_dict(record) for record in await pushes.of_task(task.id)], "nextPageToken": ""}

    async def delete(
        self, agent_id: str, caller: C, request: pb.DeleteTaskPushNotificationConfigRequest
    ) -> dict[str, Any]:
        """Deletes a config; does nothing if there is no such config (any more)."""
        pushes = self._offered()
        task = await self._task(agent_id, caller, request.task_id)
        await pushes.delete(task.id, request.id or task.id)
        return {}

    async def inline(self, request: pb.SendMessageRequest) -> Receiver | None:
        """Returns the config that comes with a message, checked before anything is sent."""
        if not request.configuration.HasField("task_push_notification_config"):
            return None
        pushes = self._offered()
        config = request.configuration.task_push_notification_config
        if config.task_id and config.task_id != request.message.task_id:
            raise invalid_params(f"{INLINE}taskId", "is not the task of this message")
        receiver = receiver_from(config, within=INLINE)
        await _check(pushes, receiver, INLINE)
        return receiver

    async def begin(self, receiver: Receiver, task: Task, cursor: int) -> None:
        """Starts notifications to `receiver` about the message that `task` was made of."""
        await self._offered().put(receiver.record(task, cursor=cursor, dialect=self._dialect))

    def _offered(self) -> PushSender:
        if self._pushes is None:
            raise A2aError(PUSH_NOT_SUPPORTED, "push notifications are not supported here")
        return self._pushes

    async def _task(self, agent_id: str, caller: C, task_id: str) -> Task:
        if not task_id:
            raise invalid_params("taskId", "is required")
        task = await self._find(agent_id, caller, task_id)
        caller.require_notify(task)
        return task


async def _check(pushes: PushSender, receiver: Receiver, within: str) -> None:
    """Checks the target of the URL."""
    try:
        await pushes.check(receiver.url)
    except InvalidRequest as error:
        raise invalid_params(f"{within}url", error.message.removeprefix("url: ")) from None
