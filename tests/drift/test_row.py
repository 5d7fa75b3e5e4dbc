"""What is tried of a program."""

from tests.drift.row import cells


def test_a_draft_needs_a_composer_of_the_program() -> None:
    last = {cli: cells(cli)[-1].__name__ for cli in ("pi", "vibe")}
    assert last == {"pi": "draft", "vibe": "restart"}
