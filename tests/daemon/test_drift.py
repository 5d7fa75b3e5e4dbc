"""A program of another version than its profile knows, in a real terminal: what the person is told, and where."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually
from tests.support.threaded import ThreadedDaemon, in_a_thread, real_one

PROGRAM = r"""#!/bin/sh
[ "$1" = --version ] && { echo "tool 1.9 (of a fake)"; exit; }
[ "$1" = --new ] && { echo "error: unknown option '--new'" >&2; exit 1; }
PS1='tool> ' exec sh -i
"""

PROFILE = """
command = "{program}"
args = ["--new"]
verified = "2.0"
version = {{}}
[composer]
at_cursor = true
line = '^tool> (?P<text>.*)$'
{variant}
"""


@pytest.fixture
def daemon(tmp_path: Path, kind: type[Daemon]) -> Iterator[Daemon]:
    program = tmp_path / "tool"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    daemon = kind(tmp_path / "home", config=ANY_PORTS)
    profiles = daemon.home / "config" / "profiles"
    profiles.mkdir(parents=True)
    variant = '[[versions]]\nbelow = "2.0"\nargs = []\n'
    (profiles / "knows.toml").write_text(PROFILE.format(program=program, variant=variant))
    (profiles / "falls.toml").write_text(PROFILE.format(program=program, variant=""))
    daemon.start()
    yield daemon
    daemon.end()


@in_a_thread
def test_an_option_that_the_version_does_not_know_is_left_out(daemon: ThreadedDaemon) -> None:
    daemon.programs.versions["knows"] = "1.9"
    started = daemon.ctl("start", "knows")
    assert (started.code, started.err) == (0, "synapsectl: knows: profile verified on 2.0, this is 1.9\n")
    daemon.ready("knows")
    assert daemon.agent("knows")["version"] == "1.9"
    assert "this is 1.9" in daemon.ctl("list").err
    assert "this is 1.9" in daemon.ctl("status", "knows").out
    assert daemon.programs.profiles[-1].args == []


@real_one
@pytest.mark.night
def test_the_version_that_a_real_program_tells(daemon: Daemon) -> None:
    started = daemon.ctl("start", "knows")
    assert (started.code, started.err) == (0, "synapsectl: knows: profile verified on 2.0, this is 1.9\n")
    daemon.ready("knows")
    assert daemon.agent("knows")["version"] == "1.9"
    assert "this is 1.9" in daemon.ctl("list").err
    assert "this is 1.9" in daemon.ctl("status", "knows").out


@real_one
def test_a_program_that_refuses_an_option_is_failed_at_once_in_its_words(daemon: Daemon) -> None:
    started = daemon.ctl("start", "falls")
    words, drift = "error: unknown option '--new' (exit code 1)", "profile verified on 2.0, this is 1.9"
    failed = eventually(lambda: (a := daemon.agent("falls"))["state"] == "failed" and a, "it is failed")
    assert failed["restarts"] == 0
    assert failed["error"].startswith(words)
    for said in (started.err, daemon.ctl("list").err, daemon.ctl("status", "falls").out):
        assert words in said
        assert drift in said
