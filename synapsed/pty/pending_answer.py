"""What becomes of an answer: whether it is still being typed, and whether the very same is asked again."""


class Asking:
    """`number` is another one where a prompt that was answered is asked again (a password was wrong)."""

    def __init__(self) -> None:
        self.number = 0
        self.answering: set[str] = set()
        """Prompts that are being answered: a second answer to one might find another question."""
        self._answered_at: int | None = None
        """Offset at which a line-oriented program was given an answer, until it prints something."""
        self._taken: str | None = None
        """The dialog that took an answer last, until something else is shown: if it is shown, it is asked again."""

    def begin(self, prompt_id: str, offset: int | None) -> None:
        """The prompt is being answered. `offset` is where the output ends by now; None for a dialog, which may also be
        drawn again while it waits."""
        self.answering.add(prompt_id)
        self._answered_at = offset

    def end(self, prompt_id: str) -> None:
        self.answering.discard(prompt_id)

    def taken(self, prompt_id: str) -> None:
        """That dialog took the answer and left the screen."""
        self._taken = prompt_id

    def shown(self, offset: int, prompt_id: str | None) -> bool:
        """What is on the screen counts, up to `offset`, and what it asks. Returns True if it is asked again."""
        number = self.number
        if self._answered_at is not None and offset > self._answered_at:
            self._answered_at = None
            self.number += prompt_id is not None
        elif prompt_id is not None and prompt_id == self._taken:
            self.number += 1
        self._taken = None
        return self.number != number
