"""What links tell of the recorded programs: of every recording, the lines in `recordings/`.

The link wrote them before its session was made pure, and the session since: both were equal.
`SYNAPSED_RECORD_LINKS=1` writes them again, for whoever changes on purpose what is told, and reads the difference.
"""

import os
from operator import attrgetter
from pathlib import Path

import pytest

from tests.golden.replay import CASES, Case
from tests.pty.recorded_links import played
from tests.support.gated import chosen

pytestmark = pytest.mark.recorded

HERE = Path(__file__).parent / "recordings"
REWRITES = os.environ.get("SYNAPSED_RECORD_LINKS") == "1"


@pytest.mark.parametrize("case", chosen(CASES, attrgetter("name")), ids=attrgetter("name"))
def test_a_link_tells_of_a_recorded_program_what_it_always_told(case: Case, tmp_path: Path) -> None:
    expected = HERE / f"{case.name.replace('/', '-')}.txt"
    told = "\n".join(played(case, tmp_path)) + "\n"
    if REWRITES:
        expected.write_text(told)
    assert told == expected.read_text()


@pytest.mark.parametrize("case", chosen(CASES[::6], attrgetter("name")), ids=attrgetter("name"))
def test_a_stage_that_answers_later_changes_nothing(case: Case, tmp_path: Path) -> None:
    """Output, keys and what the program reports come in between: what is told is the same at each moment."""
    expected = HERE / f"{case.name.replace('/', '-')}.txt"
    assert sorted(played(case, tmp_path, late=True)) == sorted(expected.read_text().splitlines())
