"""Interface of a sink for the notifier."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from synapsed.parts.attention.notification_policy import Notice


class Untold(Exception):
    """Error of a sink that was not reached, or has refused; `problem` is for people and has no secret. `after`: seconds
    for which the sink asks not to be called. `refused`: it was reached, and will refuse the same notice again."""

    def __init__(self, problem: str, *, after: float | None = None, refused: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.after = after
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Buttons:
    """Addresses to which the buttons for yes and no are posted; each is valid once."""

    approve: str
    deny: str


class SinkPort(Protocol):
    """Sends notices to one place where people see them."""

    once: bool
    """True if a repeated notice would be shown a second time: a notice that may have been sent is not sent again."""
    withdraws: bool
    """True if a notice can be taken back."""
    sure: bool
    """True if a notice can be taken back by its item's id alone, so that a notice that may have been sent is taken back
    too."""

    async def tell(self, notice: Notice, buttons: Buttons | None) -> str:
        """Sends the notice; returns a reference to take it back by. Raises Untold."""
        ...

    async def withdraw(self, item_id: str, ref: str, outcome: Mapping[str, Any]) -> None:
        """Takes the notice back; `outcome` is the end of the item. Raises Untold."""
        ...

    async def close(self) -> None:
        """Closes the sink. May be called again."""
        ...
