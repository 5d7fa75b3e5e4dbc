import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon, eventually

PROGRAM = Path(__file__).parent / "program.py"

PROFILE = r"""
description = "The scripted program"
command = "{python}"
args = ["-S", "-E", "-I", "PROGRAM"]

[ready]
quiet_ms = 60

[busy]
screen = ['^ working \(esc to stop\)']
rows = 4

[[error]]
pattern = '^!! .*'

[composer]
line = '^> ?(?P<text>.*)$'
around = '\n─{20,}[^\n]*\n>'
empty = '\n>[^\n]*\n─{20,}'
bracketed_paste = BRACKETED

[delivery]
settle_ms = 40
settle_max_ms = 2500
accept_ms = 900
clear = "\u0015"

[interrupt]
keys = "\u001b"
screen = '^\[stopped\]'

[exit]
keys = ["\u0004"]

[answer]
mode = "blocks"
start = '^● '
end = '^(?: working|─{20,}|> )'

[[prompts.dialogs]]
type = "permission"
when = ['^Allow it\?', '^\(1\) Yes', '^\(2\) No']
question = '^(?P<text>Allow it\?)'
option = '^\((?P<key>\d)\) (?P<label>.*)$'
aliases = { yes = "1", no = "2" }
"""

TOOLS = r"""
extends = "scripted"

[tools]
started = ['^◌ (?P<tool>\w+) (?P<command>.+)$']
completed = ['^✓ (?P<tool>\w+) (?P<command>.+)$']
failed = ['^✗ (?P<tool>\w+) (?P<command>.+)$']
"""


class Tui:
    """The scripted program as an agent of a real daemon."""

    def __init__(self, daemon: Daemon, name: str, log: Path) -> None:
        self.daemon = daemon
        self.name = name
        self._log = log

    def start(self, profile: str = "scripted", **tricks: Any) -> "Tui":
        own = [str(self._log), json.dumps(tricks)]
        args = own if profile.startswith("scripted") else [sys.executable, "-S", "-E", "-I", str(PROGRAM), *own]
        answer = self.daemon.post("/control/start", {"profile": profile, "name": self.name, "cwd": "/", "args": args})
        assert answer.status == 200, answer.json
        return self

    def ready(self) -> "Tui":
        self.daemon.ready(self.name)
        return self

    def send(self, text: str) -> str:
        return self.daemon.send(text, self.name)

    def ended(self, task: str) -> dict[str, Any]:
        return self.daemon.ended(task)

    def ask(self, text: str) -> str:
        """The answer's text."""
        return self.answer(self.ended(self.send(text)))

    @staticmethod
    def answer(task: dict[str, Any]) -> str:
        assert task["status"] == "completed", task
        text: str = task["artifacts"][-1]["parts"][0]["text"]
        return text

    @property
    def state(self) -> dict[str, Any]:
        return self.daemon.agent(self.name)

    def becomes(self, **wanted: Any) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            state = self.state
            return state if all(state[key] == value for key, value in wanted.items()) else None

        return eventually(look, f"{self.name} becomes {wanted}")

    def logged(self, kind: str) -> list[str]:
        """What the program says it received, in order."""
        if not self._log.exists():
            return []
        lines = [json.loads(line) for line in self._log.read_text().splitlines()]
        return [line[kind] for line in lines if kind in line]

    @property
    def submitted(self) -> list[str]:
        return self.logged("submitted")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("tui"))
    profiles = daemon.home / "config" / "profiles"
    profiles.mkdir(parents=True)
    text = PROFILE.replace("PROGRAM", str(PROGRAM))
    (profiles / "scripted.toml").write_text(text.replace("BRACKETED", "true"))
    (profiles / "scripted-plain.toml").write_text(text.replace("BRACKETED", "false"))
    (profiles / "scripted-tools.toml").write_text(TOOLS)
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
def tui(daemon: Daemon, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Tui]:
    """Not started yet."""
    name = f"t{abs(hash(request.node.name)) % 10**8}"
    tui = Tui(daemon, name, tmp_path / "received.jsonl")
    yield tui
    daemon.post(f"/control/agents/{name}/stop", {"remove": True})
