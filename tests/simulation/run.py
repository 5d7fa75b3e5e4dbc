"""Runs seeds: one, many, one again for its story, one that fails with less and less until nothing more can go.

python -m tests.simulation.run 17              its story
python -m tests.simulation.run --seeds 0:500   those that fail; --digests: what stands for the story of each
--served: with programs that take messages over a server
"""

import asyncio
import contextlib
import gc
import hashlib
import itertools
import os
import secrets
import shutil
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import structlog

import synapsed.keepers.client
import synapsed.keepers.heartbeat
import synapsed.keepers.kept_program
import synapsed.parts.history.service
import synapsed.pty.link_factory
import synapsed.pty.screen_looks
import synapsed.pty.viewers
import synapsed.screens.harmful_output
import synapsed.screens.pool
import synapsed.store.database
from synapsed.keepers.keeper_messages import KeeperConnection
from tests.simulation import loop as simulated_loop
from tests.simulation.judge import Violation
from tests.simulation.loop import Overrun, SimClock, SimExecutor, SimLoop, SimTask, bury
from tests.simulation.machine import SimForeground
from tests.simulation.plan import Plan, draw
from tests.simulation.served import served
from tests.simulation.world import World, _Screens

__all__ = ["Outcome", "play", "shrink"]

TRIES_MAX = 200
"""Runs of one shrinking."""

OTHERS, OTHER = 3, 1_000_000
"""So many other seeds' chances are tried, and how far they are from one another."""


@dataclass(frozen=True, slots=True)
class Outcome:
    plan: Plan
    digest: str
    steps: int
    cpu: float
    failure: BaseException | None = None

    @property
    def rule(self) -> str | None:
        if self.failure is None:
            return None
        rule: str = getattr(self.failure, "rule", type(self.failure).__name__)
        cause = self.failure.__cause__
        return rule if cause is None else f"{rule} ({type(cause).__name__})"


def _folder() -> Path:
    shared = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="simulated-", dir=shared if shared.is_dir() else None))


@contextlib.contextmanager
def _machine(world: World, clock: SimClock, rng: Random) -> Iterator[None]:
    """What the product takes from the real machine is the simulated one's."""
    machine = world.machine

    def nanoseconds() -> int:
        return int(clock.monotonic() * 1e9)

    async def survives(*_: Any, **__: Any) -> bool:
        return True

    factory, heartbeat = synapsed.pty.link_factory, synapsed.keepers.heartbeat
    patches: list[tuple[Any, str, Any]] = [
        (time, "time", clock.wall),
        (time, "monotonic", clock.monotonic),
        (time, "monotonic_ns", nanoseconds),
        (time, "time_ns", lambda: int(clock.wall() * 1e9)),
        (os, "urandom", rng.randbytes),
        (secrets, "token_hex", lambda size=16: rng.randbytes(size).hex()),
        (asyncio, "Task", SimTask),
        (sqlite3, "connect", world.connect(sqlite3.connect)),
        (synapsed.store.database, "ThreadPoolExecutor", SimExecutor),
        (synapsed.parts.history.service, "ThreadPoolExecutor", SimExecutor),
        (synapsed.keepers.client, "why_not_our_peer", lambda _sock: None),
        (synapsed.screens.pool, "ScreenProcess", _Screens),
        (synapsed.screens.harmful_output, "survives", survives),
        (synapsed.keepers.kept_program, "sweep_launch", machine.sweep),
        (heartbeat, "start_mark", machine.start_mark),
        (heartbeat, "call_keeper", machine.call_keeper),
        (synapsed.pty.viewers, "BUFFER_MAX", 1024),
        (synapsed.pty.screen_looks, "Foreground", SimForeground),
        (synapsed.pty.screen_looks, "Foreground", SimForeground),
        (factory, "sweep_launch", machine.sweep),
        (factory, "find_keepers", machine.find_keepers),
        (factory, "call_keeper", machine.call_keeper),
        (factory, "keeper_of", machine.keeper_of),
        (factory, "before_boot", lambda _start: False),
        (factory, "age_of", lambda _pid, _start: None),
        (factory, "environment_of", lambda _pid: {}),
    ]
    config = structlog.get_config()
    defaults: Any = KeeperConnection.__init__.__kwdefaults__
    before = defaults["clock"]
    _Screens.world = world
    SimForeground.machine = machine
    with contextlib.ExitStack() as stack:
        for owner, name, value in patches:
            stack.enter_context(mock.patch.object(owner, name, value))
        defaults["clock"] = clock.monotonic
        structlog.configure(processors=[world.logged], cache_logger_on_first_use=False)
        try:
            yield
        finally:
            defaults["clock"] = before
            structlog.configure(**config)


