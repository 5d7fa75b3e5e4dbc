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
from synapsed.model.agent import ADDRESS_MAX, NAME_PATTERN, Activity, AgentView, ProcessState, ProfileAnswer
from synapsed.model.attention import HostSaid, PutAway
from synapsed.model.events import NewEvent
from synapsed.model.figures import SLOW_S, AgentFigures, DaemonFigures, Histogram
from synapsed.model.follower import FollowerState, LogProgress
from synapsed.model.grants import RIGHTS, Grant, Right, Token, TokenKind
from synapsed.model.host import HostState
from synapsed.model.kept_file import SCHEME, SIZE, KeptFile, given_here, is_kept
from synapsed.model.picture import Glyph, Ink, Picture, Rgb
from synapsed.model.records import ReplyRecord
from synapsed.model.trace import TraceContext, context_of, parent_of, span_id

__all__ = [
    "ADDRESS_MAX",
    "EVERY_EVENT",
    "NAME_PATTERN",
    "PAGE_SIZE",
    "PERSON",
    "RIGHTS",
    "SCHEME",
    "SIZE",
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
    "HostState",
    "Ink",
    "KeptFile",
    "LinkTerminal",
    "LogProgress",
    "NewEvent",
    "OutboundQuestion",
    "OutputPiece",
    "Picture",
    "ProcessState",
    "Processes",
    "ProfileAnswer",
    "PushPlace",
    "PutAway",
    "Reach",
    "ReplyRecord",
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
    "TraceContext",
    "TypedLine",
    "WaitingHere",
    "WaitingSource",
    "context_of",
    "given_here",
    "is_kept",
    "parent_of",
    "span_id",
    "task_cursor",
]
