"""A daemon that hangs, breaks off or is being shut down while something is asked of it."""

import contextlib
import fcntl
import io
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapsectl.context import CommandContext
from synapsectl.output import CommandOutput
from synapsectl.spawn import note_shutdown
from synapsed.config.paths import Paths
from tests.support.daemon import Daemon, eventually
from tests.support.threaded import KINDS

RESET = struct.pack("ii", 1, 0)
TASK = {"id": "0" * 32, "status": "submitted", "metadata": {}, "agent_id": "a", "artifacts": []}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path / "home")
    yield daemon
    daemon.end()


class Breaking:
    """Answers as a daemon would, but for the first `breaks` messages, which it reads before it resets the connection;
    with `ends` it is gone then."""

    def __init__(self, path: Path, *, breaks: int = 0, ends: bool = False, takes: int | None = None) -> None:
        """With `takes` it answers so many messages, and is gone before the last answer."""
        self._path = path
        self._takes = takes
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # named by the home, as in a run before
        path.unlink(missing_ok=True)
        self.keys: list[str] = []
        self._breaks = breaks
        self._ends = ends
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # `end`
                return
            if not (asked := self._read(connection)):  # a look whether somebody listens
                connection.close()
                continue
            if b"/tasks/send " in asked.partition(b"\r\n")[0]:
                head = asked.partition(b"\r\n\r\n")[0].decode()
                self.keys += [line[17:] for line in head.split("\r\n") if line.startswith("Idempotency-Key: ")]
                if len(self.keys) <= self._breaks:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    connection.close()
                    if self._ends:
                        self._listener.close()
                        return
                    continue
            if gone := len(self.keys) == self._takes:
                self._listener.close()
                self._path.unlink()
            body = json.dumps({"task": TASK}).encode()
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            connection.close()
            if gone:
                return

    def _read(self, connection: socket.socket) -> bytes:
        with connection.makefile("rb") as asking:
            head = list(itertools.takewhile(lambda line: line != b"\r\n", asking))
            length = next((int(line[15:]) for line in head if line.startswith(b"Content-Length:")), 0)
            return b"".join([*head, b"\r\n", asking.read(length)]) if head else b""

    def end(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def test_a_message_that_may_have_been_accepted_has_a_code_of_its_own(home: Daemon) -> None:
    breaking = Breaking(home.socket, breaks=1, ends=True)
    sent = home.ctl("send", "ann", "--no-spawn-daemon", "--timeout", "1", "--", "hello")
    assert sent.code == 8, sent
    assert "may have been accepted" in sent.err
    assert f"--idempotency-key {breaking.keys[0]}" in sent.err
    again = home.ctl("send", "ann", "--no-spawn-daemon", "--", "hello")
    assert again.code == 3, "nothing was given to anybody"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_was_sent_is_told_where_the_daemon_goes_in_between(home: Daemon, form: tuple[str, ...]) -> None:
    Breaking(home.socket, takes=1)
    sent = home.ctl("send", "ann,bob,cid", "--no-spawn-daemon", *form, "--", "hello")
    assert sent.code == 3, sent
    assert "bob: no daemon is running" in sent.err
    assert "cid: no daemon is running" in sent.err
    if form:
        told = {one["agent"]: one for one in sent.json["tasks"]}
        assert told["ann"]["task"]["id"] == TASK["id"]
        assert {told[name]["error"]["code"] for name in ("bob", "cid")} == {"NO_DAEMON"}
    else:
        assert sent.out == f"{TASK['id']}\tann\n"


@pytest.mark.parametrize("breaks", [1, pytest.param(2, marks=pytest.mark.night)])
def test_it_is_sent_again_under_the_same_key_where_the_daemon_is_back(home: Daemon, breaks: int) -> None:
    breaking = Breaking(home.socket, breaks=breaks, ends=False)
    sent = home.ctl("send", "ann", "--json", "--", "hello")
    assert (sent.code, sent.json["task"]["id"]) == (0, TASK["id"]), sent
    assert len(breaking.keys) == breaks + 1
    assert len(set(breaking.keys)) == 1
    breaking.end()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_key_is_the_same_task(tmp_path: Path, kind: type[Daemon]) -> None:
    home = kind(tmp_path / "home").start()
    home.start_agent(name="ann")
    home.start_agent(name="bob")

    def send(*arguments: str) -> str:
        sent = home.ctl("send", *arguments, "--json", "--idempotency-key", "k1", "--", "hello")
        assert sent.code == 0, sent
        return json.dumps([one["task"]["id"] for one in sent.json.get("tasks", [sent.json])])

    assert send("ann") == send("ann")
    both = send("ann,bob")
    assert both == send("ann,bob")
    assert len(set(json.loads(both))) == 2
    assert len(home.ctl("tasks", "ann", "--json").json) == 2
    wrong = home.ctl("send", "ann", "--idempotency-key", "a\r\nX: y", "--", "hello")
    assert (wrong.code, "printable ASCII" in wrong.err) == (2, True)
    assert home.end() == 0


def test_a_time_limit_holds_where_the_daemon_hangs(home: Daemon) -> None:
    home.start()
    home.start_agent(name="ann")
    os.kill(home.pid, signal.SIGSTOP)
    try:
        sent = home.ctl("send", "ann", "--timeout", "0.7", "--wait", "--", "hello")
    finally:
        os.kill(home.pid, signal.SIGCONT)
    assert (sent.code, "did not answer within 0.7 s" in sent.err) == (5, True), sent
    assert home.ctl("tasks", "ann", "--json").json == [], "it was not sent"


def test_a_time_limit_holds_where_another_verb_does_not_come_to_an_end(home: Daemon) -> None:
    """One that starts a daemon and is suspended, for instance."""
    logs = of(home).paths.logs
    logs.mkdir(parents=True)
    with locked(logs):
        sent = home.ctl("send", "ann", "--timeout", "0.2", "--wait", "--", "hello")
    assert (sent.code, "not come to an end within 0.2 s" in sent.err) == (5, True), sent


@pytest.mark.night
def test_a_time_limit_holds_where_the_daemon_does_not_come_up(home: Daemon) -> None:
    lock = of(home).paths.lock
    lock.parent.mkdir(mode=0o700, parents=True)
    lock.touch()
    log = of(home).paths.logs / "daemon.log"
    with locked(lock):  # another daemon has this home, and answers nobody
        sent = home.ctl("send", "ann", "--timeout", "0.2", "--wait", "--", "hello")
        eventually(lambda: "runs already" in log.read_text(), "the one that was started has given way")
    assert (sent.code, "not come up within 0.2 s" in sent.err) == (5, True), sent


@pytest.mark.skipif(sys.platform != "linux", reason="who waits is told by /proc")
def test_who_wanted_a_daemon_before_it_was_shut_down_starts_no_other(home: Daemon) -> None:
    home.start()
    logs = home.home / "state" / "logs"
    with locked(logs):
        home.kill9()
        waiting = home.spawn("start", "dummy")
        eventually(lambda: _has_open(waiting, logs), "it waits for its turn to start a daemon")
        note_shutdown(of(home))
    _, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, "was shut down just now" in err) == (3, True), err
    assert home.ctl("list").code == 3
    ahead = time.time() + 20 * 86400
    os.utime(logs / "shut-down", (ahead, ahead))  # as after a clock that was set back since
    assert home.ctl("start", "dummy", "--cwd", "/").code == 0, "who comes later does"
    assert home.ctl("shutdown").code == 0
    assert (logs / "shut-down").exists()
    assert home.ctl("list").code == 3


def test_each_shutdown_leaves_another_mark(home: Daemon) -> None:
    """The time of a file is the kernel's, which may be that of its last tick."""
    logs = Paths.from_environ(home.env).logs
    logs.mkdir(parents=True)
    marks = set()
    for _ in range(1000):
        note_shutdown(of(home))
        marks.add((logs / "shut-down").stat().st_mtime_ns)
    assert len(marks) == 1000


def of(home: Daemon) -> CommandContext:
    return CommandContext(home.env, CommandOutput(io.StringIO(), io.StringIO(), columns=None))


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _has_open(process: "subprocess.Popen[str]", path: Path) -> bool:
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if descriptor.readlink() == path:
                return True
    return False
