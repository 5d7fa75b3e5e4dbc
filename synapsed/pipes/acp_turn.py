"""One turn of a program on pipes: the differences from a turn over a channel (`ChannelTurn`). Pure.

A message's key is the id of the request that gives it. The keeper writes a request once, however often it is asked to,
and the program's answer is found in its output by the same id. So the program need not be asked about the turn's state.
"""

from typing import Any

from synapsed.model.facts import ChannelFact, TurnEnded, TurnInterrupted
from synapsed.model.link import LinkTurnEnded
from synapsed.pty.channel_turn import ChannelTurn
from synapsed.pty.turn_types import Command, Phase


class AcpTurn(ChannelTurn):
    """The state machine of one turn."""

    def waited(self, now: float) -> list[Command]:
        """Does nothing as time passes: a silent keeper gives the message when it goes on."""
        return []

    def refuse(self, note: str | None, now: float) -> list[Command]:
        """Notes a refusal, without `note`: the program gets the refusal itself, so its model knows of it."""
        return super().refuse(None, now)

    def overrule(self) -> list[Command]:
        """Does nothing: a refusal counts until the turn ends, whatever the program does next."""
        return []

    def not_refused(self) -> list[Command]:
        """Notes that the program did not get the refusal."""
        return super().overrule()

    def told(self, fact: ChannelFact, now: float) -> list[Command]:
        """Handles a fact. TurnInterrupted ends the turn even if the program may have the message: it was given up."""
        if self.phase is Phase.SENDING and isinstance(fact, TurnInterrupted) and fact.turn == self.state.key:
            return self._reported(fact, now)
        return super().told(fact, now)

    def _ended(self, fact: TurnEnded, evidence: str, now: float) -> list[Command]:
        """Ends the turn; if it has text, that is the answer, even after a request to stop."""
        if fact.answer:
            return self._over(LinkTurnEnded(self.task_id, fact.answer, True, evidence, fact.truncated))
        return super()._ended(fact, evidence, now)


def of_before(link: dict[str, Any]) -> dict[str, Any]:
    """Returns the turn's record in the present form; an earlier version used other field names."""
    if "prompt" not in link:
        return link
    refused_at = 0.0 if link.get("refused") else None
    return {"key": link["prompt"], "interrupting": bool(link.get("interrupting")), "refused_at": refused_at}
