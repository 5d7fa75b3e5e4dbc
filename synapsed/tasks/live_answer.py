"""Keeps the pieces of a task's answer that were sent before the answer was complete, so that at its end only the rest
is sent.

A client that joins the pieces of the artifact has the answer: a piece is only sent if it continues the pieces before. A
piece that replaces them (`append` false) is sent at the beginning of another message, and at the end if the answer is
a different text.
"""

from dataclasses import dataclass, field

from synapsed.model.link import LinkTurnSaid


@dataclass(slots=True)
class Told:
    """The pieces of one turn (the program's work on the message). `text` is all of them together; for a turn that an
    earlier daemon or attempt began it is read from the log (`store.lookup.told_before`), with `again`: then the first
    piece may repeat a part of it."""

    text: str = ""
    again: bool = False
    _said: str = field(default="", init=False)
    """Text from the link, which may be shorter than the sent text, or differ from it."""

    def piece(self, said: LinkTurnSaid) -> tuple[str, bool] | None:
        """Returns the piece to send now, and True if it is appended; None if there is no new text."""
        another = not said.append and not self.again
        self.again = False
        self._said = self._said + said.text if said.append else said.text
        return self.toward(self._said, another=another)

    def toward(self, text: str, *, another: bool = False) -> tuple[str, bool] | None:
        """Returns the same as `piece`, if `text` is all that is known of the answer. `another`: `text` belongs to
        another message, and may replace the text of the one before."""
        before = self.text
        if not text.startswith(before):
            if another:
                self.text = text
            return (text, False) if another else None
        if len(text) == len(before):
            return None
        self.text = text
        return text[len(before) :], True
