"""Disks that are full, and folders that nothing can be written to, by the installed tool: the cause is told at once, a
program that fills the disk can be stopped, and all goes on when there is room."""

import contextlib
import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from synapsed.config.paths import Paths
from tests.ground.installed import Installed
from tests.ground.person import Person, is_alive, living_somewhere
from tests.support.daemon import PATIENCE_S, Ctl, eventually

pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(
        sys.platform != "linux" or os.getuid() != 0 or shutil.which("unshare") is None, reason="mounts, as root"
    ),
]

OTHER = 65534
SENDERS = 120
FULL = "cat /dev/zero > {0}/ballast 2> /dev/null"
NO_INODES = "i=0; while true > {0}/none$i; do i=$((i+1)); done 2> /dev/null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder of the person that takes nothing; `{home}`, `{state}`, `{runtime}` and `{config}` are filled in."""

    name: str
    at: str
    options: str = ""
    """Of a new file system; without them the folder is bound, and mounted read-only."""
    then: str = "true"
    """What is done to it, as `{0}`."""
    unlike_root: bool = False
    """For a user who may not do everything."""
    cause: str
    starts: bool = False
    """A daemon does without it."""


PLACES = (
    Place(name="a home that is read-only", at="{home}", cause="mounted read-only"),
    Place(name="a state folder that is read-only", at="{state}", cause="mounted read-only"),
    Place(name="a runtime directory that is read-only", at="{runtime}/synapsed", cause="mounted read-only"),
    Place(
        name="a configuration that is read-only",
        at="{home}/.config/synapsed",
        cause="mounted read-only",
        starts=True,
    ),
    Place(name="a state folder that is full", at="{state}", options="size=1m", then=FULL, cause="is full (0 bytes"),
    Place(
        name="a state folder with too little room",
        at="{state}",
        options="size=128k",
        cause="is full (131,072 bytes free)",
    ),
    Place(
        name="a state folder without inodes",
        at="{state}",
        options="size=1m,nr_inodes=9",
        then=NO_INODES,
        cause="none of its 9 inodes is free",
    ),
    Place(
        name="a runtime directory that is full",
        at="{runtime}/synapsed",
        options="size=64k",
        then=FULL,
        cause="is full (0 bytes free)",
    ),
    Place(
        name="a runtime directory without inodes",
        at="{runtime}/synapsed",
        options="size=1m,nr_inodes=3",
        then=NO_INODES,
        cause="none of its 3 inodes is free",
    ),
    Place(
        name="a state folder of another user",
        at="{state}",
        options="size=9m",
        then=f"chown {OTHER} {{0}}; chmod 0700 {{0}}",
        unlike_root=True,
        cause="belongs to",
    ),
    Place(
        name="a state folder that may not be written to",
        at="{state}",
        options="size=9m",
        then="chmod 0500 {0}",
        unlike_root=True,
        cause="(mode 0500)",
    ),
)


def there(place: Place, person: Person) -> list[str]:
    """The command below which it is so."""
    at = place.at.format(home=person.home, state=person.state, runtime=person.runtime)
    Path(at).mkdir(parents=True, exist_ok=True, mode=0o700)
    mount = (
        f"mount -t tmpfs -o mode=0700,{place.options} none {at}"
        if place.options
        else f"mount --bind {at} {at}; mount -o remount,bind,ro {at}"
    )
    drop = "setpriv --bounding-set=-all --inh-caps=-all " if place.unlike_root else ""
    script = f'{mount}; {place.then.format(at)}; cd {person.home}; exec {drop}"$@"'
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


