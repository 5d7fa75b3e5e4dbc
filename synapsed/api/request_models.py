"""Bodies of requests. An unknown key is an error, so that a misspelt one is not silently ignored."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from synapsed.errors import InvalidRequest
from synapsed.interfaces import Bringing, SendRequest, StartRequest
from synapsed.model.agent import PortChoice
from synapsed.model.attributes import ProcessAttributes
from synapsed.model.events import AgentReported, AgentTransition, EmotionUpdate, EventData, ToolExecution
from synapsed.model.task import Artifact, DataPart, FilePart, Message, Part, TextPart, new_id
from synapsed.terminal.keynames import KEY_MAX, KEYS_MAX

PARTS_MAX = 256
"""Parts of a message."""
COLS_MAX = 1000
ROWS_MAX = 1000
VIEWER_MAX = 65_535
"""Largest number of columns, and of rows, of a viewer's terminal, by the kernel's limit. The program's window may be
smaller."""
WAIT_MAX = 3600
"""Seconds that an answer over HTTP may take."""
LIMIT_MAX = 7 * 24 * 3600.0
"""Largest number of seconds that a client may wait for a reply."""


def _as_integer(value: Any) -> Any:
    """Returns 2.0 as 2: it is an integer in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _wholes(value: Any, depth: int = 2) -> Any:
    """Returns `value` with each whole number in it as `_as_integer` returns it, `depth` lists or objects deep."""
    if depth and isinstance(value, dict):
        return {name: _wholes(item, depth - 1) for name, item in value.items()}
    if depth and isinstance(value, list):
        return [_wholes(item, depth - 1) for item in value]
    return _as_integer(value)


Whole = BeforeValidator(_as_integer)
_Priority = Annotated[int, Field(ge=1, le=5), Whole]
_Id = Annotated[str, StringConstraints(min_length=1, max_length=256)]
_SomeText = Annotated[str, StringConstraints(min_length=1)]
_NoNul = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
_EnvName = Annotated[str, StringConstraints(pattern=r"^[^\x00=]+$")]


_Env = Annotated[dict[_EnvName, _NoNul], Field(json_schema_extra={"additionalProperties": False})]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class MessageIn(_Body):
    """A message: `role` and `parts`; ids and metadata are optional."""

    role: Annotated[str, StringConstraints(pattern="^(user|agent)$")] = "user"
    parts: list[Annotated[TextPart | FilePart | DataPart, Field(discriminator="type")]] = Field(
        min_length=1, max_length=PARTS_MAX
    )
    message_id: _Id | None = None
    metadata: dict[str, Any] | None = None

    def message(self) -> Message:
        given = {"role": self.role, "parts": self.parts, "metadata": self.metadata}
        if self.message_id is not None:
            given["message_id"] = self.message_id
        return Message.model_validate(given)


def _message(value: Any) -> Any:
    return {"parts": [{"type": "text", "text": value}]} if isinstance(value, str) and value else value


_Message = Annotated[MessageIn, BeforeValidator(_message, json_schema_input_type=MessageIn | _SomeText)]
"""A message; a text alone is a message of a user."""


class ReplyBody(_Body):
    """`tasks/reply`."""

    message: _Message
    metadata: dict[str, Any] | None = None

    def request(self) -> SendRequest:
        asked = {name: value for name, value in self if name in SendRequest.__dataclass_fields__}
        return SendRequest(**{**asked, "message": self.message.message(), "metadata": self.metadata or {}})


class SendBody(ReplyBody):
    """`tasks/send`, `tasks/send-priority`, `tasks/sendSubscribe`."""

    priority: _Priority = 1
    context_id: _Id | None = None
    task_id: _Id | None = None
    command: bool = False
    wait: bool = False


class CreateBody(ReplyBody):
    """`tasks/create`; `limit`: seconds that the reply may take, `wait`: a caller waits for it."""

    context_id: _Id | None = None
    wait: bool = False
    limit: Annotated[float, Field(gt=0, le=LIMIT_MAX)] | None = None


class MessageBody(_Body):
    """`message`."""

    content: _SomeText
    priority: _Priority = 1


class ArtifactBody(_Body):
    """Output of an agent: `parts` are as in a message. With `append` they are added to those of the artifact with this
    id; `last_chunk` is false if more will follow."""

    parts: Annotated[list[Part], Field(min_length=1, max_length=PARTS_MAX)]
    artifact_id: _Id | None = None
    name: Annotated[str, StringConstraints(min_length=1, max_length=256)] = "output"
    append: bool = False
    last_chunk: bool = True
    metadata: dict[str, Any] | None = None

    def artifact(self) -> Artifact:
        kinds = {part.type for part in self.parts}
        kind = kinds.pop() if len(kinds) == 1 else "text"
        return Artifact(
            artifact_id=self.artifact_id or new_id(),
            type=kind,
            name=self.name,
            parts=self.parts,
            metadata=self.metadata,
        )


