"""One turn of a program on pipes: the differences from one over a channel (`ChannelTurn`). Pure.

A message's key is the id of the request that gives it. The keeper writes a request once, however often it is asked to,
and its answer is found in the program's output by its id, so the program need not be asked about anything.
"""

from typing import Any

from synapsed.model.facts import ChannelFact, TurnEnded, TurnInterrupted
from synapsed.model.link import LinkTurnEnded
from synapsed.pty.channel_turn import ChannelTurn
from synapsed.pty.turn_types import Command, Phase


class AcpTurn(ChannelTurn):
    """The machine of one turn."""

    def waited(self, now: float) -> list[Command]:
        """Does nothing as time passes: a keeper that is silent gives the message when it goes on."""
        return []

    def refuse(self, note: str | None, now: float) -> list[Command]:
        """Notes that the program was given the refusal, and its model knows of it."""
        return super().refuse(None, now)

    def overrule(self) -> list[Command]:
        """Does nothing: a refusal counts until the turn ends, whatever the program replies."""
        return []

    def not_refused(self) -> list[Command]:
        """Notes that the program was not given the refusal."""
        return super().overrule()

    def told(self, fact: ChannelFact, now: float) -> list[Command]:
        """Handles a fact. A turn that was given up is over, even if it is unknown whether the program has the
        message."""
        if self.phase is Phase.SENDING and isinstance(fact, TurnInterrupted) and fact.turn == self.state.key:
            return self._reported(fact, now)
        return super().told(fact, now)

    def _ended(self, fact: TurnEnded, evidence: str, now: float) -> list[Command]:
        """Ends the turn with its text as the answer, even after a request to stop."""
        if fact.answer:
            return self._over(LinkTurnEnded(self.task_id, fact.answer, True, evidence, fact.truncated))
        return super()._ended(fact, evidence, now)


def of_before(link: dict[str, Any]) -> dict[str, Any]:
    """Converts the record of a turn, also one of an earlier version, which used other words."""
    if "prompt" not in link:
        return link
    refused_at = 0.0 if link.get("refused") else None
    return {"key": link["prompt"], "interrupting": bool(link.get("interrupting")), "refused_at": refused_at}
