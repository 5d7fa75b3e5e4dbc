"""The Task and its pieces, in the form that was first asked for (S15, docs/words.md): tasks are kept and shown in this
form, and protocols derive theirs from it."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, Protocol
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from synapsed.model.released_names import METADATA

NEW_CONVERSATION = "new_conversation"
"""Key of a task's metadata: the message begins a new conversation."""

ANSWER_ID = "answer"
"""`artifact_id` of the artifact that holds the turn's last assistant message, whole."""

_BLOCK = f"{ANSWER_ID}."
"""`artifact_id`s of the answer's blocks begin so; a number follows, from 1."""

PROGRESS = "progress"
"""Name of the artifacts that hold the turn's earlier assistant messages."""


def new_id() -> str:
    """Returns a new id for a task, a context or a message."""
    return str(uuid4())


def open_metadata(metadata: Mapping[str, Any], closed: Container[str]) -> dict[str, Any]:
    """Returns the metadata that a client may set: without the keys of parts, and those in `closed`."""
    return {key: value for key, value in metadata.items() if key not in METADATA and key not in closed}


HISTORY_KEPT = 100
"""Messages of a task that are kept besides its first: a program may ask in a loop."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="null")


class TaskState(StrEnum):
    """State of a task; the words are those of the wire."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    AUTH_REQUIRED = "auth_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"


TERMINAL_STATES = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
INTERRUPTED_STATES = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})


def _type_is_required(schema: dict[str, Any]) -> None:
    """Makes `type` required, which separates the kinds of parts; the default is for code in Python."""
    schema["required"] = ["type", *schema.get("required", [])]


class _Part(_Model):
    model_config = ConfigDict(json_schema_extra=_type_is_required)


class TextPart(_Part):
    type: Literal["text"] = "text"
    text: str
    metadata: dict[str, Any] | None = None


class FileContent(BaseModel):
    """A file by value (`bytes`, base64) or by reference (`uri`)."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: str | None = None
    mime_type: str | None = Field(default=None, alias="mimeType")
    bytes: str | None = None
    uri: str | None = None


class FilePart(_Part):
    type: Literal["file"] = "file"
    file: FileContent
    metadata: dict[str, Any] | None = None


class DataPart(_Part):
    type: Literal["data"] = "data"
    data: Any
    metadata: dict[str, Any] | None = None


Part = Annotated[TextPart | FilePart | DataPart, Field(discriminator="type")]


class Message(_Model):
    """One message; `parts` is never empty."""

    role: Literal["user", "agent"] = "user"
    parts: list[Part] = Field(min_length=1)
    message_id: str = Field(default_factory=new_id)
    metadata: dict[str, Any] | None = None

    @classmethod
    def of(cls, text: str, role: Literal["user", "agent"] = "user") -> "Message":
        return cls(role=role, parts=[TextPart(text=text)])

    @property
    def text(self) -> str:
        """The text parts, joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def blank(self) -> bool:
        """True if the message has only white space."""
        return all(isinstance(part, TextPart) and (not part.text or part.text.isspace()) for part in self.parts)


class BlockKinds(Protocol):
    """The kinds of blocks of an answer that become artifacts of their own (`Parsers` of profiles)."""

    code: bool
    data: bool
    files: bool
    errors: bool


class Artifact(_Model):
    """A piece of an answer. `type` is `text`, `code`, `file` or `data` (S2)."""

    artifact_id: str
    type: str = "text"
    name: str = "output"
    parts: list[Part]
    metadata: dict[str, Any] | None = None

    @classmethod
    def answer(cls, text: str, *, truncated: bool = False, missing: int | None = None) -> "Artifact":
        metadata = {"truncated": True, "missing_lines": missing} if truncated else None
        return cls(artifact_id=ANSWER_ID, parts=[TextPart(text=text)], metadata=metadata)

    @classmethod
    def block(cls, number: int, **fields: Any) -> "Artifact":
        """Block `number` of the answer, from 1."""
        return cls(artifact_id=f"{_BLOCK}{number}", **fields)

    @property
    def is_block(self) -> bool:
        """True if it is a block of the answer. The artifact `answer` has the whole answer: a block repeats a part."""
        return self.artifact_id.startswith(_BLOCK)

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))


class PromptOption(_Model):
    """One way to answer a prompt: `key` is the value for `input` (and the key to press), `label` its text."""

    key: str
    label: str


