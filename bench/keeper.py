"""Figures of the keeper: 20 MB of output through keeper and client, echo latency, memory with twenty keepers.

`python bench/keeper.py` prints one line per figure. The floor for throughput is the same program on a bare PTY.
"""

import asyncio
import os
import pty
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import sized
from synapsed.keepers.client import KeeperClient
from synapsed.keepers.keeper_messages import Exited, KeeperEvent, Output
from synapsed.keepers.launchers import LaunchedKeeper, LaunchSpec, ProcessLauncher

SIZE = sized(20_000_000, 500_000)
ECHOES = sized(2000, 50)
KEEPERS = sized(20, 2)
PRODUCER = (
    "import os,tty\ntty.setraw(1)\n"
    "data=(bytes(range(32,126))*700)[:65536]\nleft=%d\n"
    "while left>0:\n  left-=os.write(1,data[:left])\n"
)


def spec(root: Path, launch_id: str, *argv: str) -> LaunchSpec:
    return LaunchSpec(
        launch_id=launch_id,
        agent="bench",
        argv=argv,
        env={"PATH": os.environ["PATH"], "TERM": "xterm-256color"},
        cwd="/",
        state_dir=root / launch_id,
        socket_path=root / "run" / f"{launch_id}.sock",
    )


def bare() -> float:
    """Seconds for the producer on a PTY that is read by a loop of reads and nothing else."""
    began = time.perf_counter()
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-S", "-c", PRODUCER % SIZE])
    total = 0
    while True:
        try:
            total += len(os.read(fd, 65536))
        except OSError:
            break
    os.waitpid(pid, 0)
    os.close(fd)
    assert total == SIZE, total
    return time.perf_counter() - began


async def throughput(root: Path) -> float:
    """Seconds from launch to the Exited that follows the last byte."""
    done = asyncio.Event()
    received = 0

    def on_event(event: KeeperEvent) -> None:
        nonlocal received
        if isinstance(event, Output):
            received += len(event.data)
        elif isinstance(event, Exited):
            done.set()

    began = time.perf_counter()
    keeper = await ProcessLauncher().launch(spec(root, "bulk", sys.executable, "-S", "-c", PRODUCER % SIZE))
    client = await KeeperClient.connect(keeper.socket_path, on_event=on_event)
    await client.subscribe(keeper.spool_start)
    await done.wait()
    took = time.perf_counter() - began
    assert received == SIZE, received
    await client.acknowledge_exit()
    client.close()
    return took


async def echo(root: Path) -> list[float]:
    """Seconds from write to the program's echo, one byte at a time."""
    arrived = asyncio.Event()
    keeper = await ProcessLauncher().launch(spec(root, "echo", "sh", "-c", "stty raw -echo; echo; exec cat"))
    client = await KeeperClient.connect(
        keeper.socket_path, on_event=lambda event: arrived.set() if isinstance(event, Output) else None
    )
    await client.subscribe(keeper.spool_start)
    await arrived.wait()
    times = []
    for _ in range(ECHOES):
        arrived.clear()
        began = time.perf_counter()
        write = asyncio.ensure_future(client.write(b"x"))
        await arrived.wait()
        times.append(time.perf_counter() - began)
        await write
    await client.stop(0)
    await client.acknowledge_exit()
    client.close()
    return sorted(times)


def pss(pid: int) -> float:
    """MB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise ValueError(pid)


async def memory(root: Path) -> tuple[float, float]:
    """Median seconds of a launch, and the mean PSS in MB of keepers that served a client."""
    keepers: list[LaunchedKeeper] = []
    clients = []
    launches = []
    for number in range(KEEPERS):
        began = time.perf_counter()
        keeper = await ProcessLauncher().launch(spec(root, f"m{number}", "cat"))
        launches.append(time.perf_counter() - began)
        client = await KeeperClient.connect(keeper.socket_path, on_event=lambda _event: None)
        await client.subscribe(0)
        await client.write(b"hello\n", "one")
        keepers.append(keeper)
        clients.append(client)
    mean = statistics.fmean(pss(keeper.keeper_pid) for keeper in keepers)
    for client in clients:
        await client.stop(0)
        await client.acknowledge_exit()
        client.close()
    return statistics.median(launches), mean


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        floor = min(bare() for _ in range(3))
        times = [await throughput(root / str(number)) for number in range(3)]
        print(f"{SIZE / 1e6:g} MB through keeper and client   {min(times):.2f} s (bare PTY {floor:.2f} s)")
        echoes = await echo(root)
        p50, p99 = echoes[len(echoes) // 2], echoes[len(echoes) * 99 // 100]
        print(f"echo of one byte                  p50 {p50 * 1e6:.0f} us, p99 {p99 * 1e6:.0f} us")
        launch, mean = await memory(root / "memory")
        print(f"launch of a keeper                {launch * 1e3:.0f} ms")
        if sys.platform == "linux":
            print(f"memory of a keeper, of {KEEPERS}         {mean:.2f} MB PSS")


if __name__ == "__main__":
    asyncio.run(main())
