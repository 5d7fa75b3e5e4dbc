"""Makes the spans of a task from its history when it is over. Pure, and without the library that sends them.

::

    invoke_agent ann                      the task, in its sender's trace
    ├── queue                             in the mailbox
    ├── deliver                           being typed, until it is submitted
    └── turn                              the program has it
        ├── execute_tool Bash
        └── input                         it asks a person

Names and attributes are those of OpenTelemetry's conventions for generative AI where these have one (`gen_ai.…`,
`error.type`), else ours (`synapse.…`). They never contain messages, questions, inputs of tools or screens.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from synapsed.interfaces import TraceContext, context_of, parent_of, span_id
from synapsed.model.external import alias_of
from synapsed.model.sender import Sender
from synapsed.model.task import TaskState
from synapsed.parts.telemetry.task_lives import Life, Period, TaskPhase, ToolLife

type Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Span:
    """A span of a trace."""

    name: str
    kind: Literal["server", "client", "internal"]
    context: TraceContext
    parent_id: str | None
    begin: float
    """Seconds since the epoch."""
    end: float
    """Seconds since the epoch."""
    error: str | None = None
    """Kind of an error, never its text."""
    attributes: Mapping[str, Value] = field(default_factory=dict)


def spans_of(life: Life, metadata: Mapping[str, Any], *, name: str, profile: str, share: float) -> Iterator[Span]:
    """Returns the spans of a task that is over, its own first; none if its trace is not sampled. `metadata` is the
    task's; `name` and `profile` are its agent's; `share` is the share of traces that are sampled."""
    assert life.end is not None
    whole = context_of(life.task_id, metadata, share=share)
    if not whole.sampled:
        return
    parent = parent_of(metadata)
    yield Span(
        f"invoke_agent {name}",
        "client" if alias_of(life.agent_id) is not None else "server",
        whole,
        parent.span_id if parent is not None else None,
        life.begin,
        life.end,
        life.code if life.state in (TaskState.FAILED, TaskState.REJECTED) else None,
        _about(life, metadata, name, profile),
    )
    yield from _stages(life, whole)
    yield from _tools(life, whole)


def _about(life: Life, metadata: Mapping[str, Any], name: str, profile: str) -> dict[str, Value]:
    told: dict[str, Value | None] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        "gen_ai.agent.id": life.agent_id,
        "gen_ai.conversation.id": life.context_id,
        "gen_ai.response.model": life.model,
        "synapse.profile": profile,
        "synapse.task.id": life.task_id,
        "synapse.task.state": life.state.value,
        "synapse.spans.dropped": life.dropped or None,
    }
    if life.tokens:
        # The conventions count tokens from a cache as input too.
        cached = life.tokens["cache_read"] + life.tokens["cache_write"]
        told |= {
            "gen_ai.usage.input_tokens": life.tokens["input"] + cached,
            "gen_ai.usage.output_tokens": life.tokens["output"],
            "gen_ai.usage.cache_read.input_tokens": life.tokens["cache_read"] or None,
            "gen_ai.usage.cache_creation.input_tokens": life.tokens["cache_write"] or None,
        }
    sender = Sender.of(metadata)
    told["synapse.sender.id"] = sender.id if sender is not None else None
    return {key: value for key, value in told.items() if value is not None}


def _stages(life: Life, whole: TraceContext) -> Iterator[Span]:
    turn = whole.span_id
    last = next((one for one in reversed(life.periods) if one.stage in (TaskPhase.DELIVERING, TaskPhase.TURN)), None)
    for number, period in enumerate(life.periods, 1):
        own = _within(life, whole, period.stage.value, str(number))
        parent = whole.span_id
        if period.stage is TaskPhase.TURN:
            turn = own.span_id
        elif period.stage is TaskPhase.ASKING:
            parent = turn
        failed = life.code if period is last else None
        end = period.end if period.end is not None else life.end or period.begin
        yield Span(period.stage.value, "internal", own, parent, period.begin, max(end, period.begin), failed)


def _tools(life: Life, whole: TraceContext) -> Iterator[Span]:
    turns = [(number, period) for number, period in enumerate(life.periods, 1) if period.stage is TaskPhase.TURN]
    for number, call in enumerate(life.tools, 1):
        within = next((turn for turn in turns if _covers(turn[1], call)), None)
        parent = whole.span_id if within is None else span_id(life.task_id, TaskPhase.TURN.value, str(within[0]))
        about: dict[str, Value] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.name}
        if call.call_id is not None:
            about["gen_ai.tool.call.id"] = call.call_id
        if not call.exact:
            about["synapse.exact"] = False
        end = call.end if call.end is not None else life.end or call.begin
        yield Span(
            f"execute_tool {call.name}",
            "internal",
            _within(life, whole, "tool", str(number)),
            parent,
            call.begin,
            max(end, call.begin),
            _error_of(call),
            about,
        )


def _error_of(call: ToolLife) -> str | None:
    if call.denied:
        return "denied"
    return {"failed": "tool_error", "started": "not_ended"}.get(call.status)


def _covers(turn: Period, call: ToolLife) -> bool:
    return turn.begin <= call.begin and (turn.end is None or call.begin <= turn.end)


def _within(life: Life, whole: TraceContext, *what: str) -> TraceContext:
    return TraceContext(whole.trace_id, span_id(life.task_id, *what), whole.sampled, whole.state)
