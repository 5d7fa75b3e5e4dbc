"""What a client may ask for, and what it is shown of it: never the token or the credentials again."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from a2a.types import a2a_pb2 as pb

from synapsed.a2a.errors import invalid_params
from synapsed.model.push import PushRecord
from synapsed.model.task import Task

_ID = re.compile(r"[^\s/?#%\x00-\x1f\x7f]{1,128}")
"""What can stand in a path."""
_SCHEME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_SECRET = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,8190}[\x21-\x7e])?")
"""What can stand in a header."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A config as a client gave it, checked but for where its URL leads."""

    id: str | None
    url: str
    token: str | None
    scheme: str | None
    credentials: str | None

    def record(self, task: Task, *, cursor: int, dialect: Literal["1.0", "0.3"]) -> PushRecord:
        """To be told of `task` what comes after `cursor`. Without an id the config has the task's."""
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
    """Raises A2aError; `within` is where in the request the config stands. Values are never repeated."""
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
    """The config as ProtoJSON, without its secrets."""
    document: dict[str, Any] = {"id": record.id, "taskId": record.task_id, "url": record.url}
    if record.scheme:
        document["authentication"] = {"scheme": record.scheme}
    return document
