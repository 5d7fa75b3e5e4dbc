"""More clients at once than a listener's queue holds: each waits for its turn."""

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from synapsectl.client import Client
from synapsectl.errors import TimedOut
from synapsed import hookclient
from synapsed.config import sockets

ANSWER = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


class Crowded:
    """A listener whose queue is full."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path = path
        self.listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        self.listener.bind(str(path))
        self.listener.listen(0)
        self._waiting: list[socket.socket] = []
        with contextlib.suppress(BlockingIOError):
            while True:
                one = stack.enter_context(socket.socket(socket.AF_UNIX))
                one.setblocking(False)
                one.connect(str(path))
                self._waiting.append(one)

    def serve(self, answer: bytes) -> None:
        """Answer whoever asks something; those before it leave."""
        for one in self._waiting:
            one.close()
        while True:
            connection, _ = self.listener.accept()
            with connection:
                if connection.recv(65536):
                    connection.sendall(answer)
                    return


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[Crowded]:
    if sys.platform != "linux":
        pytest.skip("other systems refuse a connection, or keep it")
    tmp_path.chmod(0o700)
    with ExitStack() as stack:
        yield Crowded(tmp_path / "s", stack)


@pytest.fixture
def stands(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a client has seen that the queue is full; the hook client sleeps by the same clock."""
    seen = threading.Event()
    monkeypatch.setattr(sockets.time, "sleep", lambda _: seen.set())
    return seen


@contextlib.contextmanager
def served(crowded: Crowded, stands: threading.Event, answer: bytes) -> Iterator[None]:
    """Whoever asks within is answered, once it has seen that the queue is full."""

    def serve() -> None:
        stands.wait()
        crowded.serve(answer)

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    yield
    serving.join()


def test_a_client_waits_for_its_turn(crowded: Crowded, stands: threading.Event) -> None:
    with served(crowded, stands, ANSWER):
        assert Client(str(crowded.path)).get("/agents") == {}


def test_a_hook_waits_for_its_turn(crowded: Crowded, stands: threading.Event) -> None:
    with served(crowded, stands, b"allow"):
        assert hookclient.decision(str(crowded.path), "synapse-claude-8100", b"{}") == b"allow"


def test_a_daemon_that_takes_nobody_in_time_is_stuck(crowded: Crowded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapsectl.client.CONNECT_TIMEOUT", 0.01)
    with pytest.raises(TimedOut):
        Client(str(crowded.path)).get("/agents")
