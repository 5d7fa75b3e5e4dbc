"""docs/environment.md has the table that the code obeys."""

from scripts.environment import DOCUMENT, document


def test_the_table_is_the_code() -> None:
    assert DOCUMENT.read_text() == document(), "run 'python -m scripts.environment'"
