"""Who makes the folder or the socket first, as another user, gets nothing: not a byte is sent to them."""

import ast
import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from synapsed import hookclient
from synapsed.config.paths import Paths
from synapsed.config.sockets import runtime_directory, why_not_our_folder
from synapsed.errors import KeeperLost
from synapsed.keepers.client import KeeperClient

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")

STRANGER = """
import os, socket, sys
mode, path = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
if mode == "socket":  # somehow its socket came into our folder
    listener.bind(path)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
if mode == "folder":
    os.mkdir(os.path.dirname(path), 0o755)
    listener.bind(path)
    os.chmod(path, 0o666)
listener.listen()
print("listens", flush=True)
while True:
    connection, _ = listener.accept()
    connection.settimeout(5)
    try:
        print(repr(connection.recv(65536)), flush=True)
    except OSError:
        print("b''", flush=True)
    connection.close()
"""


LAST = b"the last one"


class Stranger(NamedTuple):
    process: "subprocess.Popen[str]"
    path: Path


@contextlib.contextmanager
def stranger(mode: str, path: Path) -> Iterator[Stranger]:
    """Another user who listens at `path`; says what reaches it, a line for each connection."""
    argv = [sys.executable, "-c", STRANGER, mode, str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listens\n"
        yield Stranger(process, path)
        process.kill()


def heard(other: Stranger) -> list[bytes]:
    """All that reached it, connection by connection."""
    with socket.socket(socket.AF_UNIX) as last:
        last.connect(str(other.path))
        last.sendall(LAST)
        assert other.process.stdout is not None
        return [ast.literal_eval(line) for line in iter(other.process.stdout.readline, f"{LAST!r}\n")]


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Of somebody whose sockets must have their place in a folder that all users share: the path is too long."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SYNAPSE", "XDG_"))}
    environ = {**kept, "SYNAPSED_HOME": str(tmp_path / ("long" * 30)), "A_SECRET": "of the environment"}
    folder = Paths.from_environ(environ).sockets
    assert folder.parent == Path("/tmp")
    yield environ
    shutil.rmtree(folder, ignore_errors=True)


def ctl(environ: dict[str, str], *arguments: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-m", "synapsectl", *arguments]
    return subprocess.run(argv, env=environ, input=given, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("arguments", [("start", "dummy"), ("send", "ann", "hello"), ("list",), ("shutdown",)])
def test_a_folder_of_somebody_else_is_not_used(environ: dict[str, str], arguments: tuple[str, ...]) -> None:
    path = Paths.from_environ(environ).control_socket
    with stranger("folder", path) as other:
        done = ctl(environ, *arguments)
        assert (done.returncode, heard(other)) == (3, []), done
    assert f"{path.parent} belongs to uid 65534, and you are uid 0" in done.stderr
    assert "nothing was sent" in done.stderr
    assert not (Path(environ["SYNAPSED_HOME"]) / "state").exists(), "no daemon was started for it either"


def test_a_socket_of_somebody_else_in_our_own_folder_gets_nothing(environ: dict[str, str]) -> None:
    path = Paths.from_environ(environ).control_socket
    path.parent.mkdir(mode=0o700)
    with stranger("socket", path) as other:
        done = ctl(environ, "start", "dummy", "--json")
        assert (done.returncode, set(heard(other))) == (3, {b""}), done
    assert json.loads(done.stdout)["error"]["code"] == "NOT_OURS"
    assert "uid 65534 listens there, and you are uid 0: nothing was sent" in done.stdout


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_may_write_to_is_not_used(environ: dict[str, str], mode: int) -> None:
    folder = Paths.from_environ(environ).sockets
    folder.mkdir()
    folder.chmod(mode)
    done = ctl(environ, "list")
    assert (done.returncode, f"can be written to by others (mode {mode:04o})" in done.stderr) == (3, True), done


def test_a_link_is_not_followed(environ: dict[str, str], tmp_path: Path) -> None:
    Paths.from_environ(environ).sockets.symlink_to(tmp_path)
    try:
        done = ctl(environ, "list")
    finally:
        Paths.from_environ(environ).sockets.unlink()
    assert (done.returncode, "no directory but a link" in done.stderr) == (3, True), done


def test_a_tool_of_an_agent_s_model_sends_nothing_either(environ: dict[str, str]) -> None:
    path = Paths.from_environ(environ).control_socket
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_agents", "arguments": {}}}
    with stranger("folder", path) as other:
        done = ctl({**environ, "SYNAPSE_CONTROL_SOCKET": str(path)}, "mcp", given=json.dumps(asked) + "\n")
        assert heard(other) == [], done


@pytest.mark.parametrize("mode", ["folder", "socket"])
def test_a_hook_reports_and_asks_nobody_else(environ: dict[str, str], tmp_path: Path, mode: str) -> None:
    sockets = Paths.from_environ(environ).sockets
    if mode == "socket":
        sockets.mkdir(mode=0o700)
    hooks = tmp_path / "hooks"
    for folder in (hooks, hooks / "tmp", hooks / "new"):
        folder.mkdir()
    with stranger(mode, sockets / "decide.sock") as other:
        argv = [sys.executable, "-S", "-E", "-I", hookclient.__file__, str(hooks), str(sockets / "hooks.sock"), "ann"]
        done = subprocess.run(
            [*argv, "PermissionRequest", str(sockets / "decide.sock")], input=b"{}", capture_output=True, check=False
        )
        assert (done.returncode, done.stdout, b"".join(heard(other))) == (0, b"", b"")
    assert len(list((hooks / "new").iterdir())) == 1, "the report itself is kept"


def test_the_daemon_types_nothing_through_a_keeper_of_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "k.sock"

    async def connect() -> None:
        with pytest.raises(KeeperLost, match="uid 65534 listens there"):
            await KeeperClient.connect(path)

    with stranger("socket", path) as other:
        asyncio.run(connect())
        assert b"".join(heard(other)) == b""


def test_without_a_runtime_directory_the_place_is_below_the_home(tmp_path: Path) -> None:
    home = tmp_path / "me"
    assert runtime_directory({"HOME": str(home), "TMPDIR": str(tmp_path)}) == f"{home}/.local/state/synapsed/run"
    assert runtime_directory({"XDG_STATE_HOME": "/s", "TMPDIR": str(tmp_path)}) == "/s/synapsed/run"


def test_the_place_of_a_version_before_is_kept_while_its_lock_is_there(tmp_path: Path) -> None:
    environ = {"HOME": "/home/me", "TMPDIR": str(tmp_path)}
    before = tmp_path / f"synapsed-{os.getuid()}"
    before.mkdir(mode=0o700)
    assert runtime_directory(environ) == "/home/me/.local/state/synapsed/run"
    (before / "lock").touch()
    assert runtime_directory(environ) == str(before)
    os.chown(before, 65534, 65534)
    assert why_not_our_folder(str(before)) is not None
    assert runtime_directory(environ) == "/home/me/.local/state/synapsed/run"


def test_root_s_socket_is_nobody_s_trick() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert hookclient.peer_is_ours(ours)  # type: ignore[arg-type]
