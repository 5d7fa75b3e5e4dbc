"""What keeps the folders of the sockets, and asks keepers for theirs."""

import asyncio
import errno
import fcntl
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from synapsed.config.paths import Paths
from synapsed.supervisor.upkeep import HOOKS_SOCKET, LOCK, RUN_LOCK, TOUCH_EVERY_S, KeptFolders, Premises, Upkeep
from tests.fakes.clock import PATIENCE_S


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


def test_a_file_that_is_removed_while_others_are_made_again(tmp_path: Path) -> None:
    """Only what was made is taken for the daemon's own, and only if it is there."""
    paths = Paths.from_environ({"SYNAPSED_HOME": str(tmp_path)})
    for place in (paths.lock, paths.run_lock, paths.hooks_socket):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    premises = Premises(paths)
    paths.lock.unlink()
    assert set(premises.find_deleted()) == {LOCK}
    paths.lock.touch()  # the daemon makes it again; meanwhile somebody removes others
    paths.run_lock.unlink()
    paths.hooks_socket.unlink()
    assert set(premises.made_again({LOCK, RUN_LOCK})) == {RUN_LOCK}, "it was made, and is gone again"
    assert set(premises.find_deleted()) == {HOOKS_SOCKET}
    assert premises.find_deleted() == {}


async def test_a_look_that_fails_is_not_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon ends with this task."""
    monkeypatch.setattr("synapsed.supervisor.upkeep.LOOK_EVERY_S", 0.0)
    looks: asyncio.Queue[None] = asyncio.Queue()

    def launches() -> Any:
        looks.put_nowait(None)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    unused: Any = None
    paths = Paths.from_environ({"SYNAPSED_HOME": str(tmp_path)})
    upkeep = Upkeep(paths, lock=unused, store=unused, servers=unused, hooks={}, token="", launches=launches)
    running = asyncio.create_task(upkeep.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            await looks.get()
            await looks.get()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
