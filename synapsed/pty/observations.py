"""Tells an agent of its program, look by look, what has changed since it was told last, and what becomes of the answers
to what that asks: whether one is still being typed, and whether the very same is asked again. Pure.

What is asked is known by what it says. Where the same is asked once more after it was given an answer, that is another
prompt, with an id of its own: an answer to the one before does not answer it.
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
"""Prompts whose counts are kept; the ones that came last."""


class Asking:
    """`number` is another one where a prompt that was given an answer is asked again (a password was wrong).

    `kept` is what the daemon before has `kept`.
    """

    def __init__(self, kept: Any = None) -> None:
        self.number = 0
        self.answering: set[str] = set()
        """Prompts that are being answered: a second answer to one might find another question."""
        self._given: dict[str, int] = {}
        """Prompts that were given an answer, with the offset at which the output ended before that."""
        self._at_once: set[str] = set()
        """Those of line-oriented programs: whatever is printed after the answer is said after it."""
        self._times: Counter[str] = Counter(
            {str(words): times for words, times in kept.items() if isinstance(times, int)}
            if isinstance(kept, Mapping)
            else ()
        )
        """How often what says the same was asked again, by the id of its words."""
        self._here: str | None = None
        """What was asked when the screen counted last."""

    @property
    def kept(self) -> dict[str, int]:
        """Returns what the next daemon must know: by its words, how often something was asked again."""
        return dict(list(self._times.items())[-WORDS_MAX:])

    def begin(self, prompt_id: str, offset: int | None) -> None:
        """The prompt is being answered. `offset` is where the output ends by now; None for a dialog, which may also be
        drawn again while it waits."""
        self.answering.add(prompt_id)
        if offset is not None:
            self._at_once.add(prompt_id)
            self.given(prompt_id, offset)

    def given(self, prompt_id: str, offset: int) -> None:
        """An answer was submitted to it, after the output up to `offset`; or may have been, by a person's keys."""
        self._given[prompt_id] = offset

    def end(self, *prompt_ids: str) -> None:
        self.answering.difference_update(prompt_ids)

    def shown(self, offset: int, prompt_id: str | None) -> bool:
        """What is on the screen counts, up to `offset`, and what it asks. Returns True if it is asked again: `named`
        knows it by another id from now on."""
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
        """The look, with what it asks under the id of this time."""
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
    """Tells of one program. `asked` is what the daemon before has kept of what was `asking`."""

    def __init__(self, profile: Profile, asked: Any) -> None:
        self._ways = LEARNED if profile.composer.usual else ""
        self._misread = MISREAD.format(profile.name)
        self.asking = Asking(asked)
        self.last: LinkObserved | None = None
        """The last observation, which was told if it told anything."""
        self._alerted: Obstacle | None = None
        """A person was told of it, and it stands."""
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
            commands.append(Poll())  # what a transcript says of it is not poked for
        commands.append(Emit(observed))
        alerted, self._alerted = self._alerted, found if found in (UNKNOWN_SCREEN, MISREAD_COMPOSER) else None
        if alerted is not self._alerted:
            commands += self._alert(alerted, observed, begins=False)
            commands += self._alert(self._alerted, observed, begins=True)
        return commands

    def unseen(self) -> LinkObserved:
        """Returns what is known while nobody draws the screen: the last that was observed, and that nothing can be
        typed. The next look tells what it sees."""
        known = self.last or LinkObserved(Activity.UNKNOWN, UNDRAWN, None, can_receive=False)
        self.last = replace(known, can_receive=False)
        return self.last

    def _alert(self, found: Obstacle | None, seen: LinkObserved, *, begins: bool) -> list[SessionCommand]:
        """Tells a person of a screen that is not understood: when that begins, and when it is over."""
        if found is None:
            return []
        misread = found is MISREAD_COMPOSER
        code = "MISREAD_COMPOSER" if misread else "UNKNOWN_SCREEN"
        if not begins:
            return [Emit(LinkAlert(code, "its screen is understood again", "over"))]
        unknown = f"its screen is not understood ({seen.evidence}): attach answers it, or 'synapsectl keys'{self._ways}"
        return [Emit(LinkAlert(code, self._misread if misread else unknown, "begins"))]
