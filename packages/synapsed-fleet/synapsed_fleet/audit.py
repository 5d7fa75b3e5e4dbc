"""Finds messages that the broker may have lost, so that they are published again. Pure.

A row of the outbox stays open after the broker's ack, until the receiver's receipt comes. In between, at each
connection and every 30 s, the audit checks whether the broker can still have the message:

=============================================  =======================================================================
the stream was made at another time            a broker's disk was lost: this is another stream, same name
the stream's end is before the row's place,    an older copy of the stream was put back: anything may be missing in it
or what is published gets places before it
the receipt is not there after 60 s, and the   it expired, or was acked and its receipt was lost; the receiver, asked
stream has nothing of that subject any more    by the copy, says its receipt again
the receipt is not there after 60 s, and one   the same, if the host always has mail; or its agent's mailbox is
of that subject that was sent later is         full, so that each further copy waits twice as long, an hour at most
=============================================  =======================================================================

A superfluous copy does no harm: the receiver has its id as the key of a table.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from synapsed_fleet.fleet_rows import OutRow
from synapsed_fleet.ports import StreamFacts

EVERY_S: Final = 30.0
RECEIPT_S: Final = 60.0
"""Seconds for which a receipt may be missing while the broker has no message of that subject any more."""
RECEIPT_MAX_S: Final = 3600.0
ROUND_ATTEMPTS: Final = 1000
"""Step by which the attempts of each round of work are numbered, so that the broker takes no message for a copy of one
of an earlier round."""

type RowKey = tuple[str, int]


def is_lost(row: OutRow, subject: str, facts: StreamFacts, waited: float, *, overtaken: bool = False) -> bool:
    """Returns True if `row`, which the broker has acked, is to be published again. `waited`: seconds since that ack is
    known; `overtaken`: a later row has its receipt."""
    if row.stream != facts.created or row.seq is None or row.seq > facts.last:
        return True
    if waited < RECEIPT_S:
        return False
    if row.seq < facts.first or facts.pending.get(subject, 0) == 0:
        return True
    return overtaken and waited >= min(RECEIPT_MAX_S, RECEIPT_S * 2 ** (row.attempt % ROUND_ATTEMPTS - 1))


@dataclass(frozen=True, slots=True)
class PipedRow:
    """A row that the broker has acked; `at` is `clock.monotonic()`."""

    subject: str
    seq: int
    at: float


class Ledger:
    """Keeps, by subject, since when the broker has each row, and up to which place receipts have come. It is not saved:
    a clock is not believed over a restart."""

    def __init__(self) -> None:
        self._piped: dict[RowKey, PipedRow] = {}
        self._receipted: dict[str, int] = {}
        self._highest: dict[str, int] = {}

    def went_back(self, stream: str, places: Sequence[int]) -> bool:
        """Returns True if the broker has given a new message an earlier place in a stream than one before.

        `stream` is named with the time when it was made. An older copy of the stream was restored then, and others may
        have filled it since, beyond the lost places: all open rows may be lost.
        """
        if not places:
            return False
        before, self._highest[stream] = self._highest.get(stream, 0), max(places)
        return min(places) <= before

    def piped(self, row: OutRow, subject: str, now: float) -> None:
        self._piped[row.id, row.n] = PipedRow(subject, row.seq or 0, now)

    def look(self, open_: Iterable[RowKey]) -> None:
        """Notes which rows are still open: a row that is not in `open_` any more has its receipt."""
        still = frozenset(open_)
        for key in [key for key in self._piped if key not in still]:
            gone = self._piped.pop(key)
            self._receipted[gone.subject] = max(gone.seq, self._receipted.get(gone.subject, 0))

    def waited(self, row: OutRow, subject: str, now: float) -> float:
        """Returns the seconds since the row is known to be acked by the broker."""
        return now - self._piped.setdefault((row.id, row.n), PipedRow(subject, row.seq or 0, now)).at

    def overtaken(self, row: OutRow, subject: str) -> bool:
        return (row.seq or 0) < self._receipted.get(subject, 0)

    def again(self, row: OutRow) -> None:
        """Notes that the row is published once more."""
        self._piped.pop((row.id, row.n), None)

    def forget_places(self) -> None:
        """Forgets the known places: the stream may be another one."""
        self._receipted.clear()
