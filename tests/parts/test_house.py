"""The rule for what is still outside of its part's folder, too: its exceptions are written down."""

from scripts.house import AGAINST, TO_GO, Against, sizes, words
from synapsed.parts.list import NAMES


def test_no_import_against_the_rule_is_new() -> None:
    assert str(Against.found()) == AGAINST.read_text(), "python -m scripts.house --against, where one has gone"


def test_what_is_to_go_is_not_there_yet() -> None:
    assert not set(NAMES) & set(TO_GO)


def test_it_counts() -> None:
    assert any(name.strip() == part for part in NAMES for name, _ in sizes())
    ((_, told),) = words()
    assert int(told.partition(":")[0]) > 0
