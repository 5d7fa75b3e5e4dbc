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
    Store,
    TaskFilter,
    task_cursor,
)
from synapsed.interfaces.subscriptions import Subscriptions
from synapsed.model.events import NewEvent
from synapsed.model.follower import FollowerState
from synapsed.model.grants import RIGHTS, Grant, Right, Token, TokenKind
from synapsed.model.subscription import PushPlace, Subscriber

__all__ = [
    "EVERY_EVENT",
    "PAGE_SIZE",
    "PERSON",
    "RIGHTS",
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
    "Drawn",
    "DrawnForm",
    "Elsewhere",
    "EventFilter",
    "EventLog",
    "EventPage",
    "FollowerState",
    "FoundTurn",
    "Grant",
    "LinkTerminal",
    "NewEvent",
    "OutboundQuestion",
    "OutputPiece",
    "Processes",
    "PushPlace",
    "Reach",
    "Right",
    "ScreenDrawing",
    "ScreenWatch",
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
    "task_cursor",
]
