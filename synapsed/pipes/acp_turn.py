"""One turn of a program on pipes: what differs from one over a channel (`ChannelTurn`). Pure.

A message's key is the id of the request that gives it. The keeper writes a request once, however often that is asked
of it, and its answer is found in the program's output by its id, so that nothing has to be asked of the program.
"""

from typing import Any

from synapsed.model.facts import ChannelFact, TurnEnded, TurnInterrupted
from synapsed.model.link import LinkTurnEnded
from synapsed.pty.channel_turn import ChannelTurn
from synapsed.pty.turn_types import Command, Phase


class AcpTurn(ChannelTurn):
    """The machine of one turn."""

    def waited(self, now: float) -> list[Command]:
        """A keeper that is silent gives the message when it goes on."""
        return []

    def refuse(self, note: str | None, now: float) -> list[Command]:
        """The program was given the refusal, and its model knows of it."""
        return super().refuse(None, now)

    def overrule(self) -> list[Command]:
        """A refusal counts until the turn ends, whatever the program says to it."""
        return []

    def not_refused(self) -> list[Command]:
        """The program was not given the refusal."""
        return super().overrule()

    def told(self, fact: ChannelFact, now: float) -> list[Command]:
        """One that was given up is over, though nobody knows whether the program has the message."""
        if self.phase is Phase.SENDING and isinstance(fact, TurnInterrupted) and fact.turn == self.state.key:
            return self._reported(fact, now)
        return super().told(fact, now)

    def _ended(self, fact: TurnEnded, evidence: str, now: float) -> list[Command]:
        """What was said is the answer, though it was told to stop."""
        if fact.answer:
            return self._over(LinkTurnEnded(self.task_id, fact.answer, True, evidence, fact.truncated))
        return super()._ended(fact, evidence, now)


def of_before(link: dict[str, Any]) -> dict[str, Any]:
    """What is on record of a turn, also of one that a version before has begun, which had words of its own."""
    if "prompt" not in link:
        return link
    refused_at = 0.0 if link.get("refused") else None
    return {"key": link["prompt"], "interrupting": bool(link.get("interrupting")), "refused_at": refused_at}
