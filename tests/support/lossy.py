"""A bad line between two network namespaces: it delays packets, lets later ones overtake earlier ones, and drops some.

A kernel with netem would do it by itself. Here a process stands between two TUN devices, one in each namespace, and
carries every packet by hand:

    python -m tests.support.lossy PID PID SEED

SIGUSR1 cuts the line: whatever comes is dropped. SIGUSR2 mends it. At SIGTERM it tells its counts as JSON, and ends.
Linux, root.
"""

import contextlib
import fcntl
import heapq
import json
import os
import random
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.daemon import eventually
from tests.support.namespaces import has_address, namespaces

__all__ = ["BadLine", "bad_line", "needs_tun"]

needs_tun = pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="needs TUN devices: /dev/net/tun")

DROPPED: Final = 0.02
"""Share of packets that are dropped."""
DELAY_S: Final = 0.03
"""Most seconds by which a packet is late. Each has a lateness of its own, so that one overtakes another."""
LATE: Final = 0.02
"""Share of packets that are late by up to LATE_S."""
LATE_S: Final = 0.4
HELD_MAX: Final = 10_000
"""Most packets that are under way; further ones are dropped."""
MTU: Final = 1500
_TUNSETIFF: Final = 0x400454CA
_TUN_NO_PI: Final = 0x1001
_DEVICE: Final = "line0"


@dataclass(frozen=True, slots=True)
class BadLine:
    """The process between the namespaces of the processes `here` and `there`."""

    here: int
    there: int
    process: "subprocess.Popen[bytes]"

    def cut(self) -> None:
        self.process.send_signal(signal.SIGUSR1)

    def mend(self) -> None:
        self.process.send_signal(signal.SIGUSR2)

    def counts(self) -> dict[str, int]:
        """Ends it; how many packets it has carried, dropped, and delivered after one that came later."""
        self.process.terminate()
        told, _ = self.process.communicate(timeout=60)
        found: dict[str, int] = json.loads(told)
        return found


@contextlib.contextmanager
def bad_line(seed: int, *, seconds: int) -> Iterator[BadLine]:
    """Two namespaces, at `.1` and `.2` of one network, with such a line between them, for so many seconds at most."""
    with namespaces(seconds=seconds) as (here, there):
        line = subprocess.Popen(
            [sys.executable, "-m", "tests.support.lossy", str(here), str(there), str(seed)], stdout=subprocess.PIPE
        )
        try:
            for address, pid in ((1, here), (2, there)):
                eventually(partial(_has_device, pid), "the line has its device there")
                has_address(pid, _DEVICE, address)
            yield BadLine(here, there, line)
        finally:
            if line.poll() is None:
                line.kill()
            line.wait()
            assert line.stdout is not None
            line.stdout.close()


def _has_device(pid: int) -> bool:
    return f"{_DEVICE}:" in Path(f"/proc/{pid}/net/dev").read_text()


class _Line:
    """The packets that are under way between two devices, which `ends` names by their descriptors."""

    def __init__(self, ends: tuple[int, int], roll: random.Random) -> None:
        self._other = {ends[0]: ends[1], ends[1]: ends[0]}
        self._roll = roll
        self._held: list[tuple[float, int, int, bytes]] = []
        self._newest: dict[int, int] = dict.fromkeys(ends, 0)
        self._number = 0
        self._cut = False
        self.counts = {"carried": 0, "dropped": 0, "overtaken": 0, "cut": 0}

    def cut(self, *_: Any) -> None:
        self._cut = True

    def mend(self, *_: Any) -> None:
        self._cut = False

    def carry(self) -> None:
        """Carries what comes until SIGTERM."""
        while True:
            wait = max(0.0, self._held[0][0] - time.monotonic()) if self._held else None
            for end in select.select([*self._other], [], [], wait)[0]:
                with contextlib.suppress(BlockingIOError):
                    while packet := os.read(end, MTU + 100):
                        self._take(self._other[end], packet)
            self._deliver()

    def _take(self, to: int, packet: bytes) -> None:
        if self._cut:
            self.counts["cut"] += 1
        elif self._roll.random() < DROPPED or len(self._held) >= HELD_MAX:
            self.counts["dropped"] += 1
        else:
            late = self._roll.random() * (LATE_S if self._roll.random() < LATE else DELAY_S)
            self._number += 1
            heapq.heappush(self._held, (time.monotonic() + late, self._number, to, packet))

    def _deliver(self) -> None:
        now = time.monotonic()
        while self._held and self._held[0][0] <= now:
            _, number, to, packet = heapq.heappop(self._held)
            self.counts["overtaken"] += number < self._newest[to]
            self._newest[to] = max(number, self._newest[to])
            with contextlib.suppress(OSError):  # its device is not up yet
                os.write(to, packet)
                self.counts["carried"] += 1


def _device(pid: int) -> int:
    """Makes a device in the namespace of the process, and enters that."""
    with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
        os.setns(namespace.fileno(), os.CLONE_NEWNET)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", _DEVICE.encode(), _TUN_NO_PI))
    return device


def _end(*_: Any) -> None:
    sys.exit(0)


def _main() -> None:
    here, there, seed = map(int, sys.argv[1:])
    line = _Line((_device(here), _device(there)), random.Random(seed))
    signal.signal(signal.SIGUSR1, line.cut)
    signal.signal(signal.SIGUSR2, line.mend)
    signal.signal(signal.SIGTERM, _end)
    try:
        line.carry()
    finally:
        print(json.dumps(line.counts), flush=True)


if __name__ == "__main__":
    _main()
