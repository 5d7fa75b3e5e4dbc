"""The keeper's socket: it is bound again after somebody removed it, and pauses when there are no descriptors."""

import asyncio
import errno
import os
import resource
import selectors
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from synapsed.keeper.clients import Clients, Listener
from synapsed.keeper.requests import Requests
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


@pytest.mark.parametrize("renewed", [False, True], ids=["the same", "bound again"])
def test_without_descriptors_it_pauses_and_then_accepts(
    renewed: bool, listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket that is ready and is not accepted would be ready again at once: the keeper would do nothing else."""

    def fails(_: socket.socket) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def turn() -> int:
        found = selector.select(0)
        for key, mask in found:
            key.data(mask)
        return len(found)

    place = Path(os.path.relpath(tmp_path / "run" / "k.sock"))
    with selectors.DefaultSelector() as selector:
        clients = Clients(selector, cast("Requests", None))
        clients.listen(listener.sock)
        with monkeypatch.context() as full:
            full.setattr(socket.socket, "accept", fails)
            assert listens(place)
            assert turn() == 1
            assert turn() == 0, "it pauses"
        assert clients.full
        if renewed:
            place.unlink()
            assert listener.renew()
        clients.listen(listener.sock)
        assert not clients.full
        assert listens(place)
        assert turn() == 1
        assert clients
        clients.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lowers the limit of another process")
async def test_a_keeper_without_descriptors_serves_who_waited(lab: Lab) -> None:
    keeper = await lab.shell("cat")
    limit = resource.prlimit(keeper.keeper_pid, resource.RLIMIT_NOFILE)
    resource.prlimit(keeper.keeper_pid, resource.RLIMIT_NOFILE, (0, limit[1]))
    connecting = asyncio.create_task(lab.connect(keeper))
    eventually(lambda: listens(keeper.socket_path), "somebody waits")
    resource.prlimit(keeper.keeper_pid, resource.RLIMIT_NOFILE, limit)
    client = await connecting
    assert client.hello.pid == keeper.pid


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
