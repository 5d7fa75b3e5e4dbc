"""Measures the way of a newcomer: from a wheel and nothing else to the first agent that is ready.

    python -m scripts.first_agent [--wheel FILE] [--by uv|pipx|pip] [--program PATH] [--cache FOLDER] [--limit S]

Everything is below a temporary folder: the tool's environment, its cache, synapsed's home. So each package is fetched
from the index that the installer is configured with; `--cache` names a folder that stays, for the time of a machine
that has them already. The agent is the scripted `dummy`, which takes the same way as any other. Without `--wheel` the
wheel of this checkout is built first, which is not measured.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 60.0
"""Seconds that the whole way may take."""
LOOK_S = 0.05
CONFIG = '[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n'
"""Configuration with free ports, so that a daemon of this machine is not in the way."""


class Failed(Exception):
    """A step ended with an error; the message has its last lines."""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the steps with their seconds; returns 1 if a step fails or the whole takes longer than the limit."""
    parser = argparse.ArgumentParser(description="Measure the way from a wheel to the first agent that is ready.")
    parser.add_argument("--wheel", type=Path, help="the wheel to install; else that of this checkout is built")
    parser.add_argument("--by", choices=["uv", "pipx", "pip"], default="uv", help="the installer (default: uv)")
    parser.add_argument("--program", help="the installer's program; else the one on PATH")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="cache of the installer that stays")
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="S", help="seconds (default: %(default)g)")
    args = parser.parse_args(argv)
    program = args.program or (sys.executable if args.by == "pip" else shutil.which(args.by))
    if program is None:
        print(f"first_agent: {args.by} is not on PATH: install it, or name it with --program", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="synapsed-first-") as folder:
        home = Path(folder)
        try:
            wheel = args.wheel.resolve() if args.wheel else _built(home / "dist")
            total = Newcomer(home, program, args.cache).walk(args.by, wheel)
        except Failed as error:
            print(f"first_agent: {error}", file=sys.stderr)
            return 1
    print(f"{total:6.1f} s  from {wheel.name} to an agent that is ready (limit: {args.limit:g} s)")
    return 0 if total <= args.limit else 1


def _built(out: Path) -> Path:
    _run([sys.executable, str(ROOT / "scripts/dist"), "--once", "--out", str(out)], dict(os.environ))
    (wheel,) = out.glob("synapsed-*.whl")
    return wheel


def _run(command: Sequence[str], env: dict[str, str]) -> str:
    done = subprocess.run(command, env=env, cwd=env.get("HOME"), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = "\n".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-5:])
        raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{last}")
    return done.stdout


class Newcomer:
    """A person with an empty home and an installer."""

    def __init__(self, home: Path, program: str, cache: Path | None) -> None:
        self._home = home
        self._program = program
        self._bin = home / "bin"
        kept = cache.resolve() if cache else home / "cache"
        outer = {key: value for key, value in os.environ.items() if not key.startswith(("SYNAPSE", "VIRTUAL_ENV"))}
        self._env = outer | {
            "HOME": str(home),
            "PATH": f"{self._bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "SYNAPSED_HOME": str(home / "synapsed"),
            "SYNAPSED_A2A_HOME": str(home / "a2a"),
            "UV_TOOL_DIR": str(home / "tools"),
            "UV_TOOL_BIN_DIR": str(self._bin),
            "UV_CACHE_DIR": str(kept),
            "PIPX_HOME": str(home / "pipx"),
            "PIPX_BIN_DIR": str(self._bin),
            "PIP_CACHE_DIR": str(kept),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        (home / "synapsed/config").mkdir(parents=True)
        (home / "synapsed/config/config.toml").write_text(CONFIG)

    def walk(self, by: str, wheel: Path) -> float:
        """Returns the seconds of the whole way. Raises Failed."""
        began = time.monotonic()
        for command in self._installing(by, wheel):
            self._timed(command)
        ctl = str(self._bin / "synapsectl")
        try:
            self._timed([ctl, "start", "dummy"])
            while not self._is_ready(ctl):
                if time.monotonic() - began > 10 * LIMIT_S:
                    raise Failed("the agent has not become ready")
                time.sleep(LOOK_S)
            total = time.monotonic() - began
            self._timed([ctl, "send", "dummy", "reverse abc", "--wait"])
        finally:
            if Path(ctl).exists():
                subprocess.run([ctl, "shutdown"], env=self._env, capture_output=True, check=False)
        return total

    def _installing(self, by: str, wheel: Path) -> list[list[str]]:
        if by == "uv":
            return [[self._program, "tool", "install", "--python", sys.executable, str(wheel)]]
        if by == "pipx":
            return [[self._program, "install", "--python", sys.executable, str(wheel)]]
        venv = self._home / "venv"
        self._bin.symlink_to(venv / "bin")
        return [
            [self._program, "-m", "venv", str(venv)],
            [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", str(wheel)],
        ]

    def _is_ready(self, ctl: str) -> bool:
        (agent,) = json.loads(_run([ctl, "list", "--json"], self._env))
        return bool(agent["activity"] == "ready")

    def _timed(self, command: list[str]) -> None:
        began = time.monotonic()
        _run(command, self._env)
        shown = " ".join(Path(word).name if word.startswith(os.sep) else word for word in command)
        print(f"{time.monotonic() - began:6.1f} s  {shown}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