class Prompt(_Model):
    """Question of a program to a person (S4)."""

    prompt_id: str
    """Fingerprint: an answer is typed only while this very prompt is on the screen."""
    type: Literal["confirmation", "selection", "text", "password", "permission", "question", "trust", "login", "screen"]
    """`screen`: the screen is not understood, and is shown as it is."""
    prompt: str
    options: list[PromptOption] = []
    default: str | None = None
    own_words: bool = False
    """Besides the options, a free text is an answer, too."""
    command: str | None = None
    """The whole command that is to be allowed, if a channel of the program reported it: never read off the screen."""
    diff: str | None = None
    """The edit that is to be allowed, as a diff, if a channel reported it."""

    def is_same(self, other: "Prompt") -> bool:
        """Returns True if both ask the same question about the same subject, as far as that is known."""
        return (self.prompt_id, self.command, self.diff) == (other.prompt_id, other.command, other.diff)

    def unseen(self) -> "Prompt":
        """Returns a copy for callers that may not see the question: only that there is one, and of which kind."""
        return Prompt(prompt_id=self.prompt_id, type=self.type, prompt="", own_words=self.own_words)


class WaitsBehind(_Model):
    """Reason why a task in a mailbox waits: the `task` that its agent works on (None: a person's own turn, or none),
    how many are before it, and the agent's question meanwhile. Or `held`, the reason why a task for an agent elsewhere
    stands still."""

    task: str | None = None
    ahead: int = 0
    prompt: Prompt | None = None
    held: str | None = None


class TaskError(_Model):
    """Reason why a task did not complete; docs/http-api.md has the codes."""

    code: str
    message: str
    details: dict[str, Any] = {}


class Task(_Model):
    """A message to an agent, and its result.

    `exact` is None until there is an answer, then False if the answer was read off the screen; `truncated`: its
    beginning was already gone, or its output too long to be read back, and `missing_lines` of it are gone (None: how
    many cannot be counted). Times are RFC 3339 in UTC. `priority` is 1 to 5, 4 before 1 in the mailbox; 5 interrupts.
    `exchange` has the program's questions after `message` and their answers, the last HISTORY_KEPT of them, without
    passwords. `waits_behind` is shown, and not kept.
    """

    id: str = Field(default_factory=new_id)
    agent_id: str
    context_id: str = Field(default_factory=new_id)
    status: TaskState = TaskState.SUBMITTED
    message: Message
    artifacts: list[Artifact] = []
    metadata: dict[str, Any] = {}
    created_at: str
    updated_at: str
    priority: int = Field(default=1, ge=1, le=5)
    error: TaskError | None = None
    exact: bool | None = None
    truncated: bool = False
    missing_lines: int | None = None
    prompt: Prompt | None = None
    waits_behind: WaitsBehind | None = None
    exchange: list[Message] = []

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL_STATES

    @property
    def answer(self) -> str | None:
        """The turn's last assistant message, or None while it has said nothing."""
        return next((a.text for a in self.artifacts if a.artifact_id == ANSWER_ID), None)


# --- an excerpt of a message ------------------------------------------------------------------------------------------

EXCERPT_END_MAX = 1000
"""Characters at the beginning, and as many at the end, that are used; the middle is mostly pasted."""

EXCERPT_PARTS_MAX = 20
"""Text parts of a message that are used."""


@dataclass(frozen=True, slots=True)
class Said:
    """An excerpt of a task's message: `text` has its beginning and end (`ends`), `metadata` is that of the task."""

    text: str
    metadata: dict[str, Any]
    priority: int = 1

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Said":
        """Returns the excerpt of a task as JSON."""
        parts = (part["text"] for part in document["message"]["parts"] if part["type"] == "text")
        return cls(ends(parts), document.get("metadata", {}), document.get("priority", 1))


def ends(texts: Iterable[str]) -> str:
    """Returns the beginning and the end of the texts, joined by newlines."""
    pieces = [_ends(text) for _, text in zip(range(EXCERPT_PARTS_MAX), texts, strict=False)]
    return _ends("\n".join(pieces))


def _ends(text: str) -> str:
    return text if len(text) <= 2 * EXCERPT_END_MAX else f"{text[:EXCERPT_END_MAX]}\n{text[-EXCERPT_END_MAX:]}"
