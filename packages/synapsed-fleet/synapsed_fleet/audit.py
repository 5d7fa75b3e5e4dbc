"""Finds messages that the broker may have lost, so that they are published again. Pure.

The broker's ack closes no row; the receiver's receipt does. In between the audit looks, at each connection and every
30 s, whether the broker can still have it:

=============================================  =======================================================================
the stream was made at another time            somebody's disk was lost: it is another stream of the same name
the stream's end is before the row's place,    an older copy of the stream was put back: it may have anything less
or what is published gets places before it
the receipt is not there after 60 s, and the   it expired, or was acked and its receipt was lost; the receiver, asked
stream has nothing of that subject any more    by the copy, says its receipt again
the receipt is not there after 60 s, and one   the same, where the host is never without mail; or its agent's mailbox is
of that subject that was sent later is         full, so that each further copy waits twice as long, an hour at most
=============================================  =======================================================================

A copy too many does no harm: the receiver has its id as the key of a table.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from synapsed_fleet.fleet_rows import OutRow
from synapsed_fleet.ports import StreamFacts

EVERY_S: Final = 30.0
RECEIPT_S: Final = 60.0
"""So long a receipt may take while the broker has nothing more of that subject."""
RECEIPT_MAX_S: Final = 3600.0
ROUND_ATTEMPTS: Final = 1000
"""The attempts of a round of work are counted from so many: the broker takes none for a copy of an earlier round's."""

type RowKey = tuple[str, int]


def is_lost(row: OutRow, subject: str, facts: StreamFacts, waited: float, *, overtaken: bool = False) -> bool:
    """True if `row`, which is piped, is to be published again; `waited`: seconds since it is known to be piped;
    `overtaken`: a later row has its receipt."""
    if row.stream != facts.created or row.seq is None or row.seq > facts.last:
        return True
    if waited < RECEIPT_S:
        return False
    if row.seq < facts.first or facts.pending.get(subject, 0) == 0:
        return True
    return overtaken and waited >= min(RECEIPT_MAX_S, RECEIPT_S * 2 ** (row.attempt % ROUND_ATTEMPTS - 1))


@dataclass(frozen=True, slots=True)
class PipedRow:
    """A row that the broker has; `at` is `clock.monotonic()`."""

    subject: str
    seq: int
    at: float


class Ledger:
    """Since when the broker has what it has, and up to where receipts have come, by subject: of this daemon's life
    only, so that no clock is believed over a restart."""

    def __init__(self) -> None:
        self._piped: dict[RowKey, PipedRow] = {}
        self._receipted: dict[str, int] = {}
        self._highest: dict[str, int] = {}

    def went_back(self, stream: str, places: Sequence[int]) -> bool:
        """True if the broker has given a new message an earlier place in a stream than it had given before; the stream
        is named with the time when it was made. Then an older copy of it was restored, which others may have filled
        since beyond the lost places: all open rows may be lost."""
        if not places:
            return False
        before, self._highest[stream] = self._highest.get(stream, 0), max(places)
        return min(places) <= before

    def piped(self, row: OutRow, subject: str, now: float) -> None:
        self._piped[row.id, row.n] = PipedRow(subject, row.seq or 0, now)

    def look(self, open_: Iterable[RowKey]) -> None:
        """`open_` are all rows that are piped: what is not among them any more has its receipt."""
        still = frozenset(open_)
        for key in [key for key in self._piped if key not in still]:
            gone = self._piped.pop(key)
            self._receipted[gone.subject] = max(gone.seq, self._receipted.get(gone.subject, 0))

    def waited(self, row: OutRow, subject: str, now: float) -> float:
        """Seconds since it is known to be piped."""
        return now - self._piped.setdefault((row.id, row.n), PipedRow(subject, row.seq or 0, now)).at

    def overtaken(self, row: OutRow, subject: str) -> bool:
        return (row.seq or 0) < self._receipted.get(subject, 0)

    def again(self, row: OutRow) -> None:
        """It is published once more."""
        self._piped.pop((row.id, row.n), None)

    def forget_places(self) -> None:
        """It may be another stream: what is known of places in it counts no more."""
        self._receipted.clear()
