"""How late a message to a parked agent is at the model, with the real programs and the scripted model of the tests.

python -m tests.real.netns python -m bench.wake claude codex …

Messages are typed: a server of the program's would not be there for the start that is taken off.

What the program itself takes is taken off: its start in a plain terminal, with the same arguments and environment,
until it says that it is idle; and, for a message to the ready agent, the time from sending it to the request. The
conversation must be gone on with: the request that a message leads to has every message before it.
"""

import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from bench.figures import environment, milliseconds, report, sized
from tests.real import programs
from tests.real.agents import RealAgent
from tests.real.looks import LOOKS
from tests.real.model import Model
from tests.real.terminal import Terminal
from tests.real.ways import typed
from tests.support.daemon import Daemon, eventually

WAKES = sized(5, 1)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="synapsed-wake-", dir=programs.cache_dir().parent) as folder:
        base = Path(folder)
        with Model(log_file=base / "requests.jsonl") as model:
            daemon = Daemon(base / "synapsed", environ=environment()).start()
            try:
                for cli in sys.argv[1:] or ["claude"]:
                    measure(cli, base, daemon, model)
            finally:
                daemon.end()


def measure(cli: str, base: Path, daemon: Daemon, model: Model) -> None:
    typed(cli, daemon)
    prepared = programs.prepare(cli, base / cli / "home", base / cli / "project", model.url)
    agent = RealAgent.start(cli, daemon, model, prepared)
    words: list[str] = []
    asked(agent, words)
    parked(agent)
    asked(agent, words)  # from here on it was started as every later time
    starts, ready, woken = [], [], []
    for _ in range(WAKES):
        daemon.ready(agent.name)
        ready.append(asked(agent, words))
        program = psutil.Process(agent.pid)
        argv, env = program.cmdline(), program.environ()
        parked(agent)
        starts.append(started(cli, argv, env, prepared.cwd))
        woken.append(asked(agent, words))
    own = statistics.median(starts) + statistics.median(ready)
    beyond = [took - own for took in woken]
    report(
        f"{cli}: message to a parked agent → request to the model, {WAKES}",
        f"{milliseconds(woken)}; its own start {statistics.median(starts) * 1e3:.0f} ms, a message when it is ready "
        f"{statistics.median(ready) * 1e3:.0f} ms; beyond both: {milliseconds(beyond)}",
        "p50 ≤ 200 ms beyond",
        held=statistics.median(beyond) <= 0.2,
    )


def parked(agent: RealAgent) -> None:
    eventually(lambda: agent.daemon.ctl("park", agent.name).code == 0, "it is parked")


def asked(agent: RealAgent, words: list[str]) -> float:
    """Ask something; seconds from the sending to the request to the model, which has all that was said before."""
    words.append(f"word-{secrets.token_hex(6)}")
    body = {"message": {"role": "user", "parts": [{"type": "text", "text": f"Next {words[-1]}."}]}}
    began = time.time()
    task = agent.daemon.post(f"/agents/{agent.name}/tasks/send", body).json["task"]["id"]
    request = agent.model.wait_for_turn(words[-1])
    assert [word for word in words if any(word in text for text in request.users)] == words
    assert agent.daemon.ended(task)["status"] == "completed"
    assert agent.model.submissions(words[-1]) == 1
    return request.at - began


def started(cli: str, argv: list[str], env: Mapping[str, str], cwd: Path) -> float:
    """Seconds until the program says that it is idle and shows so, started just so in a plain terminal."""
    began = time.monotonic()
    with Terminal(argv, env=env, cwd=cwd) as terminal:
        terminal.wait_screen(LOOKS[cli].ready, timeout=120)
        terminal.wait(lambda: any("state=idle" in status for status in terminal.statuses()), "it says that it is idle")
        return time.monotonic() - began


if __name__ == "__main__":
    main()
