"""A real agent program under a real daemon, for tests: started through synapsectl in its own home and project."""

import contextlib
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from threading import Event, Thread
from typing import Any

import tomli_w

from tests.real.model import Model
from tests.real.programs import Prepared
from tests.real.script import expected_answer
from tests.real.terminal import Terminal
from tests.support.daemon import Ctl, Daemon

__all__ = ["EVERY", "MAIN", "RealAgent", "StartAgent", "nonce", "tasks_of"]

MAIN = ("claude", "codex", "gemini")
"""The programs that the gate runs; opencode is run by `make test-real` besides."""

EVERY = (*MAIN, "opencode")

STARTS_S = 240.0
"""By then a program has started, or begun with its first turn, also where others have most of the machine: opencode
then shows nothing for a minute."""


def nonce() -> str:
    """A word that the scripted model finds in a message, and that is nobody else's."""
    return f"nonce-{secrets.token_hex(6)}"


def tasks_of(name: str, daemon: Daemon) -> list[dict[str, Any]]:
    """The agent's tasks, but for the instructions that it was started with."""
    every: list[dict[str, Any]] = daemon.get(f"/control/tasks?agent={name}").json
    return [task for task in every if task["metadata"].get("sender", {}).get("sender_id") != "synapse-system"]


@dataclass(frozen=True, slots=True)
class RealAgent:
    """`name` is its address."""

    name: str
    daemon: Daemon
    model: Model
    prepared: Prepared
    allowing: Event = field(default_factory=Event)
    """Whether somebody answers its permission prompts."""

    @classmethod
    def start(
        cls, cli: str, daemon: Daemon, model: Model, prepared: Prepared, *options: str, ready: bool = True
    ) -> "RealAgent":
        """Start it from a shell with the program's own environment, and (`ready`) wait until it is ready."""
        env = {**daemon.env, **prepared.env}
        started = daemon.ctl("start", cli, "--cwd", str(prepared.cwd), "--json", *options, env=env)
        assert started.code == 0, started.err
        agent = cls(started.json["name"], daemon, model, prepared)
        if ready:
            daemon.ready(agent.name, patience=STARTS_S)
        return agent

    @classmethod
    def configured(
        cls, cli: str, daemon: Daemon, model: Model, prepared: Prepared, settings: Mapping[str, Any]
    ) -> "RealAgent":
        """Start `daemon` with the agent in its configuration, `settings` among it, and wait until it is ready."""
        config = {"cwd": str(prepared.cwd), "env": dict(prepared.env), "autostart": True, **settings}
        with (daemon.home / "config" / "config.toml").open("ab") as file:
            tomli_w.dump({"agents": {cli: config}}, file)
        agent = cls(cli, daemon.start(), model, prepared)
        daemon.ready(agent.name, patience=STARTS_S)
        return agent

    @property
    def pid(self) -> int:
        return int(self.daemon.agent(self.name)["pid"])

    def ask(self, message: str) -> Ctl:
        """`send --wait`; where somebody answers its prompts, the task's end, as that would be told."""
        if not self.allowing.is_set():
            return self.daemon.ctl("send", self.name, "--wait", "--", message)
        task = self.send(message)
        self.daemon.ended(task)
        return self.daemon.ctl("task", task, "--wait")

    def ask_exactly(self, message: str) -> None:
        """Send, wait, and compare with what the model said and how often it was asked."""
        answer = self.ask(message)
        assert answer.code == 0, f"{answer.err}\n{self.screen()}"
        assert answer.out == expected_answer(message) + "\n", f"{answer.out!r} {answer.err}\n{self.screen()}"

    def send(self, message: str, *options: str) -> str:
        """The task's id."""
        sent = self.daemon.ctl("send", self.name, "--json", *options, "--", message)
        assert sent.code == 0, sent.err
        task: dict[str, Any] = sent.json["task"]
        return str(task["id"])

    def tasks(self) -> list[dict[str, Any]]:
        return tasks_of(self.name, self.daemon)

    def screen(self) -> str:
        return self.daemon.ctl("screen", self.name).out

    @contextlib.contextmanager
    def attached(self, *options: str) -> Iterator[Terminal]:
        """A person's terminal on it: `synapsectl attach` in a terminal of 120 by 40."""
        argv = [sys.executable, "-m", "synapsectl", "attach", self.name, *options]
        env = {**self.daemon.env, "TERM": "xterm-256color"}
        with Terminal(argv, env=env, cwd=Path.cwd()) as terminal:
            terminal.wait(lambda: bool(terminal.screen().strip()), "the agent's screen")
            yield terminal

    def file(self, name: str) -> Path:
        """A file in its project folder."""
        return self.prepared.cwd / name

    def allow_tools(self) -> None:
        """Answer its permission prompts with yes, from now on, as a person beside it would."""
        self.allowing.set()
        Thread(target=self._allow, daemon=True).start()

    def _allow(self) -> None:
        with self.daemon.sse("/events") as events, contextlib.suppress(OSError, HTTPException):
            for event in events:
                if event["data"]["data"].get("state") == "input_required":
                    self.daemon.ctl("input", event["data"]["task"], "yes")


type StartAgent = Callable[..., RealAgent]
"""The program, then options of `synapsectl start`."""
