"""docs/clocks.md names everything that compares with the wall clock: whoever adds to it says what a jump does there."""

import re
from pathlib import Path

import pytest

from tests.clocks.uses import LIST, uses

DOCUMENT = Path(__file__).parents[2] / "docs" / "clocks.md"


@pytest.mark.slow
def test_every_use_of_the_wall_clock_is_listed() -> None:
    known, found = LIST.read_text().splitlines(), uses()
    news = "\n".join(line for line in found if line not in known)
    assert not news, f"see docs/clocks.md which clock is for what; then 'python -m tests.clocks.uses':\n{news}"
    assert found == known, "some are gone: 'python -m tests.clocks.uses'"


def test_the_document_has_a_row_for_each_module() -> None:
    named = set(re.findall(r"`((?:synapse(?:d|ctl)|packages)/[\w/-]+\.(?:py|js))`", DOCUMENT.read_text()))
    used = {line.partition(" ")[0] for line in LIST.read_text().splitlines()}
    assert sorted(used - named) == [], "these use the wall clock, and the document does not say what a jump does there"
    assert sorted(named - used) == [], "these use it no more"
