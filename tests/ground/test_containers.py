"""Containers, and what else takes a part of the machine away."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, is_alive, living_somewhere
from tests.support.daemon import PATIENCE_S, eventually

STRANGER = 65534

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0 or shutil.which("unshare") is None, reason="makes namespaces"
)


@pytest.fixture
def person(installed: Installed) -> Iterator[Person]:
    with living_somewhere(installed) as person:
        yield person


@contextmanager
def namespace(person: Person, *first: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """A container whose first process is `first`: its pid out here, and the command that enters it."""
    command = ("unshare", "--pid", "--fork", "--mount-proc", "--uts", "--kill-child", *first)
    env = {**person.bare, "PATH": "/usr/bin:/bin", "HOME": str(person.home)}
    with (
        (person.home / "out").open("wb") as out,
        subprocess.Popen(
            command,
            env=env,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        ) as outer,
    ):
        try:
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
            eventually(lambda: children.read_text().split(), "it has begun")
            inner = int(children.read_text().split()[0])
            yield inner, ("nsenter", "--target", str(inner), "--pid", "--mount", "--uts")
            assert outer.wait(PATIENCE_S) == 0, "it ends as its first process does"
        finally:
            outer.kill()


@contextmanager
def container(person: Person) -> Iterator[tuple[int, tuple[str, ...]]]:
    """One whose first process is the daemon."""
    with namespace(person, str(person.installed.daemon), "run") as (inner, enter):
        env = {**person.bare, "PATH": "/usr/bin:/bin", "HOME": str(person.home)}
        eventually(lambda: person.ctl("list", env=env, around=enter).code == 0, "it answers")
        yield inner, enter


def stats_below(pid: int) -> list[str]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{one}/stat").read_text() for one in children]


@pytest.mark.night
def test_a_container_whose_first_process_is_the_daemon(person: Person) -> None:
    """`docker exec` finds it, what loses its parent is reaped, and `docker stop` ends it with its agents."""
    with container(person) as (pid, enter):
        bare = {**person.bare, "PATH": "/usr/bin:/bin", "HOME": str(person.home)}
        for name, command in (("d", ["dummy"]), ("sh", ["generic", "--name", "sh", "--", "bash", "--norc"])):
            started = person.ctl("start", *command, *(["--name", name] if name == "d" else []), env=bare, around=enter)
            assert (started.code, "no daemon was running" in started.err) == (0, False), started
        children = person.run(*enter, "cat", "/proc/1/task/1/children").out.split()
        assert str(person.pid) in children
        sent = person.ctl("send", "d", "--wait", "--", "echo hi", env=bare, around=enter)
        assert (sent.code, sent.out) == (0, "hi\n"), sent
        sent = person.ctl("send", "sh", "--wait", "--", "(sleep 0.1 & exec true); echo left", env=bare, around=enter)
        assert (sent.code, sent.out) == (0, "left\n"), sent
        assert person.ctl("stop", "sh", env=bare, around=enter).code == 0
        eventually(lambda: not any(") Z " in one for one in stats_below(pid)), f"all is reaped: {stats_below(pid)}")
        os.kill(pid, 15)
    assert not is_alive(pid)
    assert "Traceback" not in (person.home / "out").read_text()


@pytest.mark.night
def test_a_container_whose_first_process_reaps_nobody(person: Person) -> None:
    """Below the daemon nothing stays: keepers, and what one leaves that is killed. Only the daemon itself does."""
    with namespace(person, "sh", "-c", "trap 'exit 0' TERM; read _ < \"$0\"", str(fifo(person))) as (pid, enter):
        bare = {**person.bare, "PATH": "/usr/bin:/bin", "HOME": str(person.home)}

        def zombies() -> int:
            listed = person.run(*enter, "sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null").out.splitlines()
            return sum(") Z " in one for one in listed)

        for name in ("killed", "b", "c"):
            started = person.ctl("start", "generic", "--name", name, "--", "bash", "--norc", env=bare, around=enter)
            assert started.code == 0, started
            left = "(setsid sleep 1000 &); (setsid sleep 1000 &); echo left"
            sent = person.ctl("send", name, "--wait", "--", left, env=bare, around=enter)
            assert (sent.code, sent.out) == (0, "left\n"), sent
            if name == "killed":
                (program,) = (one["pid"] for one in person.ctl("list", "--json", env=bare, around=enter).json)
                killed = person.run(*enter, "sh", "-c", f"kill -9 $(cut -d' ' -f4 /proc/{program}/stat)")
                assert killed.code == 0, killed
            assert person.ctl("stop", name, env=bare, around=enter).code == 0
        eventually(lambda: zombies() == 0, "all is reaped")
        assert person.ctl("shutdown", env=bare, around=enter).code == 0
        eventually(lambda: zombies() == 1, "it has gone")
        os.kill(pid, 15)


def fifo(person: Person) -> Path:
    """Nobody ever writes to it."""
    os.mkfifo(person.home / "never")
    return person.home / "never"


@pytest.mark.night
def test_the_host_asks_the_daemon_in_the_container(person: Person) -> None:
    """They share the home: there is one daemon, and none is started beside it."""
    with container(person) as (pid, enter):
        bare = {**person.bare, "PATH": "/usr/bin:/bin", "HOME": str(person.home)}
        assert person.ctl("start", "dummy", env=bare, around=enter).code == 0
        eventually(lambda: person.ctl("list", env=person.cron).code == 0, "its socket is in the state directory")
        for env in (person.cron, person.login):
            sent = person.ctl("send", "dummy", "--wait", "--", "echo hi", env=env)
            assert "Traceback" not in sent.err, sent
            assert (sent.code, sent.out) == (0, "hi\n") or sent.code == 3, sent
            assert "no daemon was running" not in sent.err, sent
        assert person.pid < 100, "it is still the one in there"
        os.kill(pid, 15)


@pytest.mark.night
def test_a_file_system_that_is_read_only(person: Person) -> None:
    """Whatever cannot be done there says so."""
    around = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; exec "$@"')
    for verb, codes in (
        (("start", "dummy"), (3,)),
        (("send", "d", "hello"), (3,)),
        (("up",), (3,)),
        (("list",), (3,)),
        (("status",), (3,)),
        (("doctor",), (0, 1)),
        (("version",), (0,)),
    ):
        told = person.ctl(*verb, around=(*around, str(person.home)), cwd="/")
        assert "Traceback" not in told.err, (verb, told)
        assert told.code in codes, (verb, told)
    assert not person.state.exists()


@pytest.mark.night
def test_root_in_the_home_of_a_person(person: Person) -> None:
    """sudo with the person's own HOME: nothing is made there."""
    for path in (person.home, *person.home.rglob("*")):
        os.chown(path, STRANGER, STRANGER)
    before = sorted(person.home.rglob("*"))
    env = {**person.cron, "SUDO_UID": str(STRANGER), "SUDO_USER": "ann"}
    for verb in (("start", "dummy"), ("send", "d", "hello"), ("up",), ("doctor",), ("list",)):
        told = person.ctl(*verb, env=env)
        assert "Traceback" not in told.err, (verb, told)
        assert told.code in ((0, 1) if verb == ("doctor",) else (3, 6)), (verb, told)
        assert sorted(person.home.rglob("*")) == before, verb
    told = person.run(str(person.installed.daemon), "run", env=env)
    assert told.code != 0, told
    assert "sudo -H" in told.err
    assert sorted(person.home.rglob("*")) == before


