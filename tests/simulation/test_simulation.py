"""The real kernel on a simulated machine; each seed is a run (docs/development.md, "The simulated world")."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.plan import Plan, draw
from tests.simulation.planted import PLANTED, find, shrunken
from tests.simulation.run import play
from tests.simulation.served import served
from tests.support.gated import first_of

GATE = 20
"""Seeds that fit ten seconds of a processor."""

SERVED = 20
"""The same of programs with a server."""

NIGHT = 2000

GROUP = 20

LOST_SEEDS = 10


LOSSES: tuple[tuple[tuple[str, Any], ...], ...] = (
    (("boot", True), ("swallow", 3)),
    (("boot", True),),
    (("forget", 1),),
    (("forget", 1), ("swallow", 2)),
    (("boot", True), ("restore", True)),
)
"""What each of a seed's programs with a composer passes over, or loses, as it starts."""


def run(seeds: range, change: Callable[[Plan], Plan] | None = None) -> None:
    failed, more = [], "" if change is None else " SERVED=1"
    for seed in seeds:
        outcome = play(draw(seed) if change is None else change(draw(seed)))
        if outcome.failure is not None:
            failed.append(f"make simulate SEED={seed} SHRINK=1{more}: {outcome.failure}")
    assert not failed, "\n".join(failed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, GATE, GROUP))
def test_seeds(first: int) -> None:
    run(range(first, first + GROUP))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SERVED, GROUP))
def test_messages_over_a_server_are_given_once(first: int) -> None:
    run(range(first, first + GROUP), served)


@pytest.mark.night
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(SERVED, NIGHT, GROUP))
def test_more_messages_over_a_server(first: int) -> None:
    run(range(first, first + GROUP), served)


@pytest.mark.night
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(GATE, NIGHT, GROUP))
def test_more_seeds(first: int) -> None:
    run(range(first, first + GROUP))


@pytest.mark.slow
@pytest.mark.parametrize(
    "tricks", first_of([(loss,) for loss in LOSSES]), ids=lambda tricks: "-".join(name for name, _ in tricks)
)
def test_what_a_program_passes_over_as_it_starts_is_given_once(tricks: tuple[tuple[str, Any], ...]) -> None:
    failed = []
    for seed in range(LOST_SEEDS):
        plan = draw(seed)
        players = (replace(one, tricks=(*one.tricks, *tricks)) if one.reads else one for one in plan.players)
        outcome = play(replace(plan, players=tuple(players)))
        if outcome.failure is not None:
            failed.append(f"seed {seed} with {tricks}: {outcome.failure}")
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("seed", [0, 3])
def test_a_seed_is_the_same_run_each_time(seed: int) -> None:
    stories: list[list[str]] = [[], []]
    outcomes = [play(draw(seed), story=story.append) for story in stories]
    assert stories[0] == stories[1]
    assert outcomes[0].digest == outcomes[1].digest


@pytest.mark.night
@pytest.mark.slow
def test_a_seed_is_the_same_run_in_each_process() -> None:
    """Sets of strings have another order there."""
    command = [sys.executable, "-m", "tests.simulation.run", "--seeds", "0:6", "--digests"]
    told = [
        [
            line
            for line in subprocess.run(
                command, env={**os.environ, "PYTHONHASHSEED": order}, capture_output=True, text=True, check=True
            ).stdout.splitlines()
            if "CPU" not in line
        ]
        for order in ("1", "2")
    ]
    assert len(told[0]) == 7
    assert told[0] == told[1]


@pytest.mark.night
@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_found_and_shrunken(name: str) -> None:
    found = find(name, range(1000))
    assert found is not None
    small = shrunken(name, found)
    assert small.rule == found.rule
    assert small.plan.size <= max(3, found.plan.size * 2 // 3)


@pytest.mark.night
@pytest.mark.slow
def test_a_shrunken_plan_fails_like_the_whole_one() -> None:
    found = find("lock-kept", range(1, 2))
    assert found is not None
    small = shrunken("lock-kept", found)
    assert small.rule == found.rule
    assert small.plan.size < found.plan.size // 2
