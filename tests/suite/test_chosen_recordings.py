"""The recordings that the gate plays are those that `scripts.chosen_recordings` chooses, and show all they must."""

import json
from pathlib import Path

import pytest

from scripts.chosen_recordings import CHOSEN, MOST, choose, document
from tests.golden.replay import CASES

pytestmark = pytest.mark.recorded

STORIES = Path(__file__).parents[1] / "pty" / "recordings"
ACTIVITIES = {"starting", "ready", "busy", "waiting", "unknown"}


def states(name: str) -> set[tuple[str, str]]:
    """The profile of a recording, with each activity of it that is told."""
    lines = (STORIES / f"{name.replace('/', '-')}.txt").read_text().splitlines()
    told = {line.split(" ")[1].removesuffix(",") for line in lines if ", receives" in line or ", held" in line}
    assert told <= ACTIVITIES
    return {(name.partition("-")[0], activity) for activity in told}


def test_the_list_is_what_is_chosen() -> None:
    assert json.loads(CHOSEN.read_text()) == document(), "run 'python -m scripts.chosen_recordings'"


def test_every_profile_is_seen_in_every_activity() -> None:
    chosen = json.loads(CHOSEN.read_text())["recordings"]
    assert len(set(chosen)) == len(chosen) <= MOST
    every = {case.name for case in CASES}
    assert set(chosen) <= every
    assert set().union(*map(states, chosen)) == set().union(*map(states, every))


def test_the_one_that_adds_most_is_next_and_the_profiles_take_turns() -> None:
    names = ("a-1/x", "a-1/y", "b-1/x", "b-1/z")
    needed = {name: frozenset({(name[0], "ready")}) for name in names}
    needed["b-1/z"] |= {("b", "busy")}
    wanted = {name: frozenset({(name[0], name[-1])}) for name in names}
    assert choose(needed, wanted, 2) == ["a-1/x", "b-1/z"]
    assert choose(needed, wanted, 3) == ["a-1/x", "a-1/y", "b-1/z"]
    assert choose(dict(reversed(needed.items())), wanted) == sorted(names)


def test_too_few_are_refused() -> None:
    with pytest.raises(ValueError, match=r"1 recordings are too few: .*'b: ready'"):
        choose(
            {"a-1/x": frozenset({("a", "ready")}), "b-1/x": frozenset({("b", "ready")})},
            {"a-1/x": frozenset(), "b-1/x": frozenset()},
            1,
        )
