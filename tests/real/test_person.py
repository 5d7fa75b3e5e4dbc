"""What a person has of several real agents at once: who needs me, in one place, answered with one key."""

import sys
from pathlib import Path

import pytest
import tomli_w

from tests.real.agents import MAIN, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.terminal import Terminal
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

BROKEN = {
    "profile": "generic",
    "args": ["sh", "-c", "echo it cannot begin; exit 3"],
    "autostart": True,
    "restart": {"initial": 0.1, "maximum": 0.1, "limit": 2},
}


def in_inbox(daemon: Daemon) -> dict[str, str]:
    """The kind of what waits, by agent."""
    return {item["agent"]: item["kind"] for item in daemon.ctl("inbox", "--json").json}


def test_three_that_ask_one_that_is_limited_and_one_that_crashes(
    private_dir: Path, model: Model, cli_home: CliHome
) -> None:
    daemon = Daemon(private_dir / "synapsed").start()
    try:
        agents = [RealAgent.start(cli, daemon, model, cli_home(cli)) for cli in MAIN]
        limited = RealAgent.start("claude", daemon, model, cli_home("claude"), "--name", "limited")
        words = {agent.name: nonce() for agent in agents}
        for agent in agents:
            agent.send(f"{words[agent.name]} [[tool:shell-ask:touch {words[agent.name]}]] say: Made.")
        asking = dict.fromkeys(words, "permission")
        eventually(lambda: in_inbox(daemon) == asking, f"three ask: {asking}")
        shown = {item["agent"]: item for item in daemon.ctl("inbox", "--json").json}
        for name, word in words.items():
            assert f"touch {word}" in f"{shown[name]['command']} {shown[name]['question']}", shown[name]
            assert shown[name]["options"], shown[name]

        limited.send(f"[[limit:7200]] {nonce()}")
        eventually(lambda: in_inbox(daemon).get("limited") == "limit", "the limit is shown")
        with (daemon.home / "config" / "config.toml").open("ab") as file:
            tomli_w.dump({"agents": {"broken": BROKEN}}, file)
        assert daemon.ctl("reload").code == 0
        eventually(lambda: in_inbox(daemon).get("broken") == "crash_loop", "the crash loop is shown")

        env = {**daemon.env, "TERM": "xterm-256color"}
        with Terminal([sys.executable, "-m", "synapsectl", "inbox"], env=env, cwd=Path.cwd()) as terminal:
            for name in (*words, "limited", "broken"):
                terminal.wait(lambda name=name: name in terminal.screen(), f"{name} has a row")  # type: ignore[misc]
            terminal.send(b"g")
            for name in shown:  # the oldest first, as its rows
                terminal.send(b"y")
                eventually(
                    lambda name=name: in_inbox(daemon).get(name) != "permission",
                    f"{name} is answered {terminal.screen()}",
                )  # type: ignore[misc]
            for agent in agents:
                word = words[agent.name]
                eventually(agent.file(word).exists, f"{agent.name} made its file")
            eventually(
                lambda: {kind for name, kind in in_inbox(daemon).items() if name in words} == {"finished"},
                "nobody has read the answers yet",
            )
            assert "it cannot begin" in terminal.screen()
            terminal.send(b"q")
            assert terminal.wait_exit() == 0
        for name in words:
            (task,) = [task for task in daemon.get(f"/control/tasks?agent={name}").json if words[name] in str(task)]
            assert daemon.ctl("task", task["id"]).out.strip().endswith("Made.")
        eventually(lambda: in_inbox(daemon) == {"limited": "limit", "broken": "crash_loop"}, "what was read is gone")
    finally:
        daemon.end()
