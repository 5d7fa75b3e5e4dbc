"""`make demo`: a daemon of its own, two agents, a message from one to the other, and a clean end.

Everything runs under a temporary SYNAPSED_HOME, on ports of its own; nothing of yours is touched. The agents are those
of claude, codex, gemini and opencode that are on PATH and come up ready (a program that first wants a login or your
trust is left out), else the scripted `dummy`.
"""

import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Any

REAL = ("claude", "codex", "gemini", "opencode")
READY_WITHIN_S = 15.0
"""For all of them together: they come up side by side."""
ANSWER_WITHIN_S = 20
QUESTION = "Say in one sentence what you can do."
BIN = Path(sys.executable).parent
COLUMNS = min(shutil.get_terminal_size().columns, 120)


class Demo:
    def __init__(self, home: Path) -> None:
        own = {key: value for key, value in os.environ.items() if not key.startswith("SYNAPSE")}
        self._env = {
            **own,
            "SYNAPSED_HOME": str(home),
            "SYNAPSED_A2A_HOME": str(home / "a2a"),
            "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }
        config = home / "config"
        config.mkdir(parents=True)
        # Port 0: whatever is free, so that a daemon of yours is not in the way.
        (config / "config.toml").write_text('[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n')

    def run(self) -> None:
        self.section("Two agents, each in a terminal of its own")
        first, second = self.two_agents()
        self.show("list")
        self.section(f"{first} sends {second} a message and waits for the answer")
        if self.ask(first, second) != 0:
            print(f"\n{second} gave no answer (is it logged in, and online?); so the scripted agent is asked instead.")
            second = self.scripted("scripted")
            if self.ask(first, second) != 0:
                raise SystemExit("demo: there was no answer")
        self.show("tasks", second)

    def two_agents(self) -> list[str]:
        """The names of two agents that are ready."""
        real = [profile for profile in REAL if shutil.which(profile) and self.show("start", profile) == 0]
        ready = self.ready_ones(real)
        for name in real:
            if name not in ready:
                print(f"\n{name} does not come up by itself (it may want a login, or your trust): left out.")
                self.quietly("stop", name, "--remove")
        while len(ready) < 2:
            ready.append(self.scripted(f"scripted{len(ready) + 1}"))
        return ready[:2]

    def scripted(self, name: str) -> str:
        self.show("start", "dummy", "--name", name)
        if not self.ready_ones([name]):
            raise SystemExit("demo: the scripted agent did not come up")
        return name

    def ready_ones(self, names: list[str]) -> list[str]:
        """Those that become ready, waited for together; who asks for something first does not."""
        deadline = time.monotonic() + READY_WITHIN_S
        settled: dict[str, bool] = {}
        while len(settled) < len(names) and time.monotonic() < deadline:
            for agent in self.asked("list"):
                ended = agent["state"] not in ("starting", "running")
                if agent["name"] in names and (ended or agent["activity"] in ("ready", "waiting")):
                    settled[agent["name"]] = agent["activity"] == "ready"
            time.sleep(0.1)
        return [name for name in names if settled.get(name)]

    def ask(self, sender: str, receiver: str) -> int:
        return self.show(
            "send", receiver, "--from", sender, "--wait", "--timeout", str(ANSWER_WITHIN_S), "--", QUESTION
        )

    def end(self) -> None:
        self.section("The end: the agents, then the daemon; nothing stays")
        self.show("shutdown")

    # --- synapsectl ---

    def section(self, title: str) -> None:
        print(f"\n\n# {title}", flush=True)

    def show(self, *arguments: str) -> int:
        """Run a verb in a terminal, print what a person would see there, and give its exit code."""
        print(f"\n$ synapsectl {' '.join(self._quoted(argument) for argument in arguments)}", flush=True)
        ours, its = pty.openpty()
        termios.tcsetwinsize(its, (24, COLUMNS))
        process = subprocess.Popen([BIN / "synapsectl", *arguments], env=self._env, stdin=its, stdout=its, stderr=its)
        os.close(its)
        said = b""
        while piece := _read(ours):
            said += piece
        os.close(ours)
        print(said.decode(errors="replace").replace("\r\n", "\n"), end="", flush=True)
        return process.wait()

    def asked(self, *arguments: str) -> Any:
        """What a verb prints with `--json`."""
        return json.loads(self.quietly(*arguments, "--json"))

    def quietly(self, *arguments: str) -> str:
        done = subprocess.run(
            [BIN / "synapsectl", *arguments], env=self._env, text=True, stdout=subprocess.PIPE, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"demo: synapsectl {arguments[0]} ended with {done.returncode}")
        return done.stdout

    @staticmethod
    def _quoted(argument: str) -> str:
        return f'"{argument}"' if " " in argument else argument


def _read(terminal: int) -> bytes:
    """What came; nothing once the program's side is closed (Linux tells it as an error)."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="synapsed-demo-") as home:
        demo = Demo(Path(home))
        try:
            demo.run()
        finally:
            demo.end()
    print(
        "\n\n# Now yours\n\n"
        ". .venv/bin/activate               # synapsectl on PATH\n"
        "synapsectl start dummy             # or claude, codex, gemini, opencode; starts the daemon too\n"
        'synapsectl send dummy "Hello" --wait\n'
        "synapsectl attach dummy            # its own screen; ctrl-] leaves it\n"
        "synapsectl shutdown"
    )


if __name__ == "__main__":
    main()
