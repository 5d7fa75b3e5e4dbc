"""The few seams between rooms: what the supervisor asks of the store and of a link, and the API of the supervisor.

The tests' fakes of store, link and control are under `tests/fakes`; that of the store is held to the same contract
tests as the real one.
"""

from synapsed.interfaces.control import (
    PERSON,
    Bringing,
    ConfigChange,
    Control,
    Directory,
    Elsewhere,
    OutboundQuestion,
    OutputPiece,
    Processes,
    SendRequest,
    StartRequest,
    Tasks,
    Terminals,
)
from synapsed.interfaces.link import (
    AgentLink,
    Attachment,
    Delivering,
    Delivery,
    DirectTerminal,
    DirectWay,
    FoundTurn,
    LinkTerminal,
    Reach,
    ScreenWatch,
    SideChannel,
    Submitted,
)
from synapsed.interfaces.store import (
    EVERY_EVENT,
    PAGE_SIZE,
    EventFilter,
    EventLog,
    EventPage,
    Store,
    TaskFilter,
    task_cursor,
)
from synapsed.model.events import NewEvent

__all__ = [
    "EVERY_EVENT",
    "PAGE_SIZE",
    "PERSON",
    "AgentLink",
    "Attachment",
    "Bringing",
    "ConfigChange",
    "Control",
    "Delivering",
    "Delivery",
    "DirectTerminal",
    "DirectWay",
    "Directory",
    "Elsewhere",
    "EventFilter",
    "EventLog",
    "EventPage",
    "FoundTurn",
    "LinkTerminal",
    "NewEvent",
    "OutboundQuestion",
    "OutputPiece",
    "Processes",
    "Reach",
    "ScreenWatch",
    "SendRequest",
    "SideChannel",
    "StartRequest",
    "Store",
    "Submitted",
    "TaskFilter",
    "Tasks",
    "Terminals",
    "task_cursor",
]
