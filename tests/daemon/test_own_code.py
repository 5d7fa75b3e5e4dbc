"""Whatever lies in the folder where the tool, the daemon and the agents are: no code of it is run."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapsectl.earlier import Pieces, lines
from synapsectl.verbs import all_verbs
from synapsed import own_python
from tests.support.daemon import Daemon
from tests.support.shadows import Shadows

AGENT = [
    "park",
    "status",
    "screen",
    "logs",
    "diff",
    "send",
    "keys",
    "cancel",
    "restart",
    "kill",
    "input",
    "approve",
    "deny",
]
WORDS = {
    "send": ["hello"],
    "keys": ["Enter"],
    "input": ["yes"],
    "event": ["note", "hello"],
    "completion": ["bash"],
    "help": ["send"],
    "profiles": ["check", str(Path(own_python.PACKAGES, "profiles", "dummy.toml"))],
    "install": ["--dry-run"],
    "version": ["--json"],
    "history": ["hello"],
    "fleet": ["status"],
    "worktree": ["list"],
    "adopt": ["nothing"],
    "schedule": ["list"],
    "web": ["--json"],
}
"""What a verb is given besides the agent, for it to do something; nothing but its help for those left out below."""
HELP = [
    "run",
    "attach",
    "top",
    "next",
    "acp",
    "events",
    "start",
    "stop",
    "shutdown",
    "uninstall",
    "notify",
    "host",
    "devices",
    "token",
    "external",
]
"""Verbs that need a terminal, another host, or would end the daemon: their help, which loads them."""


@pytest.fixture
def shadows(tmp_path: Path) -> Shadows:
    return Shadows(tmp_path / "folder")


@pytest.fixture
def daemon(tmp_path: Path, shadows: Shadows) -> Iterator[Daemon]:
    """It is started by the first verb."""
    daemon = Daemon(tmp_path / "home")
    daemon.environ = {**os.environ, "PYTHONPATH": f":{shadows.folder}"}
    yield daemon
    daemon.environ = dict(os.environ)
    daemon.end()


def ctl(daemon: Daemon, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        own_python.command("synapsectl.__main__", *arguments),
        env=daemon.env,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.night
@pytest.mark.slow
def test_each_verb_in_a_folder_of_shadows(daemon: Daemon, shadows: Shadows, monkeypatch: pytest.MonkeyPatch) -> None:
    """PYTHONPATH names the folder too: a shell's that begins with ':' does. An agent's program gets it as it is."""
    for started in (["start", "dummy", "--name", "d"], ["start", "generic", "--name", "sh", "--", "bash", "--norc"]):
        done = ctl(daemon, shadows.folder, *started)
        assert done.returncode == 0, done.stderr
    assert shadows.imported() == []
    daemon.ready("d")
    for verb in all_verbs():
        if verb == "doctor":
            continue  # below: it takes seconds
        words = ["--help"] if verb in HELP else [*(["d"] if verb in AGENT else []), *WORDS.get(verb, [])]
        done = ctl(daemon, shadows.folder, verb, *words)
        assert "Traceback" not in done.stderr, (verb, done.stderr)
        assert shadows.imported() == [], verb
    told = daemon.ended(daemon.send("echo it is $PYTHONPATH", agent="sh"))
    assert f"it is :{shadows.folder}" in str(told)
    assert daemon.get("/agents/d/screen").status == 200
    found = ctl(daemon, shadows.folder, "doctor")
    assert "WRONG screens" not in found.stdout
    monkeypatch.chdir(shadows.folder)
    monkeypatch.setenv("PYTHONPATH", f":{shadows.folder}")
    assert lines(Pieces(20, 3, [b"hello", b"hello"])) == ["hello"]
    assert shadows.imported() == []


def test_the_installed_tool_in_a_folder_of_shadows(daemon: Daemon, shadows: Shadows) -> None:
    daemon.environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for program in ("synapsectl", "synapsed"):
        command = [str(Path(sys.executable).with_name(program)), "version", "--json"]
        done = subprocess.run(command, env=daemon.env, cwd=shadows.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert '"installed": null' not in done.stdout, "the daemon's program beside it was asked"
    assert shadows.imported() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "named", ["", "../folder:", *(pytest.param(named, marks=pytest.mark.night) for named in (":/lib", "."))]
)
@pytest.mark.parametrize("program", ["synapsectl", "synapsed"])
def test_the_installed_tool_where_pythonpath_names_the_folder_itself(
    program: str, named: str, tmp_path: Path, daemon: Daemon
) -> None:
    """All but what Python, and the script that pip writes, import before any of ours."""
    shadows = Shadows(
        tmp_path / "some", "select", "selectors", "socket", "json", "argparse", "signal", "asyncio", "structlog"
    )
    daemon.environ = {**os.environ, "PYTHONPATH": named.replace("folder", "some")}
    command = [str(Path(sys.executable).with_name(program)), "version", "--json"]
    done = subprocess.run(command, env=daemon.env, cwd=shadows.folder, capture_output=True, text=True, check=False)
    assert (done.returncode, shadows.imported()) == (0, []), done.stderr
