"""The input journal: what was begun is known again, a torn tail is not."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsed.keeper.inputs import REMEMBERED, Journal


def filled(path: Path) -> Journal:
    journal = Journal(str(path), "launch")
    for number in range(3):
        entry = journal.begin(f"task.{number}.paste", 10 + number, at=100 * number)
        entry.written = 10 + number
        journal.finish(f"task.{number}.paste", entry, offset=100 * number + 1)
    journal.begin("task.3.submit", 1, at=400)
    journal.close()
    return journal


def test_reopened_it_knows_everything(tmp_path: Path) -> None:
    filled(tmp_path / "journal")
    journal = Journal(str(tmp_path / "journal"), "launch")
    entry = journal.get("task.1.paste")
    assert entry is not None
    assert (entry.length, entry.at, entry.written, entry.offset) == (11, 100, 11, 101)
    begun = journal.get("task.3.submit")
    assert begun is not None
    assert (begun.written, begun.offset) == (0, None)
    assert journal.get("task.4.paste") is None


def test_another_launch_starts_anew(tmp_path: Path) -> None:
    filled(tmp_path / "journal")
    journal = Journal(str(tmp_path / "journal"), "another")
    assert len(journal) == 0


@given(cut=st.integers(0, 400))
@settings(deadline=None)
def test_a_tail_torn_at_any_byte_costs_at_most_its_own_line(cut: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "journal"
        filled(path)
        raw = path.read_bytes()[:cut]
        path.write_bytes(raw)
        whole = raw.rpartition(b"\n")[0].split(b"\n")[1:]
        journal = Journal(str(path), "launch")
        begun = {line for line in whole if b"length" in line}
        assert len(journal) == len(begun)
        # Nothing of the torn line stays to swallow the next one.
        journal.begin("next", 5, at=1)
        journal.close()
        assert Journal(str(path), "launch").get("next") is not None


def test_lines_that_are_no_records_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    filled(path)
    path.write_bytes(path.read_bytes() + b'\x00\xff\n[]\n{"id":7}\n{"id":"x","written":1,"offset":2}\n')
    assert len(Journal(str(path), "launch")) == 4


def test_memory_and_file_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(str(path), "launch")
    for number in range(5 * REMEMBERED):
        entry = journal.begin(f"input-{number:08d}", 1, at=number)
        entry.written = 1
        journal.finish(f"input-{number:08d}", entry, offset=number)
    assert len(journal) == REMEMBERED
    assert journal.get(f"input-{5 * REMEMBERED - 1:08d}") is not None
    assert journal.get("input-00000000") is None
    assert path.stat().st_size < 1024 * 1024
    journal.close()
    assert len(Journal(str(path), "launch")) == REMEMBERED


def test_answers_to_queries_are_known_for_ever_and_displace_no_message(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(str(path), "launch")
    for number in range(5 * REMEMBERED):
        if number == 1:
            journal.begin("task.1.paste", 10, at=0)
        assert journal.get(f"query.{number}") is None
        entry = journal.begin(f"query.{number}", 6, at=number)
        entry.written = 6
        journal.finish(f"query.{number}", entry, offset=number)
    journal.close()
    for known in (journal, Journal(str(path), "launch")):
        assert known.get("task.1.paste") is not None
        assert len(known) == 1
        assert all(known.get(f"query.{number}") is not None for number in range(5 * REMEMBERED))
        assert known.get(f"query.{5 * REMEMBERED}") is None
        assert known.get("query.one") is None


def test_a_full_disk_refuses_the_input_and_harms_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    journal = Journal(str(path), "launch")
    entry = journal.begin("before", 3, at=0)
    real = os.write
    monkeypatch.setattr("synapsed.keeper.inputs.os.write", lambda fd, data: real(fd, data[:5]))
    with pytest.raises(OSError) as caught:
        journal.begin("during", 3, at=1)
    assert caught.value.errno == errno.ENOSPC
    assert journal.get("during") is None
    entry.written = 3
    journal.finish("before", entry, offset=3)  # cannot be stored now, and must not raise
    monkeypatch.undo()
    journal.begin("after", 3, at=4)
    journal.close()
    again = Journal(str(path), "launch")
    before = again.get("before")
    assert before is not None
    assert before.written == 3
    assert again.get("during") is None
    assert again.get("after") is not None
