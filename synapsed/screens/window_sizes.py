"""The sizes that a window has had, each with the offset of the output from which on it is valid: output that is drawn
again is drawn in the size that the window had at that time. Pure."""

from collections import deque
from collections.abc import Iterator

SIZES_MAX = 64
"""Number of the last sizes that are remembered."""

type Size = tuple[int, int]
"""Columns, rows."""


class WindowSizes:
    """The sizes of one window. `now` is its present size."""

    def __init__(self, size: Size) -> None:
        """`size` is the first size, unless `resize` reports another one."""
        self.now = size
        self._first = size
        self._known: deque[tuple[int, Size]] = deque(maxlen=SIZES_MAX)
        """The last sizes, each with the offset from which on it is valid."""
        self._due: deque[tuple[int, Size]] = deque()
        """The sizes among them that the drawing has not got yet (`due`)."""
        self._drawn = size
        """The size that the drawing got last."""

    def resize(self, size: Size, at: int, sent: int) -> None:
        """Notes that the window has `size` from the offset `at` on, when output up to `sent` is already being drawn."""
        self.now = size
        if not self._known or self._known[-1][1] != size:
            self._known.append((at, size))
        if at >= sent and size != (self._due[-1][1] if self._due else self._drawn):
            self._due.append((at, size))

    def last_at(self, offset: int) -> int:
        """Returns the offset for a size that is reported when output up to `offset` has come: `offset`, but not less
        than the offset of the last known size."""
        return max(offset, self._known[-1][0]) if self._known else offset

    def begin(self, offset: int, size: Size | None) -> Size:
        """Begins to draw at `offset`: with a kept screen of that `size`, from before or after a change of size at the
        same offset; or with an empty screen (None). Returns the screen's size."""
        before = [size for at, size in self._known if at <= offset]
        self._drawn = size or (before[-1] if before else self._first)
        self._due = deque(one for one in self._known if one[0] > offset or (size is not None and one[0] == offset))
        if not self._due and self._drawn != self.now:
            self._due.append((offset, self.now))  # an older keeper does not report the sizes' offsets
        return self._drawn

    def forget_due(self) -> None:
        """Drops the due sizes, because the caller is about to report the window's sizes."""
        self._due.clear()

    def due(self, sent: int) -> Iterator[Size]:
        """Yields each size once that the drawing must get before the output after `sent`."""
        while self._due and self._due[0][0] <= sent:
            _, self._drawn = self._due.popleft()
            yield self._drawn

    def until(self, offset: int, end: int) -> int:
        """Returns the end of the output from `offset` drawn in one size, at most `end`. Call `due(offset)` first."""
        return min(self._due[0][0], end) if self._due else end
