"""Reports changes of a program to its agent, look by look, and follows the answers to its questions: if one is still
being typed, and if the same is asked again. Pure.

A question is known by its words. If the same is asked once more after an answer, that is another prompt, with an id of
its own: an answer to the one before does not answer it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from synapsed.model.agent import Activity
from synapsed.model.link import LinkAlert, LinkObserved
from synapsed.profiles.profile import Profile
from synapsed.pty.keyboard import Emit
from synapsed.pty.readiness import MISREAD_COMPOSER, UNKNOWN_SCREEN, Obstacle
from synapsed.pty.session_commands import Poll, SessionCommand
from synapsed.pty.turn_types import MISREAD
from synapsed.terminal.look import Look

WORDS_MAX = 64
"""Number of prompts whose counts are kept; the latest ones."""


class Asking:
    """The questions of one program. `number` changes if a prompt is asked again after an answer (a password was wrong).

    `kept` is the value that the last daemon has `kept`.
    """

    def __init__(self, kept: Any = None) -> None:
        self.number = 0
        self.answering: set[str] = set()
        """Prompts that are being answered: a second answer to one might find another question."""
        self._given: dict[str, int] = {}
        """Prompts that were given an answer, with the offset at which the output ended before that."""
        self._at_once: set[str] = set()
        """Prompts of line-oriented programs among them: all output after the answer is newer than the answer."""
        self._times: Counter[str] = Counter(
            {str(words): times for words, times in kept.items() if isinstance(times, int)}
            if isinstance(kept, Mapping)
            else ()
        )
        """Number of times that the same words were asked again, by their id."""
        self._here: str | None = None
        """The question when the screen counted last."""

    @property
    def kept(self) -> dict[str, int]:
        """Returns the state for the next daemon: by its words, how often a question was asked again."""
        return dict(list(self._times.items())[-WORDS_MAX:])

    def begin(self, prompt_id: str, offset: int | None) -> None:
        """Notes that the prompt is being answered. `offset` is the present end of the output; None for a dialog, which
        may also be drawn again while it waits."""
        self.answering.add(prompt_id)
        if offset is not None:
            self._at_once.add(prompt_id)
            self.given(prompt_id, offset)

    def given(self, prompt_id: str, offset: int) -> None:
        """Notes that an answer was submitted to it, after the output up to `offset`; or may have been, by a person's
        keys."""
        self._given[prompt_id] = offset

    def end(self, *prompt_ids: str) -> None:
        self.answering.difference_update(prompt_ids)

    def shown(self, offset: int, prompt_id: str | None) -> bool:
        """Takes the prompt on the screen, drawn up to `offset`. Returns True if it is asked again: `named` gives it
        another id from now on."""
        before, self._here = self._here, prompt_id
        if prompt_id is None or (given := self._given.get(prompt_id)) is None:
            return False
        waits = prompt_id in self.answering and prompt_id not in self._at_once
        if before == prompt_id and (waits or offset <= given):
            return False
        del self._given[prompt_id]
        self._at_once.discard(prompt_id)
        words = prompt_id.partition("-")[0]
        self._times[words] = self._times.pop(words, 0) + 1
        self._here = self._id(words)
        self.number += 1
        return True

    def named(self, look: Look) -> Look:
        """Returns the look, with its question under the id of this time."""
        asked = look.verdict.asked
        if asked is None or (now := self._id(asked.prompt.prompt_id.partition("-")[0])) == asked.prompt.prompt_id:
            return look
        prompt = asked.prompt.model_copy(update={"prompt_id": now})
        return replace(look, verdict=replace(look.verdict, asked=replace(asked, prompt=prompt)))

    def _id(self, words: str) -> str:
        times = self._times[words]
        return f"{words}-{times}" if times else words


UNDRAWN = "its screen is not drawn"

LEARNED = "; where that is its prompt, a line that you type there teaches it, or start it with --prompt 'TEXT'"


class Observations:
    """Observations of one program. `asked` is the state of `asking` that the last daemon has kept."""

    def __init__(self, profile: Profile, asked: Any) -> None:
        self._ways = LEARNED if profile.composer.usual else ""
        self._misread = MISREAD.format(profile.name)
        self.asking = Asking(asked)
        self.last: LinkObserved | None = None
        """The last observation, which was sent if it had any news."""
        self._alerted: Obstacle | None = None
        """The present obstacle, if a person was alerted to it."""
        self.touched: str | None = None
        """The prompt on the screen, if a person has pressed keys there: its selection is theirs."""

    def touch(self) -> None:
        """Notes that a person has pressed keys at the question."""
        if self.last is not None and self.last.prompt is not None:
            self.touched = self.last.prompt.prompt_id

    def tell(self, look: Look, found: Obstacle | None, *, in_turn: bool) -> list[SessionCommand]:
        """Returns the reports about `look`; `found` keeps a message from being typed, `in_turn` says that one was
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
            background=look.background,
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
            commands.append(Poll())  # a transcript does not announce its news about it
        commands.append(Emit(observed))
        alerted, self._alerted = self._alerted, found if found in (UNKNOWN_SCREEN, MISREAD_COMPOSER) else None
        if alerted is not self._alerted:
            commands += self._alert(alerted, observed, begins=False)
            commands += self._alert(self._alerted, observed, begins=True)
        return commands

    def unseen(self) -> LinkObserved:
        """Returns the known state while no process draws the screen: the last observation, and that nothing can be
        typed. The next look reports the screen itself."""
        known = self.last or LinkObserved(Activity.UNKNOWN, UNDRAWN, None, can_receive=False)
        self.last = replace(known, can_receive=False)
        return self.last

    def _alert(self, found: Obstacle | None, seen: LinkObserved, *, begins: bool) -> list[SessionCommand]:
        """Alerts a person to a screen that is not understood: at the beginning, and at the end."""
        if found is None:
            return []
        misread = found is MISREAD_COMPOSER
        code = "MISREAD_COMPOSER" if misread else "UNKNOWN_SCREEN"
        if not begins:
            return [Emit(LinkAlert(code, "its screen is understood again", "over"))]
        unknown = f"its screen is not understood ({seen.evidence}): attach answers it, or 'synapsectl keys'{self._ways}"
        return [Emit(LinkAlert(code, self._misread if misread else unknown, "begins"))]
