"""Every error that synapsed raises on purpose, one tree; each class says who is to blame.

::

    SynapsedError                    .code  .details
    ├── RequestError                 the caller asked for something that cannot be done (4xx)
    │   ├── InvalidRequest           INVALID_REQUEST
    │   ├── UnknownAgent             UNKNOWN_AGENT
    │   ├── UnknownProfile           UNKNOWN_PROFILE
    │   ├── TaskNotFound             TASK_NOT_FOUND
    │   ├── EventNotFound            EVENT_NOT_FOUND
    │   ├── UnknownSchedule          UNKNOWN_SCHEDULE
    │   ├── NotInInbox               NOT_IN_INBOX
    │   ├── AmbiguousAddress         AMBIGUOUS
    │   ├── NameTaken                NAME_TAKEN
    │   ├── ConversationTaken        CONVERSATION_TAKEN
    │   ├── NotWaiting               NOT_WAITING
    │   ├── InvalidChoice            INVALID_CHOICE
    │   ├── PromptChanged            PROMPT_CHANGED
    │   ├── NotTaken                 NOT_TAKEN
    │   ├── TaskNotCancelable        TASK_NOT_CANCELABLE
    │   ├── WouldDeadlock            WOULD_DEADLOCK
    │   ├── HopLimit                 HOP_LIMIT
    │   ├── Unauthorized             UNAUTHORIZED
    │   ├── Forbidden                FORBIDDEN
    │   ├── TooLarge                 TOO_LARGE
    │   ├── UnsupportedMedia         UNSUPPORTED_MEDIA
    │   ├── QueueFull                QUEUE_FULL
    │   └── Busy                     BUSY
    ├── ConfigError                  the user's file or profile is wrong: file, line, key and the nearest known key
    ├── AgentError                   the agent's program or its surroundings failed
    │   ├── NotReady                 NOT_READY
    │   ├── ProgramEnded             AGENT_EXITED
    │   ├── ProgramNotFound          PROGRAM_NOT_FOUND
    │   ├── PortsExhausted           PORTS_EXHAUSTED
    │   ├── LaunchError              LAUNCH_FAILED
    │   └── KeeperLost               KEEPER_LOST
    ├── ExternalError                an agent elsewhere, or the way to it, failed
    │   ├── Unreachable              UNREACHABLE
    │   ├── CardInvalid              CARD_INVALID
    │   ├── CardChanged              CARD_CHANGED
    │   └── RemoteRefused            REMOTE_REFUSED
    ├── AlreadyRunning               a second daemon for the same home
    └── StoreError                   the database or a file refused: disk full, corrupt, too new

`code` is the machine-readable name (docs/http-api.md); the HTTP status and the exit code of each stand in the tables at
the end, so that no route and no command invents its own.
"""

from typing import Any, ClassVar


class SynapsedError(Exception):
    """Root of the tree. `message` is for people and says what to do next; `details` is JSON, free of secrets."""

    code: ClassVar[str] = "INTERNAL"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class RequestError(SynapsedError):
    """The caller asked for something that cannot be done."""


class InvalidRequest(RequestError):
    code = "INVALID_REQUEST"


class UnknownAgent(RequestError):
    code = "UNKNOWN_AGENT"


class UnknownProfile(RequestError):
    code = "UNKNOWN_PROFILE"


class TaskNotFound(RequestError):
    code = "TASK_NOT_FOUND"


class EventNotFound(RequestError):
    code = "EVENT_NOT_FOUND"


class UnknownSchedule(RequestError):
    code = "UNKNOWN_SCHEDULE"


class NotInInbox(RequestError):
    code = "NOT_IN_INBOX"


class AmbiguousAddress(RequestError):
    code = "AMBIGUOUS"


class NameTaken(RequestError):
    code = "NAME_TAKEN"


class ConversationTaken(RequestError):
    code = "CONVERSATION_TAKEN"


class NotWaiting(RequestError):
    code = "NOT_WAITING"


class InvalidChoice(RequestError):
    code = "INVALID_CHOICE"


class PromptChanged(RequestError):
    code = "PROMPT_CHANGED"


class NotTaken(RequestError):
    code = "NOT_TAKEN"


class TaskNotCancelable(RequestError):
    code = "TASK_NOT_CANCELABLE"


class WouldDeadlock(RequestError):
    code = "WOULD_DEADLOCK"


class HopLimit(RequestError):
    code = "HOP_LIMIT"


