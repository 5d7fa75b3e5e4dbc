"""The tables of moods in the documentation are those of the program."""

from scripts.events import DOCUMENT
from scripts.moods import document


def test_the_tables_are_what_counts():
    assert DOCUMENT.read_text() == document(), "run 'python -m scripts.moods'"
