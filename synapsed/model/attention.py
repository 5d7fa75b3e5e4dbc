"""Items that wait for a person, as an inbox shows them."""

from enum import StrEnum
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from synapsed.model.task import PromptOption

type AttentionKind = Literal[
    "permission",
    "question",
    "plan",
    "sign_in",
    "limit",
    "account",
    "failure",
    "crash_loop",
    "unreadable",
    "finished",
    "alert",
]

OF_PROMPT: Final[dict[str, AttentionKind]] = {
    "permission": "permission",
    "question": "question",
    "confirmation": "question",
    "selection": "question",
    "text": "question",
    "password": "question",
    "trust": "question",
    "login": "sign_in",
    "screen": "unreadable",
}
"""The kind by a prompt's type; older programs have written the type itself into the log."""


def kind_of(told: str) -> AttentionKind:
    """Returns the kind for the text in the log."""
    return OF_PROMPT.get(told) or told  # type: ignore[return-value]  # it is a kind, where it is no prompt's type


class AttentionItem(BaseModel):
    """One thing that waits for a person."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    agent: str = Field(description="Its name; of another host `name@host`")
    agent_id: str
    host: str | None = Field(default=None, description="The other host on which the agent is")
    cwd: str = Field(description="The agent's folder")
    kind: AttentionKind
    question: str = Field(description="What is asked, or what is the matter")
    command: str | None = Field(
        default=None, description="The shell command that is to be allowed, whole, as a channel of the program told it"
    )
    diff: str | None = Field(default=None, description="The edit that is to be allowed, as a channel told it")
    options: list[PromptOption] = []
    since: str = Field(description="RFC 3339, UTC")
    task: str | None = None
    prompt_id: str | None = Field(default=None, description="An answer names it")
    prompt_type: str | None = Field(default=None, description="Of a `password` nothing is shown while it is typed")
    own_words: bool = Field(default=False, description="Besides the options, an answer in one's own words is taken")
    until: str | None = Field(default=None, description="When a limit ends, or is tried out (RFC 3339, UTC)")
    terminal: bool = Field(default=True, description="Its agent has a terminal that can be attached to")
    looked_at: bool = Field(default=False, description="Somebody sits at a terminal that is attached to the agent")


class HostState(StrEnum):
    CONNECTING = "connecting"
    UP = "up"
    """Its daemon answers."""
    SILENT = "silent"
    """The connection to it is open, but its daemon does not answer."""
    DOWN = "down"
    """The way to it has ended; it is tried again."""


class HostSaid(BaseModel):
    """State of the inbox of another host."""

    model_config = ConfigDict(extra="forbid")

    name: str
    state: HostState
    items: int = Field(default=0, description="How many of its are among `items`")
    left_out: int = Field(default=0, description="How many more it has, or has of a kind that is not known here")
    error: str | None = Field(default=None, description="Why it has said nothing")


# Answer after a person has put an item away.
class PutAway(BaseModel):
    model_config = ConfigDict(extra="forbid")

    status: Literal["seen"]
    id: str
