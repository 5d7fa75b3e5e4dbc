"""The rule, counted: the kernel knows no part, and no part another."""

from scripts.house import Against, sizes, words
from synapsed.parts.list import NAMES


def test_no_import_is_against_the_rule() -> None:
    against = Against.found()
    assert (against.to_parts, against.between) == ([], [])


def test_it_counts() -> None:
    assert any(name.strip() == part for part in NAMES for name, _ in sizes())
    ((_, told),) = words()
    assert int(told.partition(":")[0]) > 0
