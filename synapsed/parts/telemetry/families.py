"""The table of all metrics, by name, and the values of agents' metrics. Pure, and without the library that writes them.

Names follow Prometheus' conventions: base units, `_total` for counters, a label only for bounded sets of values. No
label has a task, a person's text, a path or a message; agents have their own names.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from synapsed.interfaces import Activity, AgentFigures, Histogram, ProcessState
from synapsed.model.task import TaskState

Kind = Literal["gauge", "counter", "histogram", "info"]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its name with the suffix of its kind, its description, the names of its labels."""

    name: str
    kind: Kind
    about: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    labels: tuple[str, ...]
    value: float | Histogram


type Values = Mapping[str, Iterable[tuple[Sequence[str], float | Histogram]]]
"""Labels and values by a family's name; the iterables may compute them on demand."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A family with its samples, which are made on demand."""

    family: Family
    samples: Iterable[Sample]


_AGENT = ("agent", "profile")
_PROFILE = ("profile",)

FAMILIES: Final = {
    family.name: family
    for family in (
        Family("synapse_build_info", "info", "The daemon's version and its Python's.", ("version", "python")),
        Family("synapse_start_time_seconds", "gauge", "When the daemon began, since the epoch."),
        # Agents, now.
        Family("synapse_agents", "gauge", "Agents by the state of their process.", ("profile", "state")),
        Family("synapse_agents_activity", "gauge", "Running agents by what they do.", ("profile", "activity")),
        Family("synapse_agent_up", "gauge", "1 while the agent's program runs, else 0.", _AGENT),
        Family("synapse_agent_failed", "gauge", "1 while the agent's program crashes again and again.", _AGENT),
        Family("synapse_agent_waiting", "gauge", "1 while the agent waits for a person, else 0.", _AGENT),
        Family("synapse_agent_queue_tasks", "gauge", "Tasks that wait in the agent's mailbox.", _AGENT),
        Family("synapse_agent_queue_age_seconds", "gauge", "How long the oldest of them waits; 0 for none.", _AGENT),
        Family("synapse_agent_terminals", "gauge", "Terminals that are attached to the agent.", _AGENT),
        Family("synapse_agent_alerts", "gauge", "What is wrong with the agent until somebody mends it.", _AGENT),
        Family("synapse_agent_restarts_total", "counter", "Restarts of the agent by its policy.", _AGENT),
        Family("synapse_agent_output_bytes_total", "counter", "Bytes that its program wrote to its terminal.", _AGENT),
        # Tasks.
        Family("synapse_tasks_open", "gauge", "Tasks that are not over, by state.", ("state",)),
        Family("synapse_tasks_submitted_total", "counter", "Tasks that were accepted.", _PROFILE),
        Family("synapse_tasks_ended_total", "counter", "Tasks that are over, by how.", ("profile", "state")),
        Family("synapse_tasks_failed_total", "counter", "Failed tasks by their error's code.", ("profile", "code")),
        Family("synapse_task_queue_seconds", "histogram", "Time in the mailbox, until it is taken.", _PROFILE),
        Family("synapse_task_delivery_seconds", "histogram", "Time from being taken to being submitted.", _PROFILE),
        Family("synapse_task_turn_seconds", "histogram", "Time that the program had the task.", _PROFILE),
        Family("synapse_task_input_seconds", "histogram", "Time that a question waited for its answer.", _PROFILE),
        Family("synapse_task_completion_seconds", "histogram", "From acceptance to completion.", _PROFILE),
        Family("synapse_tool_calls_total", "counter", "Calls of tools that ended, by how.", ("profile", "status")),
        Family("synapse_tool_call_seconds", "histogram", "Time that a call of a tool took.", _PROFILE),
        Family("synapse_agent_tokens_total", "counter", "Tokens that were told of.", ("agent", "profile", "kind")),
        Family("synapse_agent_cost_dollars_total", "counter", "Cost in US dollars that was told of.", _AGENT),
        # The daemon.
        Family("synapse_events_total", "counter", "Events that were written to the log, by type.", ("type",)),
        Family("synapse_subscribers", "gauge", "SSE streams and WebSockets that are open."),
        Family("synapse_loop_lag_seconds", "histogram", "How late the event loop was, each second."),
        Family("synapse_store_commit_seconds", "histogram", "From a write's being asked for to its being durable."),
        Family("synapse_store_read_seconds", "histogram", "From a read's being asked for to its answer."),
        Family("synapse_store_errors_total", "counter", "Writes and reads that the database refused.", ("reason",)),
        Family("synapse_store_size_bytes", "gauge", "Size of the database and its log on disk."),
        Family(
            "synapse_trace_spans_total", "counter", "Spans for the collector, by what became of them.", ("outcome",)
        ),
        Family("synapse_process_cpu_seconds_total", "counter", "CPU time of the daemon, user and system."),
        Family("synapse_process_resident_memory_bytes", "gauge", "Memory of the daemon."),
        Family("synapse_process_open_fds", "gauge", "Open file descriptors of the daemon."),
        Family("synapse_process_max_fds", "gauge", "How many of them it may have."),
        Family("synapse_process_threads", "gauge", "Threads of the daemon."),
    )
}


