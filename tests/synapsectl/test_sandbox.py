"""`synapsectl` in a sandbox that keeps it from sockets, such as codex runs its model's commands in."""

import errno
import socket
from pathlib import Path

import pytest

from synapsectl import client
from synapsectl.client import Client
from synapsectl.errors import REFUSED, NoDaemon, NotAllowed


class Kept(socket.socket):
    """Of a process that may connect to nothing."""

    def connect(self, address: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")


def test_it_says_what_works_there_and_starts_no_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(client.socket, "socket", Kept)
    with pytest.raises(NotAllowed, match=r"Operation not permitted.*send_message") as refused:
        Client(str(tmp_path / "control.sock")).get("/agents")
    assert refused.value.exit_code == REFUSED
    assert not isinstance(refused.value, NoDaemon), "for which 'send' starts one"
