"""The few seams between rooms: what the supervisor asks of the store and of a link, and the API of the supervisor.

The tests' fakes of store, link and control are under `tests/fakes`; that of the store is held to the same contract
tests as the real one.
"""

from synapsed.interfaces.control import (
    PERSON,
    Bringing,
    Carrier,
    ConfigChange,
    Control,
    Directory,
    OutboundQuestion,
    OutputPiece,
    Processes,
    SendRequest,
    StartRequest,
    Tasks,
    Terminals,
)
from synapsed.interfaces.drawing import Drawn, DrawnForm, ScreenDrawing
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
    TypedLine,
)
from synapsed.interfaces.store import (
    EVERY_EVENT,
    PAGE_SIZE,
    EventFilter,
    EventLog,
    EventPage,
    Rows,
    RowsOfTask,
    Seal,
    Store,
    TaskFilter,
    task_cursor,
)
from synapsed.interfaces.subscriptions import PushPlace, Subscriber, Subscriptions
from synapsed.interfaces.waiting import AgentSource, WaitingHere, WaitingSource
from synapsed.model.agent import Activity, AgentView, ProcessState
from synapsed.model.attention import HostSaid, PutAway
from synapsed.model.events import NewEvent
from synapsed.model.figures import SLOW_S, AgentFigures, DaemonFigures, Histogram
from synapsed.model.follower import FollowerState
from synapsed.model.grants import RIGHTS, Grant, Right, Token, TokenKind
from synapsed.model.picture import Glyph, Ink, Picture, Rgb

__all__ = [
    "EVERY_EVENT",
    "PAGE_SIZE",
    "PERSON",
    "RIGHTS",
    "SLOW_S",
    "Activity",
    "AgentFigures",
    "AgentLink",
    "AgentSource",
    "AgentView",
    "Attachment",
    "Bringing",
    "Carrier",
    "ConfigChange",
    "Control",
    "DaemonFigures",
    "Delivering",
    "Delivery",
    "DirectTerminal",
    "DirectWay",
    "Directory",
    "Drawn",
    "DrawnForm",
    "EventFilter",
    "EventLog",
    "EventPage",
    "FollowerState",
    "FoundTurn",
    "Glyph",
    "Grant",
    "Histogram",
    "HostSaid",
    "Ink",
    "LinkTerminal",
    "NewEvent",
    "OutboundQuestion",
    "OutputPiece",
    "Picture",
    "ProcessState",
    "Processes",
    "PushPlace",
    "PutAway",
    "Reach",
    "Rgb",
    "Right",
    "Rows",
    "RowsOfTask",
    "ScreenDrawing",
    "ScreenWatch",
    "Seal",
    "SendRequest",
    "SideChannel",
    "StartRequest",
    "Store",
    "Submitted",
    "Subscriber",
    "Subscriptions",
    "TaskFilter",
    "Tasks",
    "Terminals",
    "Token",
    "TokenKind",
    "TypedLine",
    "WaitingHere",
    "WaitingSource",
    "task_cursor",
]
