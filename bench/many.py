"""Fifty agents: what each costs in memory, what all cost while idle, how soon they are back after kill -9.

python -m bench many        (Linux: proportional memory and CPU times are read from /proc)
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil

from bench.figures import daemon, pss, report, sized
from bench.ready import python_s, ready_s
from tests.support.daemon import Daemon, eventually

AGENTS = sized(50, 2)
FIRST_PORT = 18140
IDLE_S = sized(20.0, 0.5)
KILLS = sized(3, 1)
CONFIG = '[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n' + "".join(
    f'[agents.d{number}]\nprofile = "dummy"\nautostart = true\nport = {FIRST_PORT + number}\n'
    for number in range(AGENTS)
)


def main() -> None:
    with daemon(CONFIG) as running:
        began = time.monotonic()
        all_ready(running)
        print(f"      {AGENTS} agents started in {time.monotonic() - began:.1f} s", flush=True)
        memory(running)
        idle(running)
        killed(running)


def all_ready(running: Daemon) -> None:
    eventually(lambda: [a["activity"] for a in running.get("/agents").json] == ["ready"] * AGENTS, "all are ready")


def processes(running: Daemon) -> tuple[psutil.Process, list[psutil.Process]]:
    """The daemon, and the keepers: the parents of the programs."""
    assert running.process is not None
    keepers = [psutil.Process(agent["pid"]).parent() for agent in running.get("/agents").json]
    assert all(keepers)
    return psutil.Process(running.process.pid), [keeper for keeper in keepers if keeper is not None]


def screens(main_process: psutil.Process) -> list[psutil.Process]:
    """Those that draw the screens for it."""
    return [child for child in main_process.children() if "synapsed.screens.worker" in child.cmdline()]


def memory(running: Daemon) -> None:
    main_process, keepers = processes(running)
    own, theirs = pss(main_process.pid), sum(pss(keeper.pid) for keeper in keepers)
    drawn = [pss(process.pid) for process in screens(main_process)]
    each = (own + sum(drawn) + theirs) / AGENTS / 2**20
    told = ", ".join(f"{size / 2**20:.0f}" for size in drawn)
    report(
        f"memory per agent, keeper and share of daemon and screens, of {AGENTS}",
        f"{each:.1f} MB PSS (daemon {own / 2**20:.0f}, its screens {told}, a keeper {theirs / AGENTS / 2**20:.1f} MB)",
        "≤ 10 MB",
        held=each <= 10,
    )


def idle(running: Daemon) -> None:
    main_process, keepers = processes(running)

    def used() -> tuple[float, float]:
        own = sum(map(cpu_s, [main_process, *screens(main_process)]))
        return own, sum(cpu_s(keeper) for keeper in keepers)

    time.sleep(2)  # what being ready set off is over
    own, theirs = used()
    began = time.monotonic()
    time.sleep(IDLE_S)
    elapsed = time.monotonic() - began
    own, theirs = (100 * (after - before) / elapsed for after, before in zip(used(), (own, theirs), strict=True))
    report(
        f"idle CPU, {AGENTS} agents",
        f"{own + theirs:.2f} % of a core (daemon and screens {own:.2f}, keepers {theirs:.2f})",
        "≤ 1 %",
        held=own + theirs <= 1,
    )


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def killed(running: Daemon) -> None:
    """From the kill (and the start of the next daemon right after it) until every agent's activity is known again, with
    its turn under way; the programs draw ten times a second meanwhile. Then every turn must end right."""
    back, used, right = [], [], 0
    for kill in range(KILLS):
        all_ready(running)
        pids = {agent["name"]: agent["pid"] for agent in running.get("/agents").json}
        told = running.home / f"back-{kill}"
        tasks = {name: send(running, name, f"until {told}\necho {kill} {name}") for name in pids}
        eventually(lambda: {a["activity"] for a in running.get("/agents").json} == {"busy"}, "all are busy")
        began = time.monotonic()
        running.kill9()
        running.start()
        eventually(partial(same_and_busy, running, pids), "all are back")
        back.append(time.monotonic() - began)
        told.touch()
        assert running.process is not None
        daemon_again = psutil.Process(running.process.pid)
        used.append(sum(map(cpu_s, [daemon_again, *screens(daemon_again)])))
        for name, task in tasks.items():
            done = running.task_in(task, "completed", "failed", "canceled")
            right += done["status"] == "completed" and done["artifacts"][-1]["parts"][0]["text"].endswith(
                f"{kill} {name}"
            )
    report(
        f"kill -9 → {AGENTS} agents back, turns going on",
        f"{', '.join(f'{took:.2f}' for took in back)} s ({min(used):.2f} s of CPU), {right} of {AGENTS * KILLS} right",
        "≤ 2 s, all right",
        held=sorted(back)[KILLS // 2] <= 2 and right == AGENTS * KILLS,
    )
    allowed, start, bare = allowed_s()
    report(
        f"the same, CPU of daemon and screens, {AGENTS} agents",
        f"{statistics.median(used):.2f} s; a start {start * 1e3:.0f} ms, a bare interpreter {bare * 1e3:.0f} ms",
        f"≤ {allowed:.2f} s: the start, and 1.5 × a bare interpreter an agent",
        held=statistics.median(used) <= allowed,
    )


def allowed_s() -> tuple[float, float, float]:
    """The bar of the CPU time after a kill: what a start and a bare interpreter take now."""
    start = statistics.median(ready_s(Path(folder)) for folder in folders(KILLS))
    bare = statistics.median(python_s("pass") for _ in range(KILLS))
    return start + 1.5 * AGENTS * bare, start, bare


def folders(number: int) -> Iterator[str]:
    for _ in range(number):
        with tempfile.TemporaryDirectory(prefix="synapsed-bench-") as folder:
            yield folder


def same_and_busy(running: Daemon, pids: dict[str, int]) -> bool:
    """Whether every program goes on with its turn, and the daemon knows it."""
    busy = [a for a in running.get("/agents").json if a["state"] == "running" and a["activity"] == "busy" and a["task"]]
    return {agent["name"]: agent["pid"] for agent in busy} == pids


def send(running: Daemon, name: str, text: str) -> str:
    body = {"message": {"role": "user", "parts": [{"type": "text", "text": text}]}}
    task_id: str = running.post(f"/agents/{name}/tasks/send", body).json["task"]["id"]
    return task_id


if __name__ == "__main__":
    main()
