"""Answers of the history: texts for a search, and usage that is added up."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

type HistoryKind = Literal["message", "answer", "tool"]
KINDS: tuple[HistoryKind, ...] = ("message", "answer", "tool")


class _Told(BaseModel):
    model_config = ConfigDict(extra="forbid")


class HistoryItem(_Told):
    """A message, an answer or a tool call. Secrets in it are masked. Ids grow in the order in which it all happened."""

    id: int
    time: str = Field(description="RFC 3339, UTC")
    kind: HistoryKind
    agent: str = Field(description="The agent that it was said to, or that said or did it; its id")
    task: str | None = Field(description="null: a turn that a person typed at the terminal, or a tool call in one")
    context: str | None
    thread: str | None = Field(description="The context of the message on which its sender was at work, else its own")
    by: str | None = Field(description="Who wrote it: an agent's id; null: a person")
    to: str | None = Field(description="For whom it is: an agent's id; null: a person, or nobody")
    tool: str | None = Field(description="The tool's name")
    state: str | None = Field(description="How the task of an answer, or a tool call, ended")
    snippet: str = Field(description="Its beginning, or what stands around the first word that was looked for")
    text: str | None = Field(description="All that is kept of it; null where it was not asked for")
    truncated: bool = Field(description="Only its beginning is kept here")


class HistoryPage(_Told):
    """A page of results, newest first. `next` goes on where this page ends, as `before`; null: there is nothing older.
    `complete` is false while the newest events are not in here yet."""

    items: list[HistoryItem]
    next: int | None
    complete: bool


class HistoryStats(_Told):
    """Size of the history, by kind, by agent and by day of the local zone; `first` and `last` are times."""

    items: int
    tasks: int
    contexts: int
    first: str | None
    last: str | None
    by_kind: dict[str, int]
    by_agent: dict[str, int]
    by_day: dict[str, int]
    complete: bool


class UsageRow(_Told):
    """Usage of `turns` together. A figure is null if no program reported it; `priced` of them reported their cost."""

    agent: str | None = None
    day: str | None = Field(default=None, description="Of the local zone, such as 2026-01-31")
    task: str | None = Field(default=None, description="null where it is of no task, or rows are not by task")
    turns: int
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None
    priced: int
    last: str | None = Field(description="When the last of the turns was told of")


class UsageReport(_Told):
    """Rows by agent, day or task, and all of it together. `more`: there are more rows than were asked for."""

    by: Literal["agent", "day", "task"]
    rows: list[UsageRow]
    total: UsageRow
    more: bool
    complete: bool
