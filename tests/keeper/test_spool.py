"""The spool: offsets only grow, what is kept is right, what is gone is said."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from synapsed.keeper.spool import Spool, SpoolReader

SEGMENT = 64
RETENTION = 256


def small(path: Path, at_least: int = 0) -> Spool:
    return Spool(str(path), at_least=at_least, retention=RETENTION, segment_size=SEGMENT)


def everything(spool: SpoolReader, offset: int = 0) -> tuple[int, bytes]:
    begin, data = spool.read(offset, 1 << 20)
    while data:
        start, more = spool.read(begin + len(data), 1 << 20)
        if not more:
            break
        assert start == begin + len(data)
        data += more
    return begin, data


class SpoolMachine(RuleBasedStateMachine):
    """A spool beside the bytes it was ever given."""

    @initialize(tmp=st.just(None))
    def begin(self, tmp: None) -> None:
        import tempfile

        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "spool"
        self.spool = small(self.path)
        self.model = bytearray()

    @rule(data=st.binary(min_size=1, max_size=200))
    def append(self, data: bytes) -> None:
        assert self.spool.append(data) == len(data)
        self.model += data

    @rule()
    def reopen(self) -> None:
        """As after the end of a keeper, however it ended: nothing but the directory is left."""
        self.spool.close()
        self.spool = small(self.path)

    @precondition(lambda self: len(self.model) > 0)
    @rule(cut=st.integers(1, 30))
    def crash_of_the_machine(self, cut: int) -> None:
        """The last segment lost its tail, but the daemon had seen it: offsets do not come again."""
        seen = self.spool.end
        self.spool.close()
        last = max(self.path.iterdir())
        size = last.stat().st_size
        os.truncate(last, max(0, size - cut))
        self.spool = small(self.path, at_least=seen)
        assert self.spool.end == seen

    @rule(offset=st.integers(0, 2000), limit=st.integers(1, 300))
    def read(self, offset: int, limit: int) -> None:
        start, data = self.spool.read(offset, limit)
        assert start >= offset
        assert len(data) <= limit
        if data:
            assert data == self.model[start : start + len(data)]
        else:
            assert offset >= self.spool.end or start >= self.spool.end

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "spool"):
            return
        assert self.spool.end == len(self.model)
        kept = sum(file.stat().st_size for file in self.path.iterdir())
        assert kept <= RETENTION + 2 * SEGMENT

    def teardown(self) -> None:
        if hasattr(self, "spool"):
            self.spool.close()
            self.directory.cleanup()


TestSpoolMachine = SpoolMachine.TestCase
TestSpoolMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_retention_keeps_at_least_what_it_says_and_tells_the_gap(tmp_path: Path) -> None:
    spool = small(tmp_path / "s")
    data = bytes(range(256)) * 8
    spool.append(data)
    assert len(data) - spool.start >= RETENTION
    start, kept = everything(spool, 0)
    assert start == spool.start > 0
    assert kept == data[start:]


def test_a_reader_follows_a_writer_over_segments(tmp_path: Path) -> None:
    spool = small(tmp_path / "s")
    reader = SpoolReader(str(tmp_path / "s"))
    spool.append(b"a" * 100)
    assert reader.read(0, 1000) == (0, b"")
    reader.refresh()
    assert everything(reader) == (0, b"a" * 100)


def test_a_directory_that_does_not_exist_reads_as_empty(tmp_path: Path) -> None:
    reader = SpoolReader(str(tmp_path / "none"))
    assert (reader.start, reader.end, reader.read(0, 10)) == (0, 0, (0, b""))


def test_a_lost_segment_is_a_gap_and_the_rest_stays(tmp_path: Path) -> None:
    spool = small(tmp_path / "s")
    spool.append(b"a" * SEGMENT + b"b" * SEGMENT + b"c" * 10)
    spool.close()
    (tmp_path / "s" / f"{SEGMENT:020d}.seg").unlink()
    reader = SpoolReader(str(tmp_path / "s"))
    assert reader.read(0, 1000) == (0, b"a" * SEGMENT)
    assert reader.read(SEGMENT, 1000) == (2 * SEGMENT, b"c" * 10)


def test_foreign_files_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    for name in ("notes.txt", "12.seg", "x" * 20 + ".seg", ".seg"):
        (tmp_path / "s" / name).write_bytes(b"no output")
    assert small(tmp_path / "s").end == 0


@given(st.lists(st.integers(0, 40), max_size=30), st.binary(min_size=1, max_size=400))
@settings(deadline=None)
def test_a_disk_that_refuses_loses_nothing(budget: list[int], data: bytes) -> None:
    """Every write takes a few bytes or raises ENOSPC; the caller retries with the rest."""
    import tempfile

    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        spool = small(Path(directory) / "s")
        real = os.write

        def write(fd: int, chunk: bytes) -> int:
            if not budget:
                return real(fd, chunk)
            room = budget.pop()
            if room == 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(fd, chunk[:room])

        patch.setattr("synapsed.keeper.spool.os.write", write)
        rest = data
        while rest:
            done = spool.append(rest)
            assert (done < len(rest)) == (spool.fault is not None)
            rest = rest[done:]
        start, kept = everything(spool)
        assert kept == data[start:]
        spool.close()
