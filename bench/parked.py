"""Fifty parked agents: what each costs, and how late a message is with the program that it wakes.

python -m bench parked        (Linux: memory is read from /proc)
"""

import os
import pty
import statistics
import sys
import time
from pathlib import Path

import psutil

from bench.figures import daemon, milliseconds, pss, report, sized
from tests.support.daemon import Daemon, eventually

AGENTS = sized(50, 2)
WAKES = sized(20, 2)
FIRST_PORT = 18340
NO_AGENTS = '[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n'
CONFIG = NO_AGENTS + "".join(
    f'[agents.d{number}]\nprofile = "dummy"\nautostart = true\nport = {FIRST_PORT + number}\n'
    for number in range(AGENTS)
)
PROFILE = '[resume]\nargs = ["-X", "resume={conversation}"]\nfresh_args = ["-X", "session={conversation}"]\n'
"""The scripted agent keeps no conversation; its interpreter does not mind being told of one."""

DUMMY = [sys.executable, "-S", "-E", "-I", str(Path(__file__).parent.parent / "examples" / "dummy_agent.py")]


def main() -> None:
    with daemon(NO_AGENTS) as running:
        alone = size(running)
    with daemon(CONFIG, profiles={"dummy": PROFILE}) as running:
        eventually(lambda: [a["activity"] for a in running.get("/agents").json] == ["ready"] * AGENTS, "all are ready")
        for number in range(AGENTS):
            assert running.ended(running.send("hello", f"d{number}"))["status"] == "completed"
        working = size(running)
        for number in range(AGENTS):
            park(running, f"d{number}")
        memory("in the daemon that ran them", size(running), working, alone)
        running.kill9()
        running.start()
        assert {agent["state"] for agent in running.get("/agents").json} == {"parked"}
        memory("in the next daemon", size(running), working, alone)
        wakes(running)


def size(running: Daemon) -> tuple[int, int]:
    """PSS and USS of the daemon, bytes, once it has nothing to do."""
    time.sleep(sized(3.0, 0.5))
    assert running.process is not None
    pid = running.process.pid
    return pss(pid), psutil.Process(pid).memory_full_info().uss


def park(running: Daemon, name: str) -> None:
    eventually(lambda: running.post(f"/control/agents/{name}/park", {}).status == 200, f"{name} is parked")


def memory(where: str, now: tuple[int, int], working: tuple[int, int], alone: tuple[int, int]) -> None:
    each = [(after - before) / AGENTS / 2**20 for after, before in zip(now, alone, strict=True)]
    pages = ", ".join(f"{value / 2**20:.0f}" for value in (alone[0], working[0], now[0]))
    report(
        f"memory per parked agent of {AGENTS}, {where}",
        f"{each[0]:.2f} MB PSS, {each[1]:.2f} MB USS (daemon without agents, with them, parked: {pages} MB PSS)",
        "≤ 1 MB",
        held=max(each) <= 1,
    )


def wakes(running: Daemon) -> None:
    """From the sending to the message's first key at the program, less what the program takes for its start alone."""
    own, woken = [], []
    for number in range(WAKES):
        name = f"d{number}"
        own.append(started_alone())
        sent = time.time()
        done = running.ended(running.send(f"clock\necho {name}", name))
        first_key, _, echo = done["artifacts"][-1]["parts"][0]["text"].partition("\n")
        assert echo == name
        woken.append(float(first_key.split()[0]) - sent)
    beyond = [took - alone for took, alone in zip(woken, own, strict=True)]
    report(
        f"message to a parked agent → bytes at its program, {WAKES}",
        f"{milliseconds(woken)}; beyond the program's own start (p50 {statistics.median(own) * 1e3:.0f} ms): "
        f"{milliseconds(beyond)}",
        "p50 ≤ 200 ms beyond",
        held=statistics.median(beyond) <= 0.2,
    )


def started_alone() -> float:
    """Seconds from the program's spawn in a terminal to its prompt."""
    began = time.monotonic()
    pid, master = pty.fork()
    if pid == 0:
        os.execv(DUMMY[0], DUMMY)
    shown = b""
    while b"dummy> " not in shown:
        shown += os.read(master, 4096)
    took = time.monotonic() - began
    os.write(master, b"\x04")
    os.waitpid(pid, 0)
    os.close(master)
    return took


if __name__ == "__main__":
    main()
