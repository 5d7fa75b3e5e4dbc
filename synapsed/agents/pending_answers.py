"""Answers that are being given to one agent, and the prompts that they have answered. Pure."""

from dataclasses import dataclass

from synapsed.model.events import Origin
from synapsed.model.link import LinkObserved
from synapsed.model.task import Message, Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An answer that the program took. `hidden`: its terminal did not show the typed text."""

    prompt_id: str
    prompt: Prompt | None
    answer: Message
    hidden: bool
    origin: Origin

    @property
    def secret(self) -> bool:
        """Returns whether the answer is secret: hidden input is as secret as the answer to a password prompt."""
        return self.hidden or (self.prompt is not None and self.prompt.type == "password")


class GivenAnswers:
    """Tracks the answers to one agent's prompts. Until the program took an answer, observations do not count for the
    task that waits for it. A prompt that was answered may stay on the screen for a moment; that is no new question."""

    def __init__(self) -> None:
        self._under_way = 0
        self._put_off: tuple[LinkObserved, bool] | None = None
        """The last observation while an answer was under way, and whether it asks again."""
        self._settled: str | None = None
        """The prompt that was answered last, until another one is asked."""

    @property
    def under_way(self) -> bool:
        """Returns whether an answer is under way: the end of its prompt is then reported with the answer."""
        return self._under_way > 0

    def begin(self) -> None:
        """Notes that an answer is about to be typed."""
        self._under_way += 1

    def end(self) -> tuple[LinkObserved, bool] | None:
        """Notes that the answer was taken or not; returns the observation to look at again, and if it asks again."""
        self._under_way -= 1
        if self._under_way:
            return None
        seen, self._put_off = self._put_off, None
        return seen

    def took(self, prompt_id: str) -> None:
        """Notes that the program took the answer to that prompt."""
        self._settled = prompt_id

    def counts(self, seen: LinkObserved, *, again: bool, waits: bool) -> bool:
        """Returns whether the observation `seen` counts now for a task. `again`: its prompt is asked once more;
        `waits`: the task waits for a person."""
        if seen.prompt is not None and seen.prompt.prompt_id == self._settled and not again:
            return False
        self._settled = None
        if self._under_way and waits:
            self._put_off = (seen, again or (self._put_off is not None and self._put_off[1]))
            return False
        return True
