"""Reports changes of a program to its agent, look by look (a look is one reading of the screen), and keeps track of the
answers to the program's questions: if an answer is being typed, and if the same question is asked again. Pure.

A question is identified by its words. If the same words are asked again after an answer, that is another prompt, with
an id of its own: an answer to the earlier prompt does not answer it.
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
"""Number of questions, the latest ones, whose counts are kept."""


class Asking:
    """The questions of one program. `number` grows if a question is asked again after an answer (a password was wrong).
    The argument `kept` is the property `kept` as the last daemon has saved it."""

    def __init__(self, kept: Any = None) -> None:
        self.number = 0
        self.answering: set[str] = set()
        """Ids of prompts that are being answered: a second answer to one might reach another question."""
        self._given: dict[str, int] = {}
        """Ids of prompts that got an answer, with the end of the output before the answer."""
        self._at_once: set[str] = set()
        """Ids among them that are of line-oriented programs: all output after the answer is newer than the answer."""
        self._times: Counter[str] = Counter(
            {str(words): times for words, times in kept.items() if isinstance(times, int)}
            if isinstance(kept, Mapping)
            else ()
        )
        """Number of times that a question was asked again, by the id of its words."""
        self._here: str | None = None
        """Id of the question at the last call of `shown`."""

    @property
    def kept(self) -> dict[str, int]:
        """Returns the state for the next daemon: how often each question was asked again, by the id of its words."""
        return dict(list(self._times.items())[-WORDS_MAX:])

    def begin(self, prompt_id: str, offset: int | None) -> None:
        """Notes that the prompt is being answered. `offset` is the present end of the output; None for a dialog,
        because a dialog may be drawn again while it waits."""
        self.answering.add(prompt_id)
        if offset is not None:
            self._at_once.add(prompt_id)
            self.given(prompt_id, offset)

    def given(self, prompt_id: str, offset: int) -> None:
        """Notes that an answer to the prompt was submitted after the output up to `offset`, or may have been submitted
        by a person's keys."""
        self._given[prompt_id] = offset

    def end(self, *prompt_ids: str) -> None:
        self.answering.difference_update(prompt_ids)

    def shown(self, offset: int, prompt_id: str | None) -> bool:
        """Handles the prompt on the screen, which is drawn up to `offset`. Returns True if the question is asked again:
        from now on `named` gives it another id."""
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
        """Returns the look, with the id of its question that counts how often it was asked."""
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
    """Observations of one program. `asked` is `Asking.kept` as the last daemon has saved it."""

    def __init__(self, profile: Profile, asked: Any) -> None:
        self._ways = LEARNED if profile.composer.usual else ""
        self._misread = MISREAD.format(profile.name)
        self.asking = Asking(asked)
        self.last: LinkObserved | None = None
        """The last observation; it was sent if it differed from the one before."""
        self._alerted: Obstacle | None = None
        """The present obstacle, if an alert about it was sent."""
        self.touched: str | None = None
        """Id of the prompt on the screen at which a person has pressed keys, and may have moved the selection."""

    def touch(self) -> None:
        """Notes that a person has pressed keys while the question is on the screen."""
        if self.last is not None and self.last.prompt is not None:
            self.touched = self.last.prompt.prompt_id

    def tell(self, look: Look, found: Obstacle | None, *, in_turn: bool) -> list[SessionCommand]:
        """Returns the reports about `look`. `found` is the obstacle that keeps a message from being typed; `in_turn` is
        True while a turn runs."""
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
            return []  # only `can_receive` has become False: the agent asks again before it gives a message
        commands: list[SessionCommand] = []
        if in_turn and before is not None and observed.activity is not before.activity:
            commands.append(Poll())  # a transcript may have news, and does not announce them
        commands.append(Emit(observed))
        alerted, self._alerted = self._alerted, found if found in (UNKNOWN_SCREEN, MISREAD_COMPOSER) else None
        if alerted is not self._alerted:
            commands += self._alert(alerted, observed, begins=False)
            commands += self._alert(self._alerted, observed, begins=True)
        return commands

    def unseen(self) -> LinkObserved:
        """Returns the known state while no process draws the screen: the last observation, but with `can_receive`
        False. The next look reports the screen again."""
        known = self.last or LinkObserved(Activity.UNKNOWN, UNDRAWN, None, can_receive=False)
        self.last = replace(known, can_receive=False)
        return self.last

    def _alert(self, found: Obstacle | None, seen: LinkObserved, *, begins: bool) -> list[SessionCommand]:
        """Returns the alert about a screen that is not understood, for its beginning or its end."""
        if found is None:
            return []
        misread = found is MISREAD_COMPOSER
        code = "MISREAD_COMPOSER" if misread else "UNKNOWN_SCREEN"
        if not begins:
            return [Emit(LinkAlert(code, "its screen is understood again", "over"))]
        unknown = f"its screen is not understood ({seen.evidence}): attach answers it, or 'synapsectl keys'{self._ways}"
        return [Emit(LinkAlert(code, self._misread if misread else unknown, "begins"))]
