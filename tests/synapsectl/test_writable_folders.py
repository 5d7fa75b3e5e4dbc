"""Why nothing can be written to a folder; real mounts are tried in tests/ground/test_disks.py."""

import errno
import os
from pathlib import Path

import pytest

from synapsectl import writable_folders


def test_what_can_be_written_to_is_left_as_it_was(tmp_path: Path) -> None:
    assert writable_folders.unwritable([tmp_path, tmp_path / "not/there"]) == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (found,) = writable_folders.unwritable([tmp_path / "file"])
    assert found.cause == f"{tmp_path / 'file'} is no folder"


@pytest.mark.parametrize(
    ("code", "told"),
    [(errno.EDQUOT, "your quota on the disk of"), (errno.EROFS, "read-only"), (errno.EACCES, "you may not write to")],
)
def test_the_cause_is_named(code: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    (found,) = writable_folders.unwritable([tmp_path])
    assert told in found.cause
    assert str(tmp_path) in found.cause
    assert found.mend


def test_a_folder_that_is_removed_meanwhile_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    real = writable_folders.existing

    def and_removed(place: Path) -> Path:
        found = real(place)
        if found == gone:
            gone.rmdir()
        return found

    monkeypatch.setattr(writable_folders, "existing", and_removed)
    assert writable_folders.unwritable([gone]) == []
