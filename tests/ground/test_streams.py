"""What a caller leaves open, closed, full or blocked."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, is_alive, living_somewhere
from tests.support.daemon import Ctl, eventually

BLOCKED = """import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.argv[1], sys.argv[1:])"""


def redirected(to: str) -> tuple[str, ...]:
    return ("sh", "-c", f'exec "$@" {to}', "sh")


@pytest.fixture(scope="module")
def person(installed: Installed) -> Iterator[Person]:
    with living_somewhere(installed) as person:
        person.with_dummy("d")
        yield person


@pytest.mark.parametrize(
    ("to", "out"),
    [("<&- >&- 2>&-", ""), (">&-", ""), pytest.param("2>&-", "hi\n", marks=pytest.mark.night)],
)
def test_streams_that_are_closed(to: str, out: str, person: Person) -> None:
    sent = person.ctl("send", "d", "--wait", "--", "echo hi", around=redirected(to))
    assert (sent.code, sent.out, "Traceback" in sent.err) == (0, out, False), sent


@pytest.mark.parametrize(
    "verb",
    [
        ("send", "d", "--wait", "--", "echo hi"),
        pytest.param(("send", "d", "echo hi"), marks=pytest.mark.night),
        pytest.param(("list", "--json"), marks=pytest.mark.night),
        pytest.param(("list",), marks=pytest.mark.night),
        pytest.param(("status", "d"), marks=pytest.mark.night),
        pytest.param(("logs", "d"), marks=pytest.mark.night),
        pytest.param(("events",), marks=pytest.mark.night),
        pytest.param(("version",), marks=pytest.mark.night),
        pytest.param(("help",), marks=pytest.mark.night),
        pytest.param(("send", "--help"), marks=pytest.mark.night),
        pytest.param(("completion", "bash"), marks=pytest.mark.night),
    ],
    ids=" ".join,
)
def test_an_output_for_which_there_is_no_room(verb: tuple[str, ...], person: Person) -> None:
    """It is said, and told by the exit code: a script would take an empty answer for one."""
    told = person.ctl(*verb, around=redirected(">/dev/full"))
    assert (told.code, "Traceback" in told.err) == (74, False), told
    assert "the output cannot be written: No space left on device" in told.err
    assert "Exception ignored" not in told.err


def test_remarks_for_which_there_is_no_room(person: Person) -> None:
    told = person.ctl("send", "d", "--wait", "--", "echo hi", around=redirected("2>/dev/full"))
    assert (told.code, told.out) == (0, "hi\n"), told


@pytest.mark.night
@pytest.mark.parametrize("program", ["synapsectl", "synapsed"])
@pytest.mark.parametrize("to", ["<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
def test_a_daemon_that_is_started_with_such_streams(program: str, to: str, installed: Installed) -> None:
    with living_somewhere(installed) as person:
        if program == "synapsectl":
            assert person.ctl("start", "dummy", around=redirected(to)).code in (0, 74)
        else:
            person.run("sh", "-c", f'"$@" >/dev/null 2>/dev/null {to} &', "sh", str(installed.daemon), "run")
            eventually(lambda: person.ctl("list").code == 0, "it answers")
            assert person.ctl("start", "dummy").code == 0
        person.ready("dummy")
        sent = person.ctl("send", "dummy", "--wait", "--", "echo hi")
        assert (sent.code, sent.out) == (0, "hi\n"), sent
        files = {number: str(Path(f"/proc/{person.pid}/fd/{number}").readlink()) for number in range(3)}
        assert not any("socket:" in one or ".db" in one for one in files.values()), files


@pytest.mark.night
def test_signals_that_were_blocked(installed: Installed) -> None:
    """They are the caller's; a daemon that heeds none could not be ended, and neither could an agent's program."""
    with living_somewhere(installed) as person:
        blocked = (str(installed.python), "-c", BLOCKED)
        assert person.ctl("start", "generic", "--name", "sh", "--", "bash", "--norc", around=blocked).code == 0
        person.ready("sh")
        told = person.ctl("send", "sh", "--wait", "--", "grep SigBlk /proc/self/status", around=blocked)
        assert told.out.split()[-1].strip("0") == "", told
        pid = person.pid
        os.kill(pid, signal.SIGTERM)
        eventually(lambda: not is_alive(pid), "it has ended")


@pytest.mark.night
def test_nothing_of_the_caller_stays_open(installed: Installed, tmp_path: Path) -> None:
    """Neither in the daemon, nor in keepers, nor in programs."""
    with living_somewhere(installed) as person:
        held = tmp_path / "held"
        around = ("sh", "-c", 'exec 7>"$0" 8>"$0" 9>"$0"; exec "$@"', str(held))
        assert person.ctl("start", "dummy", around=around).code == 0
        agent = person.ready("dummy")["pid"]
        holding = [
            process.name
            for process in Path("/proc").iterdir()
            if process.name.isdigit() and str(held) in _open_files(process)
        ]
        assert (holding, is_alive(int(str(agent)))) == ([], True)


def _open_files(process: Path) -> list[str]:
    try:
        return [str(one.readlink()) for one in (process / "fd").iterdir()]
    except OSError:
        return []


def by_terminal(person: Person, tmp_path: Path, *command: str) -> Ctl:
    """Runs the tool in a terminal of `command`, which is given a script to run."""
    script = tmp_path / "call.sh"
    script.write_text(
        f'#!/bin/sh\ncd "{tmp_path}"; "{person.installed.tool}" send d --wait -- "echo in $TERM" > out 2> err\n'
        f'echo $? > "{tmp_path}/code.part"\nmv "{tmp_path}/code.part" "{tmp_path}/code"\n'
    )
    script.chmod(0o700)
    done = person.run(*command, str(script))
    assert done.code == 0, done
    eventually((tmp_path / "code").exists, "it has ended")
    told = [(tmp_path / name).read_text() for name in ("code", "out", "err")]
    return Ctl(int(told[0]), told[1], told[2])


@pytest.mark.night
def test_inside_tmux(person: Person, tmp_path: Path) -> None:
    server = str(tmp_path / "tmux")
    try:
        told = by_terminal(person, tmp_path, "tmux", "-S", server, "-f", os.devnull, "new-session", "-d")
    finally:
        person.run("tmux", "-S", server, "kill-server")
    assert (told.code, told.out, "Traceback" in told.err) == (0, "in tmux-256color\n", False), told


@pytest.mark.night
@pytest.mark.skipif(sys.platform != "linux", reason="its options are those of Linux")
def test_inside_script(person: Person, tmp_path: Path) -> None:
    told = by_terminal(person, tmp_path, "sh", "-c", 'exec script -qec "$0" /dev/null')
    assert (told.code, told.out, "Traceback" in told.err) == (0, "in xterm-256color\n", False), told


@pytest.mark.night
def test_the_shell_of_an_agent(person: Person) -> None:
    """The same daemon, by its own environment."""
    assert person.ctl("start", "generic", "--name", "sh", "--", "bash", "--norc", env=person.cron).code == 0
    person.ready("sh")
    pid = person.pid
    sent = person.ctl("send", "sh", "--wait", "--", "synapsectl send d --wait -- echo from there 2>/dev/null")
    assert (sent.code, sent.out) == (0, "from there\n"), sent
    started = person.ctl(
        "send", "sh", "--wait", "--", "env -u XDG_RUNTIME_DIR synapsectl start dummy --name e; echo $?"
    )
    assert (started.code, "no daemon was running" in started.out) == (0, False), started
    assert person.pid == pid
