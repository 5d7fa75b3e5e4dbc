"""Evidence of a profile that looks for its program's composer in the wrong place: after a paste that seems to be empty,
and something has come to stand elsewhere. Pure.

A place that has shown what was typed is proven for the launch: then only the message's own words count. Before that any
new row with words may be the message, in whatever form the program shows it. It is not pasted again, nor is anything
behind it while it stands there (`readiness`).
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from synapsed.profiles.screen_spec import Composer
from synapsed.pty.message_evidence import masked
from synapsed.terminal.answer import anchor_of, shows
from synapsed.terminal.look import Look

WRAPPED_FROM = 12
"""A row with so many letters and digits is also found where the program has wrapped it in another way."""


class Misreading:
    """Evidence of one launch. `kept` is what the daemon before has kept of `left`."""

    def __init__(self, spec: Composer, kept: Any = None) -> None:
        self._is_searched = spec.line is not None and not spec.at_cursor
        self._before: Counter[str] | None = None
        """The rows of the screen into which was pasted last; None where that was an earlier daemon's."""
        self._proven = False
        self.left = [row for row in kept if isinstance(row, str)] if isinstance(kept, list) else []
        """The words of rows that came with a paste: of those that show how it begins; if no row shows that, of all that
        are known to be new."""

    def pasting(self, look: Look) -> None:
        """A message is about to be pasted into what `look` shows."""
        self._before = Counter(words for words, _ in _rows(look))

    def proven(self) -> None:
        """The composer has shown what was typed."""
        self._proven, self.left = True, []

    def found(self, look: Look, message: str) -> bool:
        """Returns True if `message`, which was pasted, may stand elsewhere than in the composer; what is known of it is
        `left` then."""
        if not self._is_searched or look.composer.state != "empty":
            return False
        before, first = Counter(self._before), anchor_of(message)
        new, shown = list[str](), list[str]()
        for words, line in _rows(look):
            before[words] -= 1
            if before[words] < 0:
                new.append(words)
                shown += [words] if shows(line, first) else []
        self.left = shown if self._proven or self._before is None else shown or new
        return bool(self.left or (new and not self._proven))

    def stands(self, look: Look) -> bool:
        """Returns True if any of what is `left` is on the screen."""
        rows = [words for words, _ in _rows(look)] if self.left else []
        text = "".join(rows)
        return any(row in rows or (len(row) >= WRAPPED_FROM and row in text) for row in self.left)


def _rows(look: Look) -> Iterator[tuple[str, str]]:
    """The words of each row that has any, numbers masked as they count, and the row."""
    for line in look.screen.lines:
        if words := masked("".join(filter(str.isalnum, line))):
            yield words, line
