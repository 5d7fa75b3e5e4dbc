"""The rule, counted: the kernel knows no part, and no part another."""

from scripts.house import OF_PARTS, SHARED, Against, libraries_of_parts, sizes, words
from synapsed.parts.list import NAMES


def test_no_import_is_against_the_rule() -> None:
    against = Against.found()
    assert (against.to_parts, against.between) == ([], [])


def test_a_library_that_is_not_counted_for_the_kernel_is_imported_by_parts_alone() -> None:
    assert libraries_of_parts() == OF_PARTS
    assert any(name.strip() == SHARED for name, _ in sizes())


def test_it_counts() -> None:
    assert any(name.strip() == part for part in NAMES for name, _ in sizes())
    both = [f"the kernel with {what}" for what in ("libraries of parts", "these and synapsectl")]
    assert [name for name, _ in sizes()][-2:] == both
    ((_, told),) = words()
    assert int(told.partition(":")[0]) > 0
