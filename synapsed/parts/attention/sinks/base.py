"""What the notifier knows of a sink."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from synapsed.parts.attention.notification_policy import Notice


class Untold(Exception):
    """The sink was not reached, or has refused; `problem` is for people and has no secret. `after`: seconds that it
    asks to be left alone for. `refused`: it was reached, and the same again will be refused, too."""

    def __init__(self, problem: str, *, after: float | None = None, refused: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.after = after
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Buttons:
    """Where yes and no are answered from elsewhere: addresses that work once."""

    approve: str
    deny: str


class SinkPort(Protocol):
    """`once`: the same notice again would be shown a second time, so that one of which it is not known whether it was
    told is not told again."""

    once: bool
    withdraws: bool
    """Whether a notice can be taken back."""
    sure: bool
    """Whether a notice can be taken back by its item's id alone, so that one of which it is not known whether it was
    told is taken back too."""

    async def tell(self, notice: Notice, buttons: Buttons | None) -> str:
        """What it is taken back by. Raises Untold."""
        ...

    async def withdraw(self, item_id: str, ref: str, outcome: Mapping[str, Any]) -> None:
        """Take it back; `outcome` says what became of the item. Raises Untold."""
        ...

    async def close(self) -> None:
        """May be called again."""
        ...
