"""The typed events of the one log: past-tense facts, each a row; every stream is a view of them.

An event is written once, in the transaction that changes what it tells of, and gets its `id` there: ids grow by one
log-wide and survive the daemon, so that an id is a cursor. `stored` has the log's form of them, `wire` the envelope in
which clients get them.
"""

from synapsed.model.events.agents import (
    REMOVED,
    ActivityChanged,
    AgentAlert,
    AgentReported,
    AttentionChanged,
    InputAnswered,
    InputRequired,
    PermissionDecided,
    ScreenRested,
    StateChanged,
    TokensUsed,
    TurnSeen,
)
from synapsed.model.events.automation import RuleFired, ScheduleCame
from synapsed.model.events.base import By, Data, Origin, Where
from synapsed.model.events.seeds import AgentTransition, EmotionUpdate, ToolExecution
from synapsed.model.events.stored import OLD_TYPES, Event, EventData, NewEvent, parse_event
from synapsed.model.events.stream import DaemonChanged, Gap
from synapsed.model.events.tasks import TaskArtifactAdded, TaskDelivered, TaskStatusChanged
from synapsed.model.events.wire import envelope, enveloped

__all__ = [
    "OLD_TYPES",
    "REMOVED",
    "ActivityChanged",
    "AgentAlert",
    "AgentReported",
    "AgentTransition",
    "AttentionChanged",
    "By",
    "DaemonChanged",
    "Data",
    "EmotionUpdate",
    "Event",
    "EventData",
    "Gap",
    "InputAnswered",
    "InputRequired",
    "NewEvent",
    "Origin",
    "PermissionDecided",
    "RuleFired",
    "ScheduleCame",
    "ScreenRested",
    "StateChanged",
    "TaskArtifactAdded",
    "TaskDelivered",
    "TaskStatusChanged",
    "TokensUsed",
    "ToolExecution",
    "TurnSeen",
    "Where",
    "envelope",
    "enveloped",
    "parse_event",
]
