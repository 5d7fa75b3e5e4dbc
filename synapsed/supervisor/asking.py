"""What becomes of an answer: whether it is still being typed, and whether the very same is asked again."""

__all__ = ["Asking"]


class Asking:
    """`number` is another one where a prompt that was answered is asked again (a password was wrong)."""

    def __init__(self) -> None:
        self.number = 0
        self.answering: set[str] = set()
        """Prompts that are being answered: a second answer to one might find another question."""
        self._answered_at: int | None = None
        """Offset at which a line-oriented program was given an answer, until it prints something."""

    def begin(self, prompt_id: str, offset: int | None) -> None:
        """The prompt is being answered. `offset` is where the output ends by now; None for a dialog, which may also be
        drawn anew while it waits."""
        self.answering.add(prompt_id)
        self._answered_at = offset

    def end(self, prompt_id: str) -> None:
        self.answering.discard(prompt_id)

    def shown(self, offset: int, *, asks: bool) -> None:
        """What is on the screen counts, up to `offset`, and whether it `asks`."""
        if self._answered_at is not None and offset > self._answered_at:
            self._answered_at = None
            self.number += asks
