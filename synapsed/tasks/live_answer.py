"""What was told of a task's answer before the answer was known, so that its end is told as the rest of it.

Whoever joins the pieces of the artifact has the answer: a piece is only told that goes on from those before. One that
replaces them (`append` false) is told where another message began, and at the end where the answer is really another.
"""

from dataclasses import dataclass, field

from synapsed.model.link import LinkTurnSaid


@dataclass(slots=True)
class Told:
    """Of one turn. `text` is what the pieces are together; of a turn that an earlier daemon or attempt began it is
    read from the log (`store.lookup.told_before`), with `again`: then the first piece repeats some of it, or nobody
    knows."""

    text: str = ""
    again: bool = False
    _said: str = field(default="", init=False)
    """What the link has said, which may be behind what was told, or beside it."""

    def piece(self, said: LinkTurnSaid) -> tuple[str, bool] | None:
        """The piece to tell now, and whether it is appended; None for none."""
        another = not said.append and not self.again
        self.again = False
        self._said = self._said + said.text if said.append else said.text
        return self.toward(self._said, another=another)

    def toward(self, text: str, *, another: bool = False) -> tuple[str, bool] | None:
        """As `piece`, where `text` is all that is known of the answer; of `another` message, it replaces what was told
        of the one before."""
        before = self.text
        if not text.startswith(before):
            if another:
                self.text = text
            return (text, False) if another else None
        if len(text) == len(before):
            return None
        self.text = text
        return text[len(before) :], True
