"""Every section of `make bench`, and every suite beside it, still measures. The sizes show this and nothing else."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from bench import many, parked
from bench.__main__ import SECTIONS
from bench.figures import SMOKE
from tests.web.programs import chromium

SUITES = ("emulator", "fleethosts", "keeper", "store")
"""Not among the bars. `bench.wake` and the section `ways` measure the real programs, and are tried with them."""
COMMANDS = [("bench", section) for section in SECTIONS if section != "ways"] + [(f"bench.{suite}",) for suite in SUITES]
IN_THE_GATE = "hookclient"
"""The cheapest; the others are measured at night."""
AGENTS_MAX = 200


@pytest.mark.timeout(660)
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            command,
            id=command[-1].removeprefix("bench."),
            marks=[] if command[-1] == IN_THE_GATE else pytest.mark.night,
        )
        for command in COMMANDS
    ],
)
def test_it_measures(command: tuple[str, ...]) -> None:
    if command[-1] == "a2a" and not all(map(find_spec, ("uvicorn", "uvloop", "httptools"))):
        pytest.skip("the reference server needs the extra `bench`")
    if command[-1] == "page" and chromium() is None:
        pytest.skip("*** FIRST LOADS OF THE PAGE NOT MEASURED: no chromium (apt-get install chromium) ***")
    env = {**os.environ, SMOKE: "1"}
    argv = [sys.executable, "-m", *command]
    done = subprocess.run(argv, check=False, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert any(character.isdigit() for character in done.stdout.partition("---")[2] or done.stdout), done.stdout
    assert "not measured" not in done.stdout


def test_no_two_sections_take_the_same_ports() -> None:
    """They are tried side by side."""
    taken = [range(section.FIRST_PORT, section.FIRST_PORT + AGENTS_MAX) for section in (many, parked)]
    assert max(section.AGENTS for section in (many, parked)) <= AGENTS_MAX
    assert not set(taken[0]) & set(taken[1])
