"""What keeps the folders of the sockets, and asks keepers for theirs."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from synapsed.supervisor.upkeep import TOUCH_EVERY_S, KeptFolders


def is_shared(folder: Path) -> bool:
    """As systemd-tmpfiles asks, which leaves alone what it cannot lock."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "control.sock").touch()
    return folder


def age(path: Path) -> None:
    os.utime(path, (1.0, 1.0))


def test_it_is_locked_and_touched(folder: Path) -> None:
    kept = KeptFolders(folder)
    age(folder / "control.sock")
    kept.keep(0.0)
    assert is_shared(folder)
    assert (folder / "control.sock").stat().st_mtime > 1.0
    age(folder / "control.sock")
    kept.keep(TOUCH_EVERY_S - 1)
    assert (folder / "control.sock").stat().st_mtime == 1.0, "not at every look"
    kept.keep(TOUCH_EVERY_S)
    assert (folder / "control.sock").stat().st_mtime > 1.0
    kept.close()
    assert not is_shared(folder)


def test_a_folder_that_was_made_again_is_locked_again(folder: Path) -> None:
    kept = KeptFolders(folder)
    kept.keep(0.0)
    shutil.rmtree(folder)
    kept.keep(1.0)
    folder.mkdir()
    kept.keep(2.0)
    assert is_shared(folder)
    kept.close()
