"""A connection to another host while the clock is set, and the machine sleeps: it is tried and given up as before."""

import asyncio
import random
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from synapsed.model.attention import HostState
from synapsed.parts.elsewhere.hosts import tunnel as tunnels
from synapsed.parts.elsewhere.hosts.host import Host
from synapsed.parts.elsewhere.hosts.ssh import LAST_PAUSE_S
from synapsed.parts.elsewhere.hosts.tunnel import SILENT_MAX_S, Tunnel, TunnelDeps
from tests.fakes.clock import DAY_S, JUMPS, FakeClock, until


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tunnel(tmp_path: Path, clock: FakeClock) -> Tunnel:
    deps = TunnelDeps(ssh=["false"], environ={}, sockets=tmp_path, clock=clock, rng=random.Random(1).random)
    return Tunnel(Host(name="box", target="box", added_at="2026-01-02T11:00:00.000Z"), deps, on_up=lambda: None)


def changes(clock: FakeClock) -> Iterator[None]:
    """Sets the clock, and sleeps, in turn, for ever."""
    for jump in cycle((*JUMPS, None)):
        if jump is None:
            clock.sleep(DAY_S)
        else:
            clock.jump(jump)
        yield


async def test_one_that_is_started_twice_connects_once(tunnel: Tunnel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host may be added while the daemon starts, which then starts all tunnels."""
    connecting: list[asyncio.Task[None] | None] = []

    async def connect() -> None:
        connecting.append(asyncio.current_task())
        await asyncio.Event().wait()

    monkeypatch.setattr(tunnel, "_connect", connect)
    tunnel.start()
    tunnel.start()
    await until(lambda: bool(connecting))
    await asyncio.sleep(0)
    assert len(connecting) == 1
    await tunnel.close()


async def test_pauses_are_no_longer_and_no_shorter(
    tunnel: Tunnel, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    untouched, change = tunnel._backoff.pause, changes(clock)

    def pause() -> float:
        pauses.append(untouched())
        next(change)
        return 0.0  # the event loop's, which no clock changes

    async def failing() -> None:
        raise OSError("no such host")

    monkeypatch.setattr(tunnel._backoff, "pause", pause)
    monkeypatch.setattr(tunnel, "_connect", failing)
    tunnel.start()
    await until(lambda: len(pauses) > 12)
    await tunnel.close()
    wanted = [min(2.0**tries, LAST_PAUSE_S) for tries in range(len(pauses))]
    assert all(most * 0.7 < found <= most for found, most in zip(pauses, wanted, strict=True)), pauses


async def test_a_silent_daemon_is_given_up_for_its_silence_alone(
    tunnel: Tunnel, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ended, change = 0, False, changes(clock)

    async def nothing(path: str, at_most: int) -> bytes:
        nonlocal asked
        asked += 1
        if asked <= 20:
            next(change)
        else:
            clock.advance(SILENT_MAX_S / 10)
        raise OSError("no answer")

    async def end(process: Any) -> None:
        nonlocal ended
        ended = True

    for name in ("CHECK_SILENT_S", "CHECK_SLOWEST_S"):
        monkeypatch.setattr(tunnels, name, 0.0)
    monkeypatch.setattr(tunnels, "_end", end)
    monkeypatch.setattr(tunnel, "_read", nothing)
    await tunnel._watch(None)  # type: ignore[arg-type] # it is ended only
    assert (ended, tunnel.state) == (True, HostState.SILENT)
    assert asked == 20 + 11, "neither a clock that is set nor sleep counts"