def play(plan: Plan, *, story: Callable[[str], None] | None = None) -> Outcome:
    """One run."""
    begin = time.process_time()
    root, clock = _folder(), SimClock()
    simulated_loop._NUMBERS = itertools.count(1)
    loop = SimLoop(clock, Random(f"order {plan.seed}"), hurry=plan.hurry)
    asyncio.set_event_loop(loop)
    collected = gc.isenabled()
    gc.disable()
    failure: BaseException | None = None
    world = World(plan, root, loop, clock, story)
    every = set()
    try:
        with _machine(world, clock, Random(f"chance {plan.seed}")):
            try:
                loop.run_until_complete(SimTask(world.run(), loop=loop))
            except (Violation, Overrun, AssertionError) as error:
                failure = error
            every = asyncio.all_tasks(loop)
            world.judge.close()
            for connections in world.connections.values():
                for connection in connections:
                    connection.close()
            for keeper in world.machine.keepers:
                keeper.channels["pty"].spool.close()
                keeper.input.queue._journal.close()
            digest = world.digest
            world._story = None
            loop.set_exception_handler(lambda *_: None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what was begun and never comes to run
                bury(every)
                loop.close()
    finally:
        asyncio.set_event_loop(None)
        loop.close()
        shutil.rmtree(root, ignore_errors=True)
        if collected:
            gc.enable()
    return Outcome(plan, digest, loop.steps, time.process_time() - begin, failure)


def shrink(failed: Outcome, *, tries: int = TRIES_MAX, told: Callable[[str], None] = lambda _: None) -> Outcome:
    """The smallest plan that was found to break the same rule. Whatever is left out moves what comes after it: so where
    nothing can go by itself, the same is tried with the chances of other seeds."""
    best, left = failed, tries

    def smaller(others: int) -> Outcome | None:
        nonlocal left
        for plan in best.plan.without():
            for other in range(1, others + 1) if others else (0,):
                left -= 1
                outcome = play(replace(plan, seed=plan.seed + other * OTHER))
                if outcome.rule == failed.rule:
                    return outcome
                if left <= 0:
                    return None
        return None

    while left > 0 and (found := smaller(0) or smaller(OTHERS)) is not None:
        best = found
        told(f"{len(best.plan.acts)} acts, {len(best.plan.faults)} faults: {best.failure}")
    return best


def main(arguments: list[str]) -> int:
    plan_of = (lambda seed: served(draw(seed))) if "--served" in arguments else draw
    if arguments[0] == "--seeds":
        first, last = map(int, arguments[1].split(":"))
        return _many(range(first, last), plan_of, digests="--digests" in arguments)
    seed = int(arguments[0])
    outcome = play(plan_of(seed), story=print)
    print(outcome.plan)
    told = outcome.failure or "all is well"
    print(f"digest {outcome.digest}, {outcome.steps} steps, {outcome.cpu:.2f} s of CPU: {told}")
    if outcome.failure is not None and outcome.failure.__cause__ is not None:
        traceback.print_exception(outcome.failure.__cause__)
    if outcome.failure is not None and "--shrink" in arguments:
        small = shrink(outcome, told=print)
        play(small.plan, story=print)
        print(small.plan)
        print(small.failure)
        print(f"to play it again: {small.plan!r}")
    return int(outcome.failure is not None)


def _many(seeds: range, plan_of: Callable[[int], Plan], *, digests: bool) -> int:
    begin, failed, steps, all_of_them = time.process_time(), 0, 0, hashlib.sha256()
    for seed in seeds:
        outcome = play(plan_of(seed))
        steps += outcome.steps
        all_of_them.update(f"{outcome.digest} {outcome.steps}\n".encode())
        if digests:
            print(f"{seed} {outcome.digest} {outcome.steps}", flush=True)
        if outcome.failure is not None:
            failed += 1
            print(f"seed {seed}: {outcome.failure}"[:400], flush=True)
        if seed % 20 == 0:
            gc.collect()
    took = time.process_time() - begin
    print(f"{len(seeds)} seeds, {failed} failed, {steps} steps, {took:.1f} s of CPU ({took / len(seeds):.3f} s each)")
    print(f"digest {all_of_them.hexdigest()[:16]}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
