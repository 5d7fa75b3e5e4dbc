"""Real agents on another host of a person's, reached by a real ssh: written to, attached to, asked for and answered by
`NAME@HOST`, as those here are."""

import getpass
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.script import expected_answer
from tests.support.daemon import NO_PORTS, Daemon, eventually
from tests.support.pane import UNREAD, Pane
from tests.support.sshd import Sshd, needs_ssh, synapsectl_in

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(900),
    needs_ssh,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]

PROGRAMS = os.environ.get("HOSTS_PROGRAMS", " ".join(EVERY)).split()


@pytest.fixture
def there(private_dir: Path) -> Iterator[Daemon]:
    """The daemon of the other host."""
    daemon = Daemon(private_dir / "there").start()
    yield daemon
    daemon.end()


@pytest.fixture
def here(private_dir: Path, there: Daemon) -> Iterator[Daemon]:
    """The daemon of the person's own, which reaches the other as `box`."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environ = f"SYNAPSED_HOME={there.home} SYNAPSED_A2A_HOME={there.home}/a2a"
    sshd = Sshd(private_dir, "127.0.0.1", environ, port=port)
    sshd.prepare()
    sshd.trust()
    sshd.start()
    daemon = Daemon(private_dir / "here", config=f'{NO_PORTS}[hosts]\nname = "laptop"\nssh = {sshd.ssh}\n').start()
    target = f"ssh://{getpass.getuser()}@127.0.0.1:{port}"
    added = daemon.ctl("host", "add", "box", target, "--synapsectl", str(synapsectl_in(private_dir)))
    assert added.code == 0, added.err
    eventually(lambda: daemon.get("/hosts").json[0]["state"] == "up", "the host is up", patience=180.0)
    yield daemon
    daemon.end()
    sshd.stop()


@pytest.fixture
def pane(here: Daemon, private_dir: Path) -> Iterator[Pane]:
    path = f"{Path(sys.executable).parent}:{here.env['PATH']}"
    with Pane(private_dir, {**here.env, "PATH": path}, cols=120, rows=40) as pane:
        yield pane


@pytest.mark.parametrize("cli", PROGRAMS)
def test_an_agent_of_another_host_is_as_one_of_this(
    cli: str, there: Daemon, here: Daemon, pane: Pane, model: Model, cli_home: CliHome
) -> None:
    agent = RealAgent.start(cli, there, model, cli_home(cli))
    name = f"{agent.name}@box"

    message = f"{nonce()} [[answer:markup]]"
    answer = here.ctl("send", name, "--wait", message)
    assert (answer.code, answer.out) == (0, expected_answer(message) + "\n"), answer.err

    typed = nonce()
    pane.run("synapsectl", "attach", name)
    pane.when(lambda shown: "shell$" not in shown and bool(shown.strip()), "the agent's screen")
    pane.type(f"{typed} say: Heard from afar.")
    pane.until(typed)
    pane.press("Enter")
    pane.until("Heard from afar.")
    eventually(lambda: there.agent(agent.name)["activity"] == "ready", "its turn has ended", patience=240.0)
    pane.press("C-]", "d")
    pane.until("shell$")

    words = {verb: nonce() for verb in ("approve", "deny", "key")}
    for verb, word in words.items():
        sent = here.ctl("send", name, "--json", f"{word} [[tool:shell-ask:touch {word}]] say: Told.")
        assert sent.code == 0, sent.err
        item = eventually(
            lambda: next((item for item in here.ctl("inbox", "--json").json if item["agent"] == name), None),
            f"{name} asks here",
            patience=240.0,
        )
        assert item["kind"] == "permission"
        assert word in f"{item['question']} {item['command']}", item
        if verb == "key":
            pane.run("synapsectl", "inbox")
            pane.until(f"> {name}", gone=[UNREAD])
            pane.press("y")
        else:
            answered = here.ctl(verb, name)
            # On a busy machine the program may take longer than it is waited for.
            assert answered.code == 0 or "later the program asks the same" in answered.err, f"{verb}: {answered.err}"
        task = there_task(there, agent.name, word)
        eventually(
            lambda task=task: there.task(task)["status"] in ("completed", "failed", "canceled"),  # type: ignore[misc]
            f"{verb}: the task has ended; {pane.screen}",
            patience=240.0,
        )
        if verb == "key":
            pane.press("q")
            pane.until("shell$")
        assert agent.file(word).exists() is (verb != "deny"), verb


def there_task(there: Daemon, name: str, word: str) -> str:
    (task,) = [task for task in there.get(f"/control/tasks?agent={name}").json if word in str(task)]
    return str(task["id"])