def sheets_of(values: Values) -> Iterator[Sheet]:
    """Yields the families that `values` has samples for, in the table's order. Raises KeyError for an unknown name."""
    for name in values.keys() - FAMILIES.keys():
        raise KeyError(name)
    for name, family in FAMILIES.items():
        if name in values:
            yield Sheet(family, (Sample(tuple(labels), value) for labels, value in values[name]))


def agent_values(agents: Sequence[AgentFigures], *, now: float) -> Values:
    """Returns the values of the present agents."""

    def each(value_of: Callable[[AgentFigures], float | None]) -> Iterator[tuple[Sequence[str], float]]:
        for one in agents:
            if (value := value_of(one)) is not None:
                yield (one.name, one.profile), value

    running = ProcessState.RUNNING
    return {
        "synapse_agents": _states(agents),
        "synapse_agents_activity": _activities(agents),
        "synapse_agent_up": each(lambda one: float(one.state is running)),
        "synapse_agent_failed": each(lambda one: float(one.state is ProcessState.FAILED)),
        "synapse_agent_waiting": each(lambda one: float(one.state is running and one.activity is Activity.WAITING)),
        "synapse_agent_queue_tasks": each(lambda one: one.queue),
        "synapse_agent_queue_age_seconds": each(lambda one: 0.0 if one.oldest is None else max(now - one.oldest, 0.0)),
        "synapse_agent_terminals": each(lambda one: one.terminals),
        "synapse_agent_alerts": each(lambda one: one.alerts),
        "synapse_agent_restarts_total": each(lambda one: one.restarts),
        "synapse_agent_output_bytes_total": each(lambda one: one.output),
        "synapse_tasks_open": _open_tasks(agents),
    }


def _states(agents: Sequence[AgentFigures]) -> Iterator[tuple[Sequence[str], float]]:
    """Yields every state of each present profile: a series that begins only with the first failure has no earlier value
    to compare with."""
    counts = Counter((one.profile, one.state) for one in agents)
    for profile in sorted({one.profile for one in agents}):
        for state in ProcessState:
            yield (profile, state.value), counts[profile, state]


def _activities(agents: Sequence[AgentFigures]) -> Iterator[tuple[Sequence[str], float]]:
    counts = Counter((one.profile, one.activity) for one in agents if one.state is ProcessState.RUNNING)
    for profile in sorted({one.profile for one in agents}):
        for activity in Activity:
            yield (profile, activity.value), counts[profile, activity]


def _open_tasks(agents: Sequence[AgentFigures]) -> Iterator[tuple[Sequence[str], float]]:
    counts = Counter(one.current for one in agents if one.current is not None)
    counts[TaskState.SUBMITTED] += sum(one.queue for one in agents)
    for state in (TaskState.SUBMITTED, TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED):
        yield (state.value,), counts[state]
