"""A program under way in a plain terminal, before the scripted model; and homes without what `prepare` gives them."""

import contextlib
import http.client
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.real import netns, shipped
from tests.real.looks import LAUNCHES, LOOKS, SERVER_PORT, Look
from tests.real.model import Model
from tests.real.programs import Prepared, of_folder, prepare
from tests.real.terminal import Terminal

__all__ = ["Session", "launched", "untrusted", "without_account"]


@dataclass
class Session:
    """A program under way in a scenario."""

    cli: str
    model: Model
    prepared: Prepared
    terminal: Terminal
    hooks: Path
    events: list[tuple[float, str]] = field(default_factory=list)

    @property
    def look(self) -> Look:
        return LOOKS[self.cli]

    def mark(self, label: str) -> None:
        self.terminal.mark(label)

    def ready(self) -> None:
        """Waits for the first prompt."""
        self.terminal.wait_screen(self.look.ready, timeout=120)
        self.terminal.settle(0.6, at_most=6)
        self.mark("ready")

    def submit(self, text: str) -> None:
        self.terminal.submit(text)
        self.mark("submitted")

    def settle(self, label: str) -> None:
        self.terminal.settle(0.8, at_most=4)
        self.mark(label)

    def see(self, pattern: str, label: str, *, timeout: float = 40.0) -> None:
        self.terminal.wait_screen(pattern, timeout=timeout)
        self.mark(label)

    def served(self, containing: str, count: int = 1) -> None:
        """Waits until the model has answered that many requests of the turn."""
        self.model.wait_for(
            lambda requests: (
                sum(r.outcome is not None and not r.is_side_call and containing in r.user for r in requests) >= count
            )
        )


@contextlib.contextmanager
def launched(
    cli: str,
    base: Path,
    *,
    extra: Sequence[str] = (),
    configure: Callable[[Prepared], None] | None = None,
    programs_in: Path | None = None,
) -> Iterator[Session]:
    """The program before a model of its own, with its reports on, in folders below `base`. `programs_in`: a folder
    with another version of it."""
    hooks = base / "hooks"
    hooks.mkdir(parents=True, mode=0o700)
    with Model() as model:
        known = shipped.prepare if cli in shipped.PROGRAMS else prepare
        prepared = known(cli, base / "home", base / "project", model.url)
        if programs_in is not None:
            prepared = of_folder(prepared, programs_in)
        if configure is not None:
            configure(prepared)
        args, env = LAUNCHES[cli](hooks, prepared.home)
        netns.require()
        argv = [*prepared.argv, *args, *extra]
        with Terminal(argv, env={**prepared.env, **env}, cwd=prepared.cwd) as terminal:
            session = Session(cli, model, prepared, terminal, hooks)
            if cli == "opencode":
                threading.Thread(target=_follow_events, args=(session,), daemon=True).start()
            yield session


def _follow_events(session: Session) -> None:
    """Collects the lines of opencode's event stream until it ends.

    A connection made while the server starts may be accepted and never answered, hence the time limit at first.
    """
    while not session.terminal.ended:
        connection = http.client.HTTPConnection("127.0.0.1", SERVER_PORT, timeout=1)
        try:
            connection.connect()
            socket = connection.sock
            connection.request("GET", "/event")
            stream = connection.getresponse()
            socket.settimeout(None)
            for line in stream:
                if line.startswith(b"data:"):
                    session.events.append((session.terminal.now, line[5:].decode().strip()))
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
        finally:
            connection.close()


def untrusted(prepared: Prepared) -> None:
    """Takes back what makes the project folder trusted."""
    claude, codex = prepared.home / ".claude.json", prepared.home / ".codex" / "config.toml"
    if claude.exists():
        claude.write_text(json.dumps({**json.loads(claude.read_text()), "projects": {}}))
    if codex.exists():
        codex.write_text(codex.read_text().partition("[projects")[0])
        subprocess.run(["git", "init", "-q"], cwd=prepared.cwd, check=True)  # it asks in repositories alone
    if prepared.cli == "gemini":
        settings = prepared.home / ".gemini" / "settings.json"
        config = json.loads(settings.read_text())
        config["security"]["folderTrust"] = {"enabled": True}
        settings.write_text(json.dumps(config))
        del prepared.env["GEMINI_CLI_TRUST_WORKSPACE"]  # type: ignore[attr-defined]


def without_account(prepared: Prepared) -> None:
    """Takes back what it signs in with."""
    claude, codex = prepared.home / ".claude.json", prepared.home / ".codex" / "config.toml"
    if claude.exists():
        claude.write_text(json.dumps({**json.loads(claude.read_text()), "customApiKeyResponses": {}}))
    if codex.exists():
        lines = codex.read_text().splitlines()
        codex.write_text("\n".join(line for line in lines if not line.startswith("model")) + "\n")
    settings = prepared.home / ".gemini" / "settings.json"
    if settings.exists():
        config = json.loads(settings.read_text())
        del config["security"]["auth"]
        settings.write_text(json.dumps(config))
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "SCRIPTED_API_KEY"):
        prepared.env.pop(name, None)  # type: ignore[attr-defined]
