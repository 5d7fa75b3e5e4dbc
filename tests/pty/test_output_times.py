"""When output came."""

import os
from pathlib import Path

import pytest

from synapsed.pty import output_times
from synapsed.pty.output_times import OutputTimes


def test_marks_are_kept_and_only_grow(tmp_path: Path) -> None:
    path = tmp_path / "times"
    first = OutputTimes(path)
    for offset, at in ((0, 10.0), (5, 10.05), (9, 10.2), (9, 11.0), (7, 12.0)):
        first.note(offset, at)
    assert first.read() == [(0, 10.0), (9, 10.2)]
    second = OutputTimes(path)  # the next daemon reads some of it again
    second.note(9, 20.0)
    second.note(12, 20.0)
    assert second.read() == [(0, 10.0), (9, 10.2), (12, 20.0)]
    assert path.stat().st_mode & 0o077 == 0


def test_the_older_half_makes_room(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(output_times, "MARKS_MAX", 8)
    marks = OutputTimes(tmp_path / "times")
    for number in range(11):
        marks.note(number, float(number))
    assert marks.read() == [(number, float(number)) for number in range(4, 11)]


def test_a_torn_mark_and_no_place_for_any(tmp_path: Path) -> None:
    path = tmp_path / "times"
    OutputTimes(path).note(3, 1.0)
    with path.open("ab") as file:
        file.write(b"torn")
    assert OutputTimes(path).read() == [(3, 1.0)]
    OutputTimes(tmp_path / "none" / "times").note(1, 1.0)


def test_marks_after_a_torn_one_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that becomes full takes a part of a mark, and a killed daemon may leave one."""
    monkeypatch.setattr(output_times, "MARKS_MAX", 4)
    path = tmp_path / "times"
    write = os.write
    marks = OutputTimes(path)
    marks.note(0, 0.0)
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda fd, data: write(fd, data[:8]))
        marks.note(1, 1.0)
    marks.note(2, 2.0)
    assert marks.read() == [(0, 0.0), (2, 2.0)]
    for number in (3, 4):
        with path.open("ab") as file:
            file.write(b"torn")
        marks = OutputTimes(path)  # the next daemon
        marks.note(number, float(number))
    assert marks.read() == [(0, 0.0), (2, 2.0), (3, 3.0), (4, 4.0)]
    with path.open("ab") as file:
        file.write(b"torn")
    marks.note(5, 5.0)
    assert marks.read() == [(3, 3.0), (4, 4.0), (5, 5.0)], "the older half is dropped"
