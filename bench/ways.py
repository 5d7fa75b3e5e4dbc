"""What the ways to a program cost: its start and its memory over its own server, typed at its terminal, and on pipes.

python -m bench ways
python -m tests.real.netns python -m bench.ways codex opencode …

The real programs, before the scripted model of the tests. Agents of all ways run side by side and are started again in
turns, so that what else the machine does is done to all. Memory is that of a program and all that it has started
(proportional), without the keeper, which is the same for all ways.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from bench.figures import environment, pss, report, sized
from tests.real import netns, programs
from tests.real.agents import RealAgent, nonce
from tests.real.model import Model
from tests.real.ways import ACP, OFF, Way
from tests.support.daemon import Daemon

STARTS = sized(5, 1)
PROGRAMS = ("codex", "opencode")
START_BAR_S = 1.0
"""Beyond a start whose messages are typed: the program's server listens before it."""
MEMORY_BAR = 1.35
"""Of what a program takes whose messages are typed: a server beside a terminal is a process more."""


def main() -> None:
    """In a namespace of its own, where that is not so already."""
    if reason := programs.missing():
        print(f"      not measured: {reason}")
        return
    try:
        netns.require()
    except netns.NotIsolatedError:
        subprocess.run(
            [sys.executable, "-m", "tests.real.netns", sys.executable, "-m", "bench.ways", *PROGRAMS], check=True
        )
        return
    with tempfile.TemporaryDirectory(prefix="synapsed-ways-", dir=programs.cache_dir().parent) as folder:
        base = Path(folder)
        with Model(log_file=base / "requests.jsonl") as model:
            daemon = Daemon(base / "s", environ=environment()).start()
            try:
                for cli in sys.argv[1:] or PROGRAMS:
                    measure(cli, base, daemon, model)
            finally:
                daemon.end()


def measure(cli: str, base: Path, daemon: Daemon, model: Model) -> None:
    typed = Way(cli, "keys")
    (daemon.config_file.parent / "profiles").mkdir(exist_ok=True)
    (daemon.config_file.parent / "profiles" / f"{typed}.toml").write_text(f'extends = "{cli}"\n{OFF[cli]}')
    assert daemon.ctl("reload").code == 0
    ways: dict[str, tuple[str, tuple[str, ...]]] = {"structured": (cli, ()), "keys": (str(typed), ())}
    if cli in ACP:
        ways["pipes"] = ("acp", ("--name", f"{cli}-pipes", "--", *ACP[cli]))
    agents: dict[str, RealAgent] = {}
    for way, (profile, options) in ways.items():
        prepared = programs.prepare(cli, base / cli / way / "home", base / cli / way / "project", model.url)
        agents[way] = RealAgent.start(profile, daemon, model, prepared, *options)
        agents[way].ask_exactly(f"First {nonce()}.")
    starts: dict[str, list[float]] = {way: [] for way in agents}
    memory: dict[str, list[int]] = {way: [] for way in agents}
    for _ in range(STARTS):
        for way, agent in agents.items():
            began = time.monotonic()
            assert daemon.ctl("restart", agent.name).code == 0
            daemon.ready(agent.name, patience=240)
            starts[way].append(time.monotonic() - began)
            agent.ask_exactly(f"Next {nonce()}.")
            memory[way].append(tree(agent.pid))
    for agent in agents.values():
        assert daemon.ctl("stop", agent.name).code == 0
    tell(cli, starts, memory)


def tree(pid: int) -> int:
    """Proportional memory of the program, what it has started, and what runs beside it, bytes. The keeper's other
    child is the companion, where there is one."""
    keeper = psutil.Process(pid).parent()
    assert keeper is not None
    found = 0
    for process in keeper.children(recursive=True):
        try:
            found += pss(process.pid)
        except OSError:
            continue  # it has just ended
    return found


def tell(cli: str, starts: dict[str, list[float]], memory: dict[str, list[int]]) -> None:
    start = {way: statistics.median(took) for way, took in starts.items()}
    size = {way: statistics.median(sizes) for way, sizes in memory.items()}
    for way in [way for way in starts if way != "keys"]:
        beyond, times = start[way] - start["keys"], size[way] / size["keys"]
        report(
            f"{cli}, {way}: restart → ready, {len(starts[way])}",
            f"{start[way]:.2f} s, typed {start['keys']:.2f} s: {beyond:+.2f} s",
            f"≤ {START_BAR_S:.1f} s beyond",
            held=beyond <= START_BAR_S,
        )
        report(
            f"{cli}, {way}: memory of the program and all it has started",
            f"{size[way] / 1e6:.0f} MB, typed {size['keys'] / 1e6:.0f} MB: {times:.2f} ×",
            f"≤ {MEMORY_BAR} ×",
            held=times <= MEMORY_BAR,
        )


if __name__ == "__main__":
    main()
