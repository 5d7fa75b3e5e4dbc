"""The keeper's socket is removed by somebody: it is asked by a signal to bind it again."""

import errno
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapsed.keeper.clients import Listener
from synapsed.keeper.spec import LaunchRefused
from synapsed.keepers.client import KeeperClient
from synapsed.keepers.launchers import ProcessLauncher, call_keeper
from tests.keeper.conftest import DEADLINE_S, Lab
from tests.keeper.frozen import KEEPERS
from tests.support.daemon import eventually


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    (tmp_path / "run").mkdir()
    found = Listener(os.path.relpath(tmp_path / "run" / "k.sock"))  # else its path may be too long
    yield found
    found.close()


def test_it_is_bound_once_while_it_is_there(listener: Listener, tmp_path: Path) -> None:
    before = listener.sock
    assert not listener.renew()
    assert listener.sock is before
    assert (tmp_path / "run" / "k.sock").stat().st_mode & 0o777 == 0o600


def test_it_is_bound_again_with_its_folder(listener: Listener, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "run")
    before = listener.sock
    assert listener.renew()
    before.close()
    assert (tmp_path / "run" / "k.sock").is_socket()
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    assert not listener.renew()


def test_another_ones_socket_stays(listener: Listener, tmp_path: Path) -> None:
    place = tmp_path / "run" / "k.sock"
    place.unlink()
    other = Listener(os.path.relpath(place))
    with pytest.raises(LaunchRefused, match="another process already listens"):
        listener.renew()
    listener.close()
    assert place.exists(), "it removes its own only"
    other.close()


@pytest.mark.parametrize("failing", ["socket.socket", "os.open", "os.lstat"])
def test_one_that_could_not_be_bound_again_is_bound_the_next_time(
    failing: str, listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper may have no descriptor left, and lives on; the folder may be swept in this very moment."""
    place = tmp_path / "run" / "k.sock"
    place.unlink()
    before = listener.sock

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as failed:
        failed.setattr(failing, fails)
        with pytest.raises(LaunchRefused, match="cannot be made: Too many open files"):
            listener.renew()
    assert listener.sock is before
    assert listener.renew()
    before.close()
    assert listens(Path(os.path.relpath(place)))
    assert not listener.renew()


def listens(path: Path) -> bool:
    """Returns True once somebody does; the socket is there a moment before."""
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(str(path)) == 0


async def test_a_keeper_is_asked(lab: Lab) -> None:
    keeper = await lab.shell("echo hello; cat")
    client = await lab.connect(keeper)
    shutil.rmtree(keeper.socket_path.parent)
    assert call_keeper(keeper.keeper_pid)
    eventually(lambda: listens(keeper.socket_path), "it listens again")
    second = await lab.connect(keeper)
    assert second.hello.pid == keeper.pid
    assert (await client.ping()).pid == keeper.pid, "who was connected is"


@pytest.mark.parametrize("version", sorted(KEEPERS.keys() - {"current"}))
async def test_an_older_one_is_not_harmed(lab: Lab, version: str) -> None:
    keeper = await ProcessLauncher(keeper=KEEPERS[version]).launch(lab.spec("cat"))
    lab.launched.append(keeper)
    client = await KeeperClient.connect(keeper.socket_path, timeout=DEADLINE_S)
    assert not call_keeper(keeper.keeper_pid)
    os.kill(keeper.keeper_pid, signal.SIGHUP)
    assert (await client.ping()).pid == keeper.pid
    client.close()
