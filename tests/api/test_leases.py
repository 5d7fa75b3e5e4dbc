"""Keys under a lease, by clocks that the test moves: the daemon's side, and the two together over a line that dies."""

from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsectl.leases import KEPT_S, SILENT_S, LeasedKeys
from synapsed.api.leases import GRANT_S, GRANTED_MAX, LEASE_S, PASTE_MAX, KeyPiece, Leases

PASTE, END = b"\x1b[200~", b"\x1b[201~"


def granted(leases: Leases, now: float) -> int:
    number = leases.grant(now)["lease"]
    assert isinstance(number, int)
    return number


def test_what_comes_late_is_dropped_with_all_behind_it() -> None:
    leases = Leases()
    first = granted(leases, 100)
    assert leases.take(KeyPiece(first, 1, b"a"), 100 + LEASE_S) == b"a"
    assert leases.take(KeyPiece(first, 2, b"rm -rf "), 101 + LEASE_S) is None
    fresh = granted(leases, 200)
    assert leases.take(KeyPiece(fresh, 3, b"\r"), 200) is None, "it stands behind what was dropped"
    assert leases.grant(200)["taken"] == 1
    leases.again(1, gone=False)
    assert leases.take(KeyPiece(fresh, 4, b"rm -rf \r"), 200) == b"rm -rf \r"


@pytest.mark.parametrize("lease", [0, 99])
def test_a_lease_that_was_not_granted_is_none(lease: int) -> None:
    leases = Leases()
    granted(leases, 0)
    assert leases.take(KeyPiece(lease, 1, b"y"), 0) is None


def test_of_many_leases_the_oldest_are_forgotten() -> None:
    leases = Leases()
    first = granted(leases, 0)
    for _ in range(GRANTED_MAX):
        granted(leases, 0)
    assert leases.take(KeyPiece(first, 1, b"y"), 0) is None


def test_a_slow_line_is_not_a_dead_one() -> None:
    leases = Leases()
    for at in range(3):
        leases.heard(granted(leases, at), at + 2)
    assert leases.take(KeyPiece(granted(leases, 10), 1, b"x"), 12.5) == b"x"
    assert leases.take(KeyPiece(granted(leases, 20), 2, b"x"), 20 + LEASE_S + 4.5) is None


def test_a_machine_that_slept_takes_nothing_from_before() -> None:
    """The clock runs on meanwhile."""
    leases = Leases()
    assert leases.take(KeyPiece(granted(leases, 0), 1, b"y\r"), 600) is None


def test_a_paste_is_typed_whole_or_not_at_all() -> None:
    leases = Leases()
    lease = granted(leases, 0)
    pasted = PASTE + b"x" * 48_000 + END
    assert leases.take(KeyPiece(lease, 1, b"a" + pasted[:32_000]), 0) == b"a"
    assert leases.take(KeyPiece(lease, 2, pasted[32_000:] + b"\r"), 0) == pasted + b"\r"
    assert leases.take(KeyPiece(lease, 3, pasted[:20_000]), 0) == b""
    assert leases.take(KeyPiece(lease, 4, pasted[20_000:]), 60) is None
    assert leases.unfinished == 20_000
    leases.again(1, gone=True)
    assert leases.take(KeyPiece(granted(leases, 60), 5, b"next"), 60) == b"next"
    long = PASTE + b"x" * PASTE_MAX
    assert leases.take(KeyPiece(granted(leases, 60), 6, long), 60) == long, "nothing waits without a bound"


class Line:
    """Both sides, and what is on its way between them, which arrives as the test says."""

    def __init__(self) -> None:
        self.now = 0.0
        self.there = Leases()
        self.here = LeasedKeys(0.0)
        self.up: deque[Any] = deque()
        self.down: deque[Any] = deque()
        self.queue = b""
        self.typed_at = 0.0
        self.got = b""
        self.beat()
        self.settle()

    def beat(self) -> None:
        self.down.append(self.there.grant(self.now))

    def arrive_up(self) -> None:
        match self.up.popleft():
            case bytes(piece):
                self.got += self.there.take(KeyPiece.read(piece), self.now) or b""
                if (late := self.there.late()) is not None:
                    self.down.append(late)
            case {"type": "again", "late": int(number), "gone": bool(gone)}:
                self.there.again(number, gone=gone)
            case int(lease):
                self.there.heard(lease, self.now)

    def arrive_down(self) -> None:
        match self.down.popleft():
            case {"type": "lease", "lease": int(lease), "taken": int(taken)}:
                self.here.heard(lease, taken, self.now)
                self.up.append(lease)
            case {"type": "late", "late": int(number), "taken": int(taken)}:
                keys, typed = self.here.late(number, taken)
                if typed is not None:
                    self.queue, self.typed_at = keys + self.queue, typed
                self.up.append(self.here.again(gone=not keys))
        self.send()

    def type(self, keys: bytes) -> None:
        self.typed_at = self.typed_at if self.queue else self.now
        self.queue += keys
        self.send()

    def send(self) -> None:
        if self.queue and self.here.may_send(self.now):
            queue, self.queue = self.queue, b""
            self.up.append(self.here.piece(queue, self.typed_at))

    def settle(self) -> None:
        """All that is on its way arrives."""
        while self.up or self.down:
            if self.up:
                self.arrive_up()
            if self.down:
                self.arrive_down()


@pytest.mark.parametrize("seconds", [2.0, 3.5, 15.0, 600.0])
@pytest.mark.parametrize("pieces", [1, 3])
def test_whoever_has_left_types_nothing_more(seconds: float, pieces: int) -> None:
    """What is on its way is brought when the line is back, and nobody answers any more."""
    line = Line()
    line.type(b"a")
    line.settle()
    line.beat()
    line.settle()
    for _ in range(pieces):
        line.type(b"delete everything\r")
    line.now += seconds
    while line.up:
        line.arrive_up()
    assert line.got == b"a"
    assert line.here.unsure == pieces * len(b"delete everything\r")


ACT = st.binary(min_size=1, max_size=4) | st.sampled_from(["up", "down", "beat", 0.3, 2.0, 5.0])


@settings(deadline=None)
@given(st.lists(ACT, max_size=60))
def test_whoever_stays_types_everything_once_and_in_order(acts: list[bytes | str | float]) -> None:
    line, typed = Line(), b""
    for act in acts:
        match act:
            case bytes(keys):
                line.type(keys)
                typed += keys
            case "up" if line.up:
                line.arrive_up()
            case "down" if line.down:
                line.arrive_down()
            case "beat":
                line.beat()
            case float(seconds):
                line.now += seconds
        assert typed.startswith(line.got), "nothing twice, nothing left out"
    for _ in range(40):
        line.now += GRANT_S
        line.beat()
        line.settle()
    assert line.got == typed
    assert line.here.unsure == 0


def test_a_silent_line_is_noticed() -> None:
    keys = LeasedKeys(0)
    assert not keys.may_send(0), "there is no lease yet"
    keys.heard(1, 0, 1)
    assert keys.may_send(1)
    assert keys.silent(1 + SILENT_S) is None
    assert keys.silent(1.1 + SILENT_S)
    keys.piece(b"abc", 1)
    assert (keys.oldest, keys.unsure, keys.forget(), keys.unsure, keys.oldest) == (1, 3, 3, 0, None)
    assert SILENT_S < KEPT_S < 30
