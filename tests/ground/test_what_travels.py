"""What of a shell reaches the programs that are started there, and what was never meant for them."""

import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, living_somewhere
from tests.support.daemon import Ctl

pytestmark = pytest.mark.night

ON_A_TERMINAL = (
    sys.executable,
    "-c",
    "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))",
)

AROUND_THE_SHELL = {
    "NODE_OPTIONS": "--inspect-brk", "CLAUDECODE": "1", "NVIM": "/run/nvim.sock", "VSCODE_IPC_HOOK_CLI": "/run/code",
    "SUDO_USER": "ann", "SUDO_UID": "1000", "NOTIFY_SOCKET": "/run/notify", "INVOCATION_ID": "0" * 32,
}  # fmt: skip
"""Set by a tool for its one child."""

ON_PURPOSE = {"VIRTUAL_ENV": "/venvs/other", "PYTHONPATH": "/lib/mine", "BASH_ENV": "/nowhere/env.sh", "MINE": "a b"}

_numbers = count()


@pytest.fixture(scope="module")
def person(installed: Installed) -> Iterator[Person]:
    with living_somewhere(installed) as person:
        person.with_dummy("d")
        yield person


def shell(person: Person, *, env: Mapping[str, str] | None = None, around: Sequence[str] = ()) -> str:
    """The name of an agent that was started so: a shell."""
    name = f"sh{next(_numbers)}"
    started = person.ctl("start", "generic", "--name", name, "--", "bash", "--norc", env=env, around=around)
    assert started.code == 0, started
    person.ready(name)
    return name


def said(person: Person, agent: str, command: str) -> str:
    sent = person.ctl("send", agent, "--wait", "--", command)
    assert sent.code == 0, sent
    return sent.out.strip()


def seen(person: Person, agent: str, names: Mapping[str, str]) -> dict[str, str]:
    """Those of the variables `names` that the program has."""
    told = {name: said(person, agent, f'echo "[${{{name}-}}]"').strip("[]") for name in names}
    return {name: value for name, value in told.items() if value}


@pytest.mark.parametrize("mask", ["0077", "0002", "0027"])
def test_a_umask(mask: str, person: Person) -> None:
    agent = shell(person, around=("sh", "-c", f'umask {mask}; exec "$@"', "sh"))
    assert said(person, agent, "umask") == mask
    assert person.misplaced() == [], "our own files are 0600 all the same"


def test_a_priority(person: Person) -> None:
    agent = shell(person, around=("nice", "-n", "7"))
    assert said(person, agent, "nice") == "7"


def test_limits(person: Person) -> None:
    agent = shell(person, around=("sh", "-c", 'ulimit -S -n 512; ulimit -S -c 0; ulimit -S -f 100000; exec "$@"', "sh"))
    assert said(person, agent, "echo $(ulimit -S -n) $(ulimit -S -c)") == "512 0"


def test_what_a_person_sets_on_purpose(person: Person) -> None:
    agent = shell(person, env={**person.login, **ON_PURPOSE})
    assert seen(person, agent, ON_PURPOSE) == ON_PURPOSE


def test_what_tools_set_for_their_one_child(person: Person) -> None:
    own = {"VIRTUAL_ENV": str(person.installed.folder)}
    agent = shell(person, env={**person.login, **AROUND_THE_SHELL, **own})
    assert seen(person, agent, {**AROUND_THE_SHELL, **own}) == {}


def in_a_hook(person: Person, folder: Path, command: str) -> Ctl:
    """Runs `command`, in which `synapsectl` is the tool, in the hook before a commit."""
    folder.mkdir()
    hook = folder / "pre-commit"
    hook.write_text(f'#!/bin/sh\nexport PATH="{person.installed.bin}:$PATH"\n{command}\n')
    hook.chmod(0o700)
    script = (
        "git init -q one && cd one && git config core.hooksPath .. && git config user.name one && "
        "git config user.email one@example.org && echo 1 > one && git add one && git commit -q -m one one"
    )
    return person.run("sh", "-c", script, cwd=folder)


def test_a_hook_of_git_starts_an_agent(person: Person, tmp_path: Path) -> None:
    """It would commit to that repository, wherever it works."""
    done = in_a_hook(person, tmp_path / "f", "synapsectl start generic --name hooked -- bash --norc")
    assert done.code == 0, done
    person.ready("hooked")
    assert said(person, "hooked", "echo $(env | grep -c -E '^GIT_(DIR|INDEX_FILE|WORK_TREE|PREFIX)=')") == "0"


def test_a_daemon_that_is_started_by_a_tool(installed: Installed, tmp_path: Path) -> None:
    """Neither a hook's variables nor a service's business are its own; no service is told that it is ready."""
    with living_somewhere(installed) as person, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(person.home / "notify"))
        manager.setblocking(False)
        notify = f"export NOTIFY_SOCKET={person.home}/notify WATCHDOG_USEC=1000000"
        done = in_a_hook(person, tmp_path / "f", f"{notify}\nsynapsectl start dummy")
        assert done.code == 0, done
        names = {line.partition("=")[0] for line in Path(f"/proc/{person.pid}/environ").read_text().split("\0")}
        found = {
            name for name in names if name.startswith(("GIT_DIR", "GIT_INDEX", "GIT_WORK", "NOTIFY_", "WATCHDOG_"))
        }
        assert found == set()
        with pytest.raises(BlockingIOError):
            manager.recv(1000)


def test_an_ssh_agent_of_an_older_login(person: Person) -> None:
    """`restart` in a person's shell brings what connects it; cron's brings nothing and takes nothing away."""
    agent = shell(person, env={**person.login, "SSH_AUTH_SOCK": "/run/first"})
    assert said(person, agent, "echo $SSH_AUTH_SOCK") == "/run/first"
    newer = {**person.login, "SSH_AUTH_SOCK": "/run/second"}
    for env, around, expected in (
        (newer, ON_A_TERMINAL, "/run/second"),
        (person.login, ON_A_TERMINAL, "/run/second"),
        (person.cron, (), "/run/second"),
        ({**person.cron, "SSH_AUTH_SOCK": "/run/third"}, (), "/run/second"),
    ):
        restarted = person.ctl("restart", agent, env=env, around=around)
        assert restarted.code == 0, restarted
        person.ready(agent)
        assert said(person, agent, "echo $SSH_AUTH_SOCK") == expected