class Unauthorized(RequestError):
    code = "UNAUTHORIZED"


class Forbidden(RequestError):
    code = "FORBIDDEN"


class TooLarge(RequestError):
    code = "TOO_LARGE"


class UnsupportedMedia(RequestError):
    code = "UNSUPPORTED_MEDIA"


class QueueFull(RequestError):
    code = "QUEUE_FULL"


class Busy(RequestError):
    """There is no room for a large answer now; nothing was done."""

    code = "BUSY"


class ConfigError(SynapsedError):
    """A configuration file or profile is wrong."""

    code = "CONFIG_ERROR"


class AgentError(SynapsedError):
    """The agent's program or its surroundings failed."""


class NotReady(AgentError):
    code = "NOT_READY"


class ProgramEnded(AgentError):
    """It ended over what was asked of it."""

    code = "AGENT_EXITED"


class ProgramNotFound(AgentError):
    code = "PROGRAM_NOT_FOUND"


class PortsExhausted(AgentError):
    code = "PORTS_EXHAUSTED"


class LaunchError(AgentError):
    code = "LAUNCH_FAILED"


class KeeperLost(AgentError):
    code = "KEEPER_LOST"


class ExternalError(SynapsedError):
    """An agent elsewhere, or the way to it, failed."""

    code = "REMOTE_REFUSED"


class Unreachable(ExternalError):
    """`details["sent"]`: whether the request may have arrived all the same."""

    code = "UNREACHABLE"


class CardInvalid(ExternalError):
    code = "CARD_INVALID"


class CardChanged(ExternalError):
    """It is another agent than the one that a person has added."""

    code = "CARD_CHANGED"


class RemoteRefused(ExternalError):
    """It has answered, and will not."""

    code = "REMOTE_REFUSED"


class AlreadyRunning(SynapsedError):
    """Another daemon holds the lock of this home."""

    code = "ALREADY_RUNNING"


class StoreError(SynapsedError):
    """The database, or a file that is to be kept, refused."""

    code = "STORE_ERROR"


HTTP_STATUS: dict[str, int] = {
    "INVALID_REQUEST": 400,
    "UNKNOWN_PROFILE": 404,
    "UNKNOWN_AGENT": 404,
    "TASK_NOT_FOUND": 404,
    "EVENT_NOT_FOUND": 404,
    "UNKNOWN_SCHEDULE": 404,
    "NOT_IN_INBOX": 404,
    "AMBIGUOUS": 409,
    "NAME_TAKEN": 409,
    "CONVERSATION_TAKEN": 409,
    "NOT_WAITING": 400,
    "INVALID_CHOICE": 400,
    "PROMPT_CHANGED": 409,
    "NOT_TAKEN": 409,
    "TASK_NOT_CANCELABLE": 409,
    "WOULD_DEADLOCK": 409,
    "HOP_LIMIT": 409,
    "UNAUTHORIZED": 401,
    "FORBIDDEN": 403,
    "TOO_LARGE": 413,
    "UNSUPPORTED_MEDIA": 415,
    "QUEUE_FULL": 429,
    "BUSY": 503,
    "CONFIG_ERROR": 400,
    "NOT_READY": 503,
    "AGENT_EXITED": 409,
    "PROGRAM_NOT_FOUND": 400,
    "PORTS_EXHAUSTED": 409,
    "LAUNCH_FAILED": 500,
    "KEEPER_LOST": 503,
    "UNREACHABLE": 502,
    "CARD_INVALID": 502,
    "CARD_CHANGED": 409,
    "REMOTE_REFUSED": 502,
    "ALREADY_RUNNING": 409,
    "STORE_ERROR": 503,
    "INTERNAL": 500,
}
"""HTTP status of each code (docs/http-api.md)."""

EXIT_CODES: dict[str, int] = {
    "INVALID_REQUEST": 2,
    "UNKNOWN_PROFILE": 2,
    "CONFIG_ERROR": 2,
    "PROGRAM_NOT_FOUND": 2,
    "TOO_LARGE": 2,
    "UNSUPPORTED_MEDIA": 2,
    "UNKNOWN_AGENT": 4,
    "TASK_NOT_FOUND": 4,
    "EVENT_NOT_FOUND": 4,
    "UNKNOWN_SCHEDULE": 4,
    "NOT_IN_INBOX": 4,
    "AMBIGUOUS": 2,
}
"""Exit code of `synapsectl` for each code (docs/synapsectl.md); every other refusal is 6."""
