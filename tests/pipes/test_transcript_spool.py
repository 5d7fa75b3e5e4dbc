"""The transcript of a program on pipes, on a disk that is full."""

import errno
import os
from pathlib import Path

import pytest

from synapsed.keeper.spool import SpoolReader
from synapsed.pipes import transcript
from synapsed.pipes.transcript import TranscriptSpool


def _full(_fd: int, _data: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_no_place_is_given_twice_while_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen's process is ended over output that lies before what it has drawn, with other agents' screens."""
    spool = TranscriptSpool(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", _full)
        places = [spool.append(piece) for piece in (b"one ", b"two ")]
    places.append(spool.append(b"three"))
    spool.close()
    assert places == [0, 4, 8]
    assert SpoolReader(str(spool.folder)).read(0, 100) == (0, b"one two three")


def test_what_is_held_for_the_disk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "HELD_MAX", 5)
    spool = TranscriptSpool(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", _full)
        places = [spool.append(piece) for piece in (b"one ", b"two ")]
    places.append(spool.append(b"three"))
    spool.close()
    assert places == [0, 4, 8]
    assert SpoolReader(str(spool.folder)).read(0, 100) == (8, b"three")
