"""What the broker may have lost of what it once had: it is published again. Pure.

The broker's ack closes no row; the receiver's receipt does. In between the audit looks, at each connection and every
30 s, whether the broker can still have it:

=============================================  =======================================================================
the stream was made at another time            somebody's disk was lost: it is another stream of the same name
the stream's end is before the row's place     an older copy of the stream was put back
the receipt is not there after 60 s, and the   it expired, or was acked and its receipt was lost; the receiver, asked
stream has nothing of that subject any more    by the copy, says its receipt again
=============================================  =======================================================================

A copy too many does no harm: the receiver has its id as the key of a table.
"""

from typing import Final

from synapsed.fleet.ports import StreamFacts
from synapsed.model.fleet import OutRow

EVERY_S: Final = 30.0
RECEIPT_S: Final = 60.0
"""So long a receipt may take while the broker has nothing more of that subject."""


def is_lost(row: OutRow, subject: str, facts: StreamFacts, waited: float) -> bool:
    """Whether `row`, which is piped, is to be published again; `waited`: seconds since it is known to be piped."""
    if row.stream != facts.created or row.seq is None or row.seq > facts.last:
        return True
    if waited < RECEIPT_S:
        return False
    return row.seq < facts.first or facts.pending.get(subject, 0) == 0
