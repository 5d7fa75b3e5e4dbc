"""All errors that synapsed raises on purpose, in one tree; each class says where the cause is.

::

    SynapsedError                    .code  .details
    ├── RequestError                 the caller asked for something that cannot be done (4xx)
    │   ├── InvalidRequest           INVALID_REQUEST
    │   ├── UnknownAgent             UNKNOWN_AGENT
    │   │   └── NotKnownYet          NOT_READY
    │   ├── UnknownProfile           UNKNOWN_PROFILE
    │   ├── TaskNotFound             TASK_NOT_FOUND
    │   ├── EventNotFound            EVENT_NOT_FOUND
    │   ├── UnknownSchedule          UNKNOWN_SCHEDULE
    │   ├── UnknownSink              UNKNOWN_SINK
    │   ├── UnknownDevice            UNKNOWN_DEVICE
    │   ├── UnknownToken             UNKNOWN_TOKEN
    │   ├── NotInInbox               NOT_IN_INBOX
    │   ├── NotInFleet               NOT_IN_FLEET
    │   ├── AmbiguousAddress         AMBIGUOUS
    │   ├── NameTaken                NAME_TAKEN
    │   ├── ConversationTaken        CONVERSATION_TAKEN
    │   ├── NotWaiting               NOT_WAITING
    │   ├── InvalidChoice            INVALID_CHOICE
    │   ├── PromptChanged            PROMPT_CHANGED
    │   ├── NotTaken                 NOT_TAKEN
    │   ├── OutcomeUnknown           OUTCOME_UNKNOWN
    │   ├── TaskNotCancelable        TASK_NOT_CANCELABLE
    │   ├── WouldDeadlock            WOULD_DEADLOCK
    │   ├── HopLimit                 HOP_LIMIT
    │   ├── Unauthorized             UNAUTHORIZED
    │   ├── LockedOut                LOCKED_OUT
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
    │   ├── NotEnforced              NOT_ENFORCED
    │   ├── KeeperLost               KEEPER_LOST
    │   ├── ChannelAway              CHANNEL_AWAY
    │   └── MessageRefused           MESSAGE_REFUSED
    ├── ExternalError                an agent elsewhere, or the way to it, failed
    │   ├── Unreachable              UNREACHABLE
    │   ├── CardInvalid              CARD_INVALID
    │   ├── CardChanged              CARD_CHANGED
    │   └── RemoteRefused            REMOTE_REFUSED
    ├── AlreadyRunning               a second daemon for the same home
    │   └── StateElsewhere           the home of a daemon on another host, or in another PID namespace
    └── StoreError                   the database or a file refused: disk full, corrupt, too new

`code` is the machine-readable name (docs/http-api.md); the HTTP status and the exit code are in the same class, so that
no route and no command invents its own.
"""

from collections.abc import Iterator
from typing import Any, ClassVar


