"""The three events of document 004, its names and constraints; what we add to them is optional."""

from typing import Annotated, Any, Literal

from pydantic import Field

from synapsed.model.events.base import LARGE, Data, ReportedBy


class ToolExecution(Data):
    """A program began a tool call, or the call ended."""

    type: Literal["toolExecution"] = "toolExecution"
    tool_name: str = Field(description="The tool, as its program calls it")
    status: Literal["started", "completed", "failed"]
    input: Annotated[dict[str, Any] | None, LARGE] = Field(
        default=None, description="What the tool was given, secrets masked"
    )
    output: Annotated[dict[str, Any] | None, LARGE] = Field(
        default=None, description="What it gave back; a text is `{text: …}`"
    )
    error: Annotated[str | None, LARGE] = Field(
        default=None, description="Why it failed; for a denied one, the reason of the denial"
    )
    call_id: str | None = Field(default=None, description="The same of a call's start and its end")
    duration_ms: int | None = Field(default=None, ge=0, description="From start to end, where both were seen")
    denied: bool = Field(default=False, description="It failed because it was not allowed")
    exact: bool = Field(default=True, description="False: read off the screen")
    source: str | None = Field(
        default=None, description="The channel that told it, such as `hooks`, `server`, `screen`"
    )
    reported_by: ReportedBy = None


class AgentTransition(Data):
    """Work passed from one agent to another."""

    type: Literal["agentTransition"] = "agentTransition"
    from_agent: str | None = Field(default=None, description="Who had it; null: a person")
    to_agent: str = Field(description="Who has it now")
    reason: str | None = None
    kind: Literal["message", "reply", "external"] | None = Field(
        default=None,
        description="What carried it: a message, the reply to one, or a message to or from another machine",
    )
    from_task: str | None = Field(default=None, description="The sender's own task that this is part of")
    reported_by: ReportedBy = None


class EmotionUpdate(Data):
    """How the person who works with an agent seems to feel."""

    type: Literal["emotionUpdate"] = "emotionUpdate"
    emotion_type: Literal["frustration", "confidence", "fatigue", "joy"]
    level: int = Field(ge=1, le=5)
    detected_from: Literal["voice_tone", "text_analysis", "interaction_pattern"]
    evidence: str | None = Field(default=None, description="What was seen, in words; never what the person wrote")
    reported_by: ReportedBy = None
