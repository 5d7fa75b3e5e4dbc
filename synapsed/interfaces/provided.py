"""Protocols that parts implement for the kernel and for each other: the inbox here and those of other hosts; the agents
of these; browsers that one part registers and another one notifies; and screens as documents."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from synapsed.interfaces.agent_link import Attachment, TypedLine
from synapsed.model.agent import AgentView
from synapsed.model.attention import AttentionItem, HostSaid
from synapsed.model.picture import Picture

type DrawnForm = Literal["html", "svg", "png"]
type Drawn = tuple[str, str | bytes]
"""Media type and content of a document."""


class ScreenDrawing(Protocol):
    def draw(self, shown: Picture, form: DrawnForm) -> Drawn:
        """Draws the screen. Blocks: call it in a thread. Raises NotReady if a library is missing."""
        ...


class LineRouting(Protocol):
    def line(self, attachment: Attachment, agent_id: str, only: frozenset[str] | None) -> TypedLine | None:
        """Returns the reader of lines that are typed at the agent's terminal; None if all are the program's. `only`:
        names of the only agents that may be written to; None: all."""
        ...


class WaitingHere:
    """The inbox of this host: empty, where no part keeps one."""

    def items(self) -> list[AttentionItem]:
        """Returns the items, oldest first."""
        return []

    @property
    def moved(self) -> asyncio.Event:
        """Returns an event that is set at the next change of the inbox. The next change has a new event, so take it
        before you read `items`."""
        return asyncio.Event()


class WaitingSource(Protocol):
    """The inboxes of other hosts."""

    async def inboxes(self) -> tuple[list[AttentionItem], list[HostSaid]]:
        """Returns the items that wait for a person there, and the state of each host."""
        ...


class AgentSource(Protocol):
    """The agents of other hosts."""

    async def agents(self) -> list[AgentView]:
        """Returns the agents of hosts that can be reached, under their addresses here."""
        ...

    async def teams(self) -> dict[str, list[str]]:
        """Returns the members of teams there, as addresses."""
        ...


class PushPlace(BaseModel):
    """Address at which a browser is notified (RFC 8030), and the keys for messages that only it can read (RFC 8291)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    endpoint: str = Field(max_length=2048)
    p256dh: str = Field(max_length=128)
    auth: str = Field(max_length=64)
    page: str = Field(default="", max_length=320)
    """Origin of the page that asked for it."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """`id` is the id of the grant of its page. `answers`: it may answer questions of agents."""

    id: str
    name: str
    place: PushPlace
    answers: bool


class Subscriptions(Protocol):
    key: str | None
    """The public key with which a page subscribes, as browsers want it; the part that sends notices sets it. None: no
    notices are sent."""
    on_subscribed: Callable[[], None]
    """Called when one was turned on or off, or its grant has ended."""

    def subscribed(self) -> list[Subscriber]: ...

    async def subscribe(self, grant_id: str, push: PushPlace | None) -> None:
        """Sends notices there from now on; None: nowhere. Raises UnknownDevice, StoreError."""
        ...

    async def unsubscribe(self, grant_id: str, dead: PushPlace) -> None:
        """Ends the notices to that address, unless the page has given a newer one. Raises UnknownDevice, StoreError."""
        ...
