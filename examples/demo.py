"""`make demo`: a daemon of its own, two agents, a message from one to the other, and a clean end.

Everything runs under a temporary SYNAPSED_HOME, on ports of its own; nothing of yours is touched. The agents are those
of claude, codex, gemini and opencode that are on PATH and come up ready (a program that first wants a login or your
trust is left out), else the scripted `dummy`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REAL = ("claude", "codex", "gemini", "opencode")
READY_WITHIN_S = 20.0
ANSWER_WITHIN_S = 60
BIN = Path(sys.executable).parent


class Demo:
    def __init__(self, home: Path) -> None:
        self._env = {
            **os.environ,
            "SYNAPSED_HOME": str(home),
            "SYNAPSED_A2A_HOME": str(home / "a2a"),
            "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }
        config = home / "config"
        config.mkdir(parents=True)
        # Port 0: whatever is free, so that a daemon of yours is not in the way.
        (config / "config.toml").write_text('[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n')

    def ctl(self, *arguments: str, show: bool = True, check: bool = True) -> str:
        if show:
            print(f"\n$ synapsectl {' '.join(arguments)}", flush=True)
        done = subprocess.run(
            [BIN / "synapsectl", *arguments], env=self._env, text=True, stdout=subprocess.PIPE, check=False
        )
        if check and done.returncode != 0:
            raise SystemExit(f"synapsectl {arguments[0]} ended with {done.returncode}")
        if show and done.stdout:
            print(done.stdout, end="", flush=True)
        return done.stdout

    def start_ready(self, profile: str, *arguments: str) -> str | None:
        """The agent's name once it is ready; None where it does not come up by itself."""
        name = json.loads(self.ctl("start", profile, "--json", *arguments))["name"]
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            status = json.loads(self.ctl("status", name, "--json", show=False))
            if status["activity"] == "ready":
                return name
            if status["activity"] == "waiting" or status["state"] in ("failed", "backoff", "exited"):
                break
            time.sleep(0.1)
        print(f"{name} does not come up by itself (it may want a login, or your trust): left out")
        self.ctl("stop", name, "--remove", show=False)
        return None

    def run(self) -> None:
        agents: list[str] = []
        for profile in REAL:
            if len(agents) < 2 and shutil.which(profile) and (name := self.start_ready(profile)) is not None:
                agents.append(name)
        while len(agents) < 2:
            name = self.start_ready("dummy", "--name", f"dummy{len(agents) + 1}")
            if name is None:
                raise SystemExit("the scripted agent did not start")
            agents.append(name)
        first, second = agents
        self.ctl("list")
        question = "Say in one sentence what you can do."
        answer = self.ctl("send", second, "--from", first, "--wait", "--timeout", str(ANSWER_WITHIN_S), "--", question)
        if not answer.strip():
            raise SystemExit("there was no answer")
        self.ctl("tasks", second)
        print(f"\nTo see an agent's own screen: synapsectl attach {second}   (leave it with ctrl-])")
        print("Your own daemon starts with the first `synapsectl start`; then `synapsectl --help`.")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="synapsed-demo-") as home:
        demo = Demo(Path(home))
        try:
            demo.run()
        finally:
            demo.ctl("shutdown", check=False)


if __name__ == "__main__":
    main()