class SynapsedError(Exception):
    """Root of the tree. `message` is for people and says what to do next; `details` is JSON, free of secrets."""

    code: ClassVar[str] = "INTERNAL"
    http: ClassVar[int] = 500
    """Status of the HTTP answer."""
    exit_code: ClassVar[int] = 6
    """Exit code of `synapsectl` (docs/synapsectl.md)."""
    undone: ClassVar[bool] = False
    """True if the request changed nothing (unless `details["sent"]`) and may be repeated under the same key."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class RequestError(SynapsedError):
    """The caller asked for something that cannot be done."""

    undone = True


class InvalidRequest(RequestError):
    code, http, exit_code = "INVALID_REQUEST", 400, 2


class UnknownAgent(RequestError):
    code, http, exit_code = "UNKNOWN_AGENT", 404, 4


class NotKnownYet(UnknownAgent):
    """The agent may exist on another host, which is not known yet: ask again later."""

    code, http, exit_code = "NOT_READY", 503, 6


class UnknownProfile(RequestError):
    code, http, exit_code = "UNKNOWN_PROFILE", 404, 2


class TaskNotFound(RequestError):
    code, http, exit_code = "TASK_NOT_FOUND", 404, 4


class EventNotFound(RequestError):
    code, http, exit_code = "EVENT_NOT_FOUND", 404, 4


class UnknownSchedule(RequestError):
    code, http, exit_code = "UNKNOWN_SCHEDULE", 404, 4


class UnknownSink(RequestError):
    code, http, exit_code = "UNKNOWN_SINK", 404, 2


class UnknownDevice(RequestError):
    code, http, exit_code = "UNKNOWN_DEVICE", 404, 4


class UnknownToken(RequestError):
    code, http, exit_code = "UNKNOWN_TOKEN", 404, 4


class NotInInbox(RequestError):
    code, http, exit_code = "NOT_IN_INBOX", 404, 4


class NotInFleet(RequestError):
    """This host is a member of no fleet."""

    code, http = "NOT_IN_FLEET", 404


class AmbiguousAddress(RequestError):
    code, http, exit_code = "AMBIGUOUS", 409, 2


class NameTaken(RequestError):
    code, http = "NAME_TAKEN", 409


class ConversationTaken(RequestError):
    code, http = "CONVERSATION_TAKEN", 409


class NotWaiting(RequestError):
    code, http = "NOT_WAITING", 400


class InvalidChoice(RequestError):
    code, http = "INVALID_CHOICE", 400


class PromptChanged(RequestError):
    code, http = "PROMPT_CHANGED", 409


class NotTaken(RequestError):
    code, http = "NOT_TAKEN", 409
    undone = False


class OutcomeUnknown(RequestError):
    code, http = "OUTCOME_UNKNOWN", 409


class TaskNotCancelable(RequestError):
    code, http = "TASK_NOT_CANCELABLE", 409


class WouldDeadlock(RequestError):
    code, http = "WOULD_DEADLOCK", 409


class HopLimit(RequestError):
    code, http = "HOP_LIMIT", 409


class Unauthorized(RequestError):
    code, http = "UNAUTHORIZED", 401


class LockedOut(RequestError):
    """Too many unknown codes, cookies or tokens came from the client; `retry_after` says when it may try again."""

    code, http = "LOCKED_OUT", 429


class Forbidden(RequestError):
    code, http = "FORBIDDEN", 403


class TooLarge(RequestError):
    code, http, exit_code = "TOO_LARGE", 413, 2


class UnsupportedMedia(RequestError):
    code, http, exit_code = "UNSUPPORTED_MEDIA", 415, 2


class QueueFull(RequestError):
    code, http = "QUEUE_FULL", 429


class Busy(RequestError):
    """There is no memory for a large answer or body now; nothing was done."""

    code, http = "BUSY", 503


class ConfigError(SynapsedError):
    """A configuration file or profile is wrong."""

    code, http, exit_code = "CONFIG_ERROR", 400, 2


class AgentError(SynapsedError):
    """The agent's program or its surroundings failed."""


class NotReady(AgentError):
    code, http = "NOT_READY", 503
    undone = True


class ProgramEnded(AgentError):
    """The program ended during the request."""

    code, http = "AGENT_EXITED", 409


class ProgramNotFound(AgentError):
    code, http, exit_code = "PROGRAM_NOT_FOUND", 400, 2


class PortsExhausted(AgentError):
    code, http = "PORTS_EXHAUSTED", 409


class LaunchError(AgentError):
    code, http = "LAUNCH_FAILED", 500


class NotEnforced(AgentError):
    """Rules that may refuse a call of the agent would have no effect, or it is not known if they would."""

    code, http = "NOT_ENFORCED", 409


class KeeperLost(AgentError):
    code, http = "KEEPER_LOST", 503


class ChannelAway(AgentError):
    """The program's own server does not answer. `sent`: the request may have arrived all the same."""

    code, http = "CHANNEL_AWAY", 503

    def __init__(self, message: str, *, sent: bool = True, **details: Any) -> None:
        super().__init__(message, **details)
        self.sent = sent


class MessageRefused(AgentError):
    """The program's own server does not take the message."""

    code, http = "MESSAGE_REFUSED", 502


class ExternalError(SynapsedError):
    """An agent elsewhere, or the way to it, failed."""

    code, http = "REMOTE_REFUSED", 502
    undone = True


class Unreachable(ExternalError):
    """The agent or its host cannot be reached. `details["sent"]`: True if the request may have arrived all the same."""

    code, http = "UNREACHABLE", 502


class CardInvalid(ExternalError):
    code, http = "CARD_INVALID", 502


class CardChanged(ExternalError):
    """Another agent answers at the address than the one that a person added."""

    code, http = "CARD_CHANGED", 409


class RemoteRefused(ExternalError):
    """The agent elsewhere has answered with a refusal."""


class AlreadyRunning(SynapsedError):
    """Another daemon holds the lock of this home."""

    code, http = "ALREADY_RUNNING", 409


class StateElsewhere(AlreadyRunning):
    """The home was last used by a daemon on another host, or in another PID namespace, whose agents may live."""

    code = "STATE_ELSEWHERE"


class StoreError(SynapsedError):
    """The database, or a file that is to be kept, refused."""

    code, http = "STORE_ERROR", 503


def _all(kind: type[SynapsedError]) -> Iterator[type[SynapsedError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _all(one)


HTTP_STATUS = {kind.code: kind.http for kind in _all(SynapsedError)}
EXIT_CODES = {kind.code: kind.exit_code for kind in _all(SynapsedError)}
