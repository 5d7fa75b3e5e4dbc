"""Whose a side channel's report is: the present turn's, an earlier one's, or that of another prompt. Pure."""

from synapsed.model.facts import ChannelFact, PromptAccepted, TurnEnded
from synapsed.pty.turn_types import BEFORE_SUBMISSION, Phase, TurnState
from synapsed.terminal.delivery import Typed


class TurnReports:
    """A program that was given several prompts tells of all of them, by ids of its own where it has such."""

    def __init__(self) -> None:
        self._others: set[str] = set()
        """Ids of other prompts' turns."""

    def is_younger(self, fact: ChannelFact, state: TurnState) -> bool:
        """Whether the fact is from after the submission: it may be of this turn."""
        if state.typings > 0 and state.phase in (Phase.PREPARED, Phase.SETTLING):  # of it as it was typed before
            submitted = state.submit_ns > 0 and isinstance(fact, PromptAccepted)
        else:
            submitted = state.submitted and state.phase not in BEFORE_SUBMISSION
        return submitted and fact.at_ns >= state.submit_ns

    def is_prompt_of(self, fact: PromptAccepted, typed: Typed, state: TurnState) -> bool:
        """Whether the prompt that was accepted is what was `typed`; its turn's id is kept in `state` then."""
        if typed.may_be(fact.prompt):
            state.turn = state.turn or fact.turn
            return True
        if fact.turn is not None and fact.turn != state.turn:
            self._others.add(fact.turn)
        return False

    def is_mine(self, fact: ChannelFact, typed: Typed, state: TurnState) -> bool:
        """Whether it is of this turn; every prompt that was accepted may be."""
        if isinstance(fact, TurnEnded) and not typed.may_be(fact.prompt):
            return False
        known = None not in (fact.turn, state.turn)
        same = fact.turn == state.turn if known else fact.turn not in self._others
        return isinstance(fact, PromptAccepted) or same
