"""What becomes of an answer: whether it is still being typed, and whether the very same is asked again.

What is asked is known by what it says. Where the same is asked once more after it was given an answer, that is another
prompt, with an id of its own: an answer to the one before does not answer it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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
