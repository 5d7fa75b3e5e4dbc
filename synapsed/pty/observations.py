"""Tells an agent of its program, look by look, what has changed since it was told last. Pure."""

from dataclasses import replace
from typing import Any

from synapsed.model.agent import Activity
from synapsed.model.link import LinkAlert, LinkObserved
from synapsed.profiles.profile import Profile
from synapsed.pty.keyboard import Emit
from synapsed.pty.pending_answer import Asking
from synapsed.pty.readiness import UNKNOWN_SCREEN, Obstacle
from synapsed.pty.session_commands import Poll, SessionCommand
from synapsed.terminal.look import Look

UNDRAWN = "its screen is not drawn"

LEARNED = "; where that is its prompt, a line that you type there teaches it, or start it with --prompt 'TEXT'"


class Observations:
    """Tells of one program. `asked` is what the daemon before has kept of what was `asking`."""

    def __init__(self, profile: Profile, asked: Any) -> None:
        self._learns = profile.composer.usual
        self.asking = Asking(asked)
        self.last: LinkObserved | None = None
        """The last observation, which was told if it told anything."""
        self.touched: str | None = None
        """The prompt on the screen, if a person has been at it: what is selected there is theirs."""

    def touch(self) -> None:
        """A person has been at what is asked."""
        if self.last is not None and self.last.prompt is not None:
            self.touched = self.last.prompt.prompt_id

    def tell(self, look: Look, found: Obstacle | None, *, in_turn: bool) -> list[SessionCommand]:
        """Returns what is to be told of `look`; `found` keeps a message from being typed, `in_turn` says that one was
        given."""
        asked = look.verdict.asked
        prompt_id = asked.prompt.prompt_id if asked is not None else None
        observed = LinkObserved(
            activity=look.verdict.activity,
            evidence=look.verdict.evidence,
            prompt=asked.prompt if asked is not None else None,
            can_receive=found is None,
            held=found.held if found is not None else None,
            asking=self.asking.number,
            by_hand=self.touched if self.touched != prompt_id else None,
        )
        if observed.by_hand is not None:
            self.asking.given(observed.by_hand, look.offset)
            self.touched = None
        if observed == self.last:
            return []
        before, self.last = self.last, observed
        if before is not None and replace(before, can_receive=False) == observed:
            return []  # that its message came, or that it moves: the agent asks again before it gives another one
        commands: list[SessionCommand] = []
        if in_turn and before is not None and observed.activity is not before.activity:
            commands.append(Poll())  # what a transcript says of it is not poked for
        commands.append(Emit(observed))
        unknown = observed.held == UNKNOWN_SCREEN.held
        if unknown is not (before is not None and before.held == UNKNOWN_SCREEN.held):
            commands.append(Emit(_unknown_screen(observed, LEARNED if self._learns else "", begins=unknown)))
        return commands

    def unseen(self) -> LinkObserved:
        """Returns what is known while nobody draws the screen: the last that was observed, and that nothing can be
        typed. The next look tells what it sees."""
        known = self.last or LinkObserved(Activity.UNKNOWN, UNDRAWN, None, can_receive=False)
        self.last = replace(known, can_receive=False)
        return self.last


def _unknown_screen(seen: LinkObserved, ways: str, *, begins: bool) -> LinkAlert:
    """What nobody here can read is a person's: they are told when it begins, and when it is over."""
    if not begins:
        return LinkAlert("UNKNOWN_SCREEN", "its screen is understood again", "over")
    message = f"its screen is not understood ({seen.evidence}): attach answers it, or 'synapsectl keys'{ways}"
    return LinkAlert("UNKNOWN_SCREEN", message, "begins")