def assert_told(done: Ctl, code: int, cause: str) -> None:
    assert "Traceback" not in done.err, done
    assert (done.code, cause in done.out + done.err) == (code, True), done


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_what_takes_nothing_is_told(place: Place, installed: Installed) -> None:
    """By `doctor`, and by what would start a daemon there, which names no empty log."""
    with living_somewhere(installed) as person:
        around = there(place, person)
        looked = person.ctl("doctor", around=around)
        assert_told(looked, 1, place.cause)
        assert "WRONG folders: " in looked.out
        if place.starts:
            return
        for verb in (("start", "dummy"), ("up",), ("send", "d", "hi")):
            refused = person.ctl(*verb, around=around)
            if refused.code == 6 and "runs as root" in refused.err:
                continue  # another's state is refused to root before
            assert_told(refused, 3, place.cause)
            assert refused.err.count("\n") == 1
            assert "daemon.log" not in refused.err


# --- a daemon whose disk becomes full --------------------------------------------------------------------------------


class FullDisk:
    """The person's state and the folder `work` of their agents, on one file system."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.work = person.state / "work"
        self.work.mkdir(mode=0o700)
        self._ballast = self.work / "ballast"

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as file:
            for size in (1 << 16, 1):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        for file in (self._ballast, self.work / "big"):
            file.unlink(missing_ok=True)

    def ctl(self, *words: str) -> Ctl:
        return self.person.ctl(*words, cwd=self.work)

    def state(self, name: str) -> str:
        return next(str(row["state"]) for row in self.ctl("list", "--json").json if row["name"] == name)


@contextmanager
def on_a_small_disk(installed: Installed) -> Iterator[FullDisk]:
    with living_somewhere(installed) as person:
        person.state.mkdir(parents=True, mode=0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=0700", "none", person.state], check=True)
        try:
            disk = FullDisk(person)
            person.with_dummy("d")
            yield disk
            disk.free()
            person.ctl("shutdown")
        finally:
            subprocess.run(["umount", "-l", person.state], check=False)


def _refused(disk: FullDisk, *words: str) -> None:
    assert_told(disk.ctl(*words), 6, "the disk is full")


def _runaway(disk: FullDisk) -> None:
    """A program fills the disk, and is stopped; it writes no more when there is room, and stays stopped."""
    go, big = (shlex.quote(str(disk.work / name)) for name in ("go", "big"))
    writing = f"until test -e {go}; do sleep 0.1; done; while :; do cat /dev/zero >> {big}; done 2> /dev/null"
    assert disk.ctl("start", "generic", "--name", "r", "--", "sh", "-c", writing).code == 0
    (disk.work / "go").touch()
    disk.fill()
    stopped = disk.ctl("stop", "r")
    assert_told(stopped, stopped.code, "" if stopped.code == 0 else "the program of r has ended")
    disk.free()
    eventually(lambda: disk.state("r") == "stopped", "it is written down")
    assert not (disk.work / "big").exists()


def _killed(disk: FullDisk) -> None:
    pid = int(str(disk.person.ready("d")["pid"]))
    disk.fill()
    assert_told(disk.ctl("kill", "d"), 0, "killed")
    eventually(lambda: not is_alive(pid), "it is gone")


def _verbs(disk: FullDisk) -> None:
    disk.fill()
    for words in (("send", "d", "echo refused"), ("restart", "d"), ("start", "dummy", "--name", "e")):
        _refused(disk, *words)
    assert_told(disk.ctl("doctor"), 1, "is full (0 bytes free)")
    assert disk.ctl("screen", "d").code == 0


def _many(disk: FullDisk) -> None:
    """Many send at once: each is answered while the disk is full, and nothing that was refused is done later."""
    path = str(Paths.from_environ(disk.person.login).control_socket)
    ready = threading.Barrier(SENDERS)

    def send(number: int) -> int:
        message = {"role": "user", "parts": [{"type": "text", "text": f"echo number {number}"}]}
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE_S)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(PATIENCE_S)
        with contextlib.closing(connection):
            connection.sock.connect(path)
            ready.wait(PATIENCE_S)
            head = {"Content-Type": "application/json"}
            connection.request("POST", "/agents/d/tasks/send", json.dumps({"message": message}), head)
            answer = connection.getresponse()
            answer.read()
            return answer.status

    disk.fill()
    with ThreadPoolExecutor(SENDERS) as pool:
        statuses = list(pool.map(send, range(SENDERS)))
    assert set(statuses) <= {200, 503}, statuses
    assert 503 in statuses
    disk.free()
    disk.person.ready("d")
    last = disk.ctl("send", "d", "--wait", "--", "echo behind all")
    assert (last.code, last.out) == (0, "behind all\n"), last
    told = disk.ctl("tasks", "--json").out
    kept = [number for number in range(SENDERS) if f'"echo number {number}"' in told]
    assert kept == [number for number, status in enumerate(statuses) if status == 200]


def _answer(disk: FullDisk) -> None:
    """The disk is full while a turn runs: its answer is not lost."""
    sent = disk.ctl("send", "d", "--json", "--", "busy 2")
    assert sent.code == 0, sent
    disk.fill()
    _refused(disk, "send", "d", "echo refused")
    disk.free()
    eventually(lambda: "completed" in disk.ctl("tasks", "--json").out, "it is written down")


def _term(disk: FullDisk) -> None:
    disk.fill()
    pid = disk.person.pid
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: not is_alive(pid), "it has ended")
    assert_told(disk.ctl("up"), 3, "is full (0 bytes free)")
    disk.free()
    assert disk.ctl("up").code == 0


def _shut_down(disk: FullDisk) -> None:
    program = int(str(disk.person.ready("d")["pid"]))
    disk.fill()
    assert disk.ctl("shutdown").code == 0
    eventually(lambda: not is_alive(program), "its agent has ended")
    disk.free()
    assert disk.ctl("up").code == 0


def _shut_down_without_agents(disk: FullDisk) -> None:
    program = int(str(disk.person.ready("d")["pid"]))
    disk.fill()
    assert disk.ctl("shutdown", "--keep-agents").code == 0
    assert is_alive(program)
    disk.free()
    assert disk.ctl("up").code == 0
    assert disk.person.ready("d")["pid"] == program


def _killed_daemon(disk: FullDisk) -> None:
    program = int(str(disk.person.ready("d")["pid"]))
    disk.fill()
    disk.person.kill()
    assert_told(disk.ctl("up"), 3, "is full (0 bytes free)")
    assert is_alive(program)
    disk.free()
    assert disk.ctl("up").code == 0
    assert disk.person.ready("d")["pid"] == program


def _growing_log(disk: FullDisk) -> None:
    """The daemon's own log has taken the last byte. It may have put that aside meanwhile, as one that is too large."""
    log_file = disk.person.state / "logs/daemon.log"
    with log_file.open("ab", buffering=0) as log:
        try:
            while log.write(bytes(1 << 16)):
                pass
        except OSError:
            pass
    disk.fill()
    _refused(disk, "send", "d", "echo refused")
    os.truncate(log_file, 0)
    log_file.with_suffix(".log.1").unlink(missing_ok=True)


BECOMES_FULL = {
    "a program that fills it": _runaway,
    "kill": _killed,
    "verbs": _verbs,
    "many messages at once": _many,
    "a turn runs": _answer,
    "SIGTERM": _term,
    "shutdown": _shut_down,
    "shutdown --keep-agents": _shut_down_without_agents,
    "the daemon is killed": _killed_daemon,
    "a log that grows": _growing_log,
}


@pytest.mark.parametrize("happens", BECOMES_FULL)
def test_a_disk_that_becomes_full(happens: str, installed: Installed) -> None:
    """And then there is room: the next message is answered, by the daemon that runs."""
    with on_a_small_disk(installed) as disk:
        BECOMES_FULL[happens](disk)
        disk.free()
        disk.person.ready("d")
        sent = disk.ctl("send", "d", "--wait", "--", "echo there is room")
        assert (sent.code, sent.out) == (0, "there is room\n"), sent
