"""Verbs that end or interrupt a program that floods its terminal: output that comes faster than anything draws it."""

import sys
import time

from bench.figures import daemon, report, sized
from tests.support.daemon import NO_PORTS, Daemon, eventually

FLOODS = {
    "repeats": b"X\x1b[9999999b\x1b[99999S\x1b[99999L\x1b[2J\x1b[3J\x1b[8;9999;9999t\x1b[?3h\x1b[99999P\x1b[99999@",
    "sixel": b'\x1bPq"1;1;30000;30000#1!30000~$-!30000~\x1b\\',
    "clipboard": b"\x1b]52;c;ZXZpbA==\x07\x1b]5522;x\x07\x1b]1337;Copy=:ZXZpbA==\x07",
}
VERBS = ("stop", "stop without TERM", "kill", "restart", "cancel")
"""`stop without TERM`: of a shell that ignores it, and so does all that it starts; the seconds of grace are in it."""
BAR_S = 5.0
FLOODED_BYTES = sized(32 << 20, 1 << 20)
"""Written before the verb: far more than is drawn by then."""


def main() -> None:
    with daemon(NO_PORTS) as running:
        for kind in list(FLOODS)[: sized(len(FLOODS), 1)]:
            for verb in VERBS:
                seconds = measured(running, f"{kind}-{verb.replace(' ', '-').lower()}", kind, verb)
                report(f"{verb} of a flood: {kind}", f"{seconds:.1f} s", f"≤ {BAR_S:.0f} s", held=seconds <= BAR_S)


def measured(running: Daemon, name: str, kind: str, verb: str) -> float:
    """Returns the seconds that `verb` takes until it is so: for `kill`, until the program is known to have ended; for
    `cancel`, until the task that floods is."""
    flood = running.home / f"{kind}.py"
    flood.write_text(f"import os\nwhile True: os.write(1, {FLOODS[kind]!r} * 200)\n")
    if verb == "cancel":
        start(running, name, ["sh", "-i"])
        running.ready(name)
        task = running.send(f"{sys.executable} {flood}", name)
        verb = f"/control/tasks/{task}/cancel"
    else:
        ignoring = ["sh", "-c", 'trap "" TERM; "$@"; :', "sh"] if verb == "stop without TERM" else []
        start(running, name, [*ignoring, sys.executable, str(flood)])
        verb = f"/control/agents/{name}/{verb.split()[0]}"
    eventually(lambda: spooled(running, name) >= FLOODED_BYTES, f"{name} has written much")
    before = running.agent(name)["pid"]
    began = time.monotonic()
    answer = running.post(verb, {})
    assert answer.status == 200, answer.json
    if verb.endswith("/kill"):
        eventually(lambda: running.agent(name).get("pid", before) != before, f"{name} has ended")
    seconds = time.monotonic() - began
    running.post(f"/control/agents/{name}/stop", {})
    return seconds


def start(running: Daemon, name: str, argv: list[str]) -> None:
    body = {"profile": "generic", "name": name, "cwd": "/", "args": argv}
    answer = running.post("/control/start", body)
    assert answer.status == 200, answer.json


def spooled(running: Daemon, name: str) -> int:
    """Returns the end of its output: the segments of its spool are named by their offsets."""
    folder = running.home / "state" / "agents" / running.agent(name)["id"] / "spool"
    return max((int(file.stem) + file.stat().st_size for file in folder.iterdir() if file.stem.isdigit()), default=0)
