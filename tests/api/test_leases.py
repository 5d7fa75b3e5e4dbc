"""Keys under a lease, by clocks that the test moves: the daemon's side, and the two together over a line that dies."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsectl.leases import KEPT_S, SILENT_S, LeasedKeys
from synapsed.api.leases import GRANT_S, GRANTED_MAX, LEASE_S, PASTE_MAX, Leases, Piece

PASTE, END = b"\x1b[200~", b"\x1b[201~"


def granted(leases: Leases, now: float) -> int:
    number = leases.grant(now)["lease"]
    assert isinstance(number, int)
    return number


def test_what_comes_late_is_dropped_with_all_behind_it() -> None:
    leases = Leases()
    first = granted(leases, 100)
    assert leases.take(Piece(first, 1, b"a"), 100 + LEASE_S) == b"a"
    assert leases.take(Piece(first, 2, b"rm -rf "), 101 + LEASE_S) is None
    fresh = granted(leases, 200)
    assert leases.take(Piece(fresh, 3, b"\r"), 200) is None, "it stands behind what was dropped"
    assert leases.grant(200)["taken"] == 1
    leases.again(gone=False)
    assert leases.take(Piece(fresh, 4, b"rm -rf \r"), 200) == b"rm -rf \r"


@pytest.mark.parametrize("lease", [0, 99])
def test_a_lease_that_was_not_granted_is_none(lease: int) -> None:
    leases = Leases()
    granted(leases, 0)
    assert leases.take(Piece(lease, 1, b"y"), 0) is None


def test_of_many_leases_the_oldest_are_forgotten() -> None:
    leases = Leases()
    first = granted(leases, 0)
    for _ in range(GRANTED_MAX):
        granted(leases, 0)
    assert leases.take(Piece(first, 1, b"y"), 0) is None


def test_a_slow_line_is_not_a_dead_one() -> None:
    leases = Leases()
    for at in range(3):
        leases.heard(granted(leases, at), at + 2)
    assert leases.take(Piece(granted(leases, 10), 1, b"x"), 12.5) == b"x"
    assert leases.take(Piece(granted(leases, 20), 2, b"x"), 20 + LEASE_S + 4.5) is None


def test_a_machine_that_slept_takes_nothing_from_before() -> None:
    """The clock runs on meanwhile."""
    leases = Leases()
    assert leases.take(Piece(granted(leases, 0), 1, b"y\r"), 600) is None


def test_a_paste_is_typed_whole_or_not_at_all() -> None:
    leases = Leases()
    lease = granted(leases, 0)
    pasted = PASTE + b"x" * 48_000 + END
    assert leases.take(Piece(lease, 1, b"a" + pasted[:32_000]), 0) == b"a"
    assert leases.take(Piece(lease, 2, pasted[32_000:] + b"\r"), 0) == pasted + b"\r"
    assert leases.take(Piece(lease, 3, pasted[:20_000]), 0) == b""
    assert leases.take(Piece(lease, 4, pasted[20_000:]), 60) is None
    assert leases.unfinished == 20_000
    leases.again(gone=True)
    assert leases.take(Piece(granted(leases, 60), 5, b"next"), 60) == b"next"
    long = PASTE + b"x" * PASTE_MAX
    assert leases.take(Piece(granted(leases, 60), 6, long), 60) == long, "nothing waits without a bound"


class Line:
    """Both sides, and what is on its way between them. While it is dead it keeps what it is given."""

    def __init__(self) -> None:
        self.now = 0.0
        self.there = Leases()
        self.here = LeasedKeys(0.0)
        self.dead = False
        self.waits: list[tuple[str, object]] = []
        self.queue = b""
        self.typed_at = 0.0
        self.got = b""
        self.beat()

    def beat(self) -> None:
        self.carry("lease", self.there.grant(self.now))

    def carry(self, kind: str, what: object) -> None:
        self.waits.append((kind, what))
        if not self.dead:
            waits, self.waits = self.waits, []
            for one in waits:
                self.arrive(*one)

    def arrive(self, kind: str, what: object) -> None:
        if isinstance(what, dict) and kind == "lease":
            self.here.heard(what["lease"], what["taken"], self.now)
            self.carry("echo", what["lease"])
        elif isinstance(what, int):
            self.there.heard(what, self.now)
        elif isinstance(what, bytes):
            keys = self.there.take(Piece.read(what), self.now)
            if keys is None:
                self.carry("late", {"taken": self.there.taken})
            else:
                self.got += keys
        elif isinstance(what, dict):
            keys, typed = self.here.late(what["taken"])
            if typed is not None:
                self.queue, self.typed_at = keys + self.queue, typed
            self.carry("again", None)
        else:
            self.there.again(gone=False)

    def type(self, keys: bytes) -> None:
        self.typed_at = self.typed_at if self.queue else self.now
        self.queue += keys
        self.send()

    def send(self) -> None:
        if self.queue and self.here.may_send(self.now):
            queue, self.queue = self.queue, b""
            self.carry("keys", self.here.piece(queue, self.typed_at))

    def wait(self, seconds: float) -> None:
        """Time goes by, with what each side does now and then."""
        for _ in range(round(seconds / GRANT_S)):
            self.now += GRANT_S
            self.beat()
            self.send()

    def mend(self) -> None:
        self.dead = False
        self.beat()
        self.send()


@pytest.mark.parametrize("seconds", [2.0, 3.5, 15.0, 600.0])
def test_whoever_has_left_types_nothing_more(seconds: float) -> None:
    line = Line()
    line.type(b"a")
    line.wait(1)
    line.dead = True
    line.type(b"delete everything\r")
    line.wait(seconds)
    kept = [one for one in line.waits if one[0] != "echo"]
    line.waits, line.dead = [], False
    for kind, what in kept:
        if kind == "keys":
            assert isinstance(what, bytes)
            assert line.there.take(Piece.read(what), line.now) is None
    assert line.got == b"a"
    assert line.here.unsure == len(b"delete everything\r")


@settings(deadline=None)
@given(st.lists(st.tuples(st.binary(min_size=1, max_size=4), st.sampled_from([0.0, 0.5, 1.0, 4.0]), st.booleans())))
def test_whoever_stays_types_everything_once_and_in_order(acts: list[tuple[bytes, float, bool]]) -> None:
    line, typed = Line(), b""
    for keys, seconds, dies in acts:
        line.type(keys)
        typed += keys
        line.wait(seconds)
        if line.dead and not dies:
            line.mend()
        line.dead = dies
    line.mend()
    line.wait(2 * SILENT_S)
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
