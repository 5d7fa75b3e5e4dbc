"""Which browsers are told of what waits: one part keeps them, another one tells them."""

from collections.abc import Callable
from typing import Protocol

from synapsed.model.subscription import PushPlace, Subscriber


class Subscriptions(Protocol):
    key: str | None
    """The public key with which a page subscribes, as browsers want it; for who tells them to set. None: nobody is
    told."""
    on_subscribed: Callable[[], None]
    """Called when one was turned on or off, or is let in no more."""

    def subscribed(self) -> list[Subscriber]: ...

    async def subscribe(self, grant_id: str, push: PushPlace | None) -> None:
        """Tell it there from now on; None: nowhere. Raises UnknownDevice, StoreError."""
        ...

    async def unsubscribe(self, grant_id: str, dead: PushPlace) -> None:
        """It is told there no more, unless it has said something newer. Raises UnknownDevice, StoreError."""
        ...
