"""A database's numbers."""

from collections import Counter

from synapsed.model.figures import FAST_S, Histogram


class Disk:
    """The numbers of a store that the test makes up."""

    def __init__(self) -> None:
        self.commits, self.reads = Histogram(FAST_S), Histogram(FAST_S)
        self.refusals: Counter[str] = Counter()

    def size(self) -> int:
        return 4096
