"""Answers read off the screen."""

from synapsed.profiles import Answer
from synapsed.terminal.answer import below_message, from_screen

BLOCKS = Answer(mode="blocks", start="^● ", end="^─{8,}")


def test_answer_that_quotes_the_message() -> None:
    text = "> say hello\n\n● You said: say hello\n──────────\n> "
    assert from_screen(BLOCKS, text, "say hello") == "You said: say hello"


def test_answer_that_is_the_message() -> None:
    assert from_screen(BLOCKS, "> say hello\n\n● say hello\n──────────", "say hello") == "say hello"


def test_the_same_message_twice_is_answered_by_what_stands_below_the_last() -> None:
    text = "> again\n● one\n> again\n● two, again\n──────────"
    assert from_screen(BLOCKS, text, "again") == "two, again"


def test_message_behind_a_mark_is_found_for_want_of_a_better_place() -> None:
    assert below_message("❯ [message] /clear\nbelow", "/clear", "^● ") == "below"
    assert below_message("nothing of it\nbelow", "/clear") == "nothing of it\nbelow"