_REPORTED: dict[str, type[ToolExecution | AgentTransition | EmotionUpdate | AgentReported]] = {
    "toolExecution": ToolExecution,
    "agentTransition": AgentTransition,
    "emotionUpdate": EmotionUpdate,
    "agentReported": AgentReported,
}
"""Reports that are accepted from outside, by their type."""

_Kind = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
_Said = Annotated[str, StringConstraints(min_length=1, max_length=4000)]


class ReportBody(_Body):
    """`events`: `kind` and `message`, or `event` and its `data`."""

    kind: _Kind | None = None
    message: _Said | None = None
    event: Literal["toolExecution", "agentTransition", "emotionUpdate", "agentReported"] | None = None
    data: dict[str, Any] | None = None
    task: _Id | None = None

    def told(self, by: str) -> EventData:
        """Returns the event, as it is reported by `by`. Raises InvalidRequest."""
        pairs = ((self.kind, self.message), (self.event, self.data))
        if sorted(sum(one is not None for one in pair) for pair in pairs) != [0, 2]:
            raise InvalidRequest("give 'kind' and 'message', or 'event' and 'data'", field="event")
        if self.event is None:
            return AgentReported(kind=self.kind or "", message=self.message or "", reported_by=by)
        return _reported(self.event, self.data or {}, by)


class _SaidBody(_Body):
    """The data of an `agentReported`."""

    kind: _Kind
    message: _Said


def _reported(event: str, data: dict[str, Any], by: str) -> EventData:
    kind = _REPORTED[event]
    offered = [name for name in kind.model_fields if name not in ("type", "reported_by")]
    for name in data:
        if name not in offered:
            known = ", ".join(offered)
            raise InvalidRequest(f"data.{name[:100]}: {event} has no such field; there are {known}", field="data")
    try:
        if kind is AgentReported:
            _SaidBody.model_validate(data)
        return kind.model_validate({**data, "reported_by": by})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(["data", *map(str, fault["loc"])])
        raise InvalidRequest(f"{place}: {fault['msg']}", field=place) from error


class InputBody(_Body):
    """An answer to a prompt."""

    input: str
    prompt_id: _Id | None = None


_Keys = Annotated[
    str,
    StringConstraints(min_length=1, max_length=KEY_MAX),
    # For clients: `keynames` refuses the same, with a message that names the key.
    Field(json_schema_extra={"pattern": r"^[^\x00-\x1f\x7f-\x9f]+$"}),
]


class KeysBody(_Body):
    """Keys for an agent's terminal: names, or text as it is."""

    keys: Annotated[list[_Keys], Field(min_length=1, max_length=KEYS_MAX)]


class AttributesIn(ProcessAttributes):
    """Umask, nice value, CPUs and limits of the caller; the daemon's own replace null and missing ones."""

    model_config = ConfigDict(extra="forbid", strict=True)

    _numbers = field_validator("*", mode="before")(_wholes)


class StartBody(_Body):
    """`control/start`; `env` is the caller's whole environment, null for the daemon's."""

    profile: _Id
    name: _Id | None = None
    port: Annotated[PortChoice, Whole] = None
    cwd: _NoNul | None = None
    args: list[_NoNul] = []
    env: _Env | None = None
    extra_env: _Env = {}
    attributes: AttributesIn | None = None
    cols: Annotated[int, Field(ge=1, le=COLS_MAX), Whole] = 120
    rows: Annotated[int, Field(ge=1, le=ROWS_MAX), Whole] = 40
    save: bool = False
    accept_agents: bool = False
    without_approval: bool = False
    resume_at_reset: bool = True
    prompt: Annotated[_NoNul, StringConstraints(max_length=200)] | None = None
    conversation: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")] | None = None

    def request(self) -> StartRequest:
        return StartRequest(**{**dict(self), "args": tuple(self.args)})


class StopBody(_Body):
    remove: bool = False


class InterruptBody(_Body):
    background: bool = False


class RestartBody(_Body):
    when_idle: bool = False
    without_approval: bool = False


class EnvironmentBody(_Body):
    """`control/agents/{agent}/environment`; `env` is the whole environment of the caller's shell."""

    env: _Env
    bring: Bringing = "connection"


class ReloadBody(_Body):
    dry_run: bool = False


class ShutdownBody(_Body):
    keep_agents: bool = False
