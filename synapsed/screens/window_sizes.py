"""The sizes that a window has had, each with the end of the output before it: output is drawn again in the size that
the window had at that time. Pure."""

from collections import deque
from collections.abc import Iterator

SIZES_MAX = 64
"""Sizes that are known, the last ones."""

type Size = tuple[int, int]
"""Columns, rows."""


class WindowSizes:
    """`now` is the size that the window has."""

    def __init__(self, size: Size) -> None:
        """`size` is the first one, unless another one is reported."""
        self.now = size
        self._first = size
        self._known: deque[tuple[int, Size]] = deque(maxlen=SIZES_MAX)
        """Each with the offset at which the output before it ends."""
        self._due: deque[tuple[int, Size]] = deque()
        self._drawn = size
        """Size of the last drawing that was begun, as far as it was reported."""

    def resize(self, size: Size, at: int, sent: int) -> None:
        """The window has `size` from output `at` on, and output up to `sent` was given to be drawn."""
        self.now = size
        if not self._known or self._known[-1][1] != size:
            self._known.append((at, size))
        if at >= sent and size != (self._due[-1][1] if self._due else self._drawn):
            self._due.append((at, size))

    def last_at(self, offset: int) -> int:
        """Returns the beginning of a size that is reported when output up to `offset` has come: never before another
        one."""
        return max(offset, self._known[-1][0]) if self._known else offset

    def begin(self, offset: int, size: Size | None) -> Size:
        """Begins drawing at `offset`, with a screen of that `size`, which may have been made before or after a change
        of size there; or with an empty one. Returns its size."""
        before = [size for at, size in self._known if at <= offset]
        self._drawn = size or (before[-1] if before else self._first)
        self._due = deque(one for one in self._known if one[0] > offset or (size is not None and one[0] == offset))
        if not self._due and self._drawn != self.now:
            self._due.append((offset, self.now))  # an older keeper does not report the time
        return self._drawn

    def forget_due(self) -> None:
        """Drops the due sizes: the window's sizes are still to be reported."""
        self._due.clear()

    def due(self, sent: int) -> Iterator[Size]:
        """Yields the sizes that come before the output after `sent`, once."""
        while self._due and self._due[0][0] <= sent:
            _, self._drawn = self._due.popleft()
            yield self._drawn

    def until(self, offset: int, end: int) -> int:
        """Returns the end of the output from `offset` to `end` that has one size; `due` of `offset` was read before."""
        return min(self._due[0][0], end) if self._due else end