@pytest.mark.night
def test_nobody_knows_where_the_home_is(person: Person, tmp_path: Path) -> None:
    """The one of whoever runs this must not be found: `getent` is asked first."""
    (tmp_path / "passwd").touch()
    (tmp_path / "nsswitch.conf").write_text("passwd: files\n")
    bind = 'mount --bind "$0/passwd" /etc/passwd; mount --bind "$0/nsswitch.conf" /etc/nsswitch.conf'
    bind += '; getent passwd 0 && exit 99; exec "$@"'
    around = ("unshare", "--mount", "sh", "-c", bind, str(tmp_path))
    nothing = {**person.bare, "PATH": "/usr/bin:/bin"}
    for verb in (("start", "dummy"), ("list",), ("doctor",), ("version",)):
        told = person.ctl(*verb, env=nothing, around=around)
        assert (told.code, "HOME is not set" in told.err, "Traceback" in told.err) == (2, True, False), told
    named = {"SYNAPSED_HOME": f"{person.home}/s", "SYNAPSED_A2A_HOME": f"{person.home}/s/a2a"}
    for verb in (("start", "dummy"), ("send", "dummy", "--wait", "--", "echo hi"), ("shutdown",)):
        told = person.ctl(*verb, env={**nothing, **named}, around=around)
        assert (told.code, "Traceback" in told.err) == (0, False), told
    assert not person.state.exists()


@pytest.mark.night
def test_two_hosts_with_networks_of_their_own(person: Person) -> None:
    """Each its names, its processes and its network, on one home: the second does not take what lives on the first."""
    assert person.ctl("start", "dummy", "--name", "d").code == 0
    program = int(str(person.ready("d")["pid"]))
    person.kill()
    other = ("unshare", "--pid", "--fork", "--mount-proc", "--uts", "--net", "sh", "-c", 'hostname b; exec "$@"', "sh")
    for verb in (("start", "dummy"), ("send", "d", "hello"), ("up",)):
        there = person.ctl(*verb, around=other)
        assert (there.code, "--take-over" in there.err, "Traceback" in there.err) == (3, True, False), there
    own = {**person.cron, "SYNAPSED_HOME": f"{person.home}/b"}
    there = person.ctl("version", "--json", env=own, around=other)
    assert there.code == 0, there
    assert is_alive(program)
    assert person.ctl("up").code == 0
