"""One set of words for one thing: the tables of `docs/states.md`, the tool and the page have the same."""

import json
import re

from scripts.states import DOCUMENT, KIND_MEANS, MEANS, STATIC, TASK_MEANS, document, words
from synapsectl.agentrows import HELD, ORDER
from synapsectl.inbox.items import KINDS
from synapsectl.inbox.items import WHERE as WHERE_ANSWERED
from synapsectl.inbox.view import STYLES
from synapsed.model.task import TaskState
from synapsed.parts.attention.notification_policy import WORDS


def constant(file: str, name: str) -> object:
    """A table of the page, as it stands in its module."""
    found = re.search(rf"const {name} = ([{{\[].*?[}}\]]);", (STATIC / "js" / file).read_text(), re.DOTALL)
    assert found, f"{file} has no {name}"
    quoted = re.sub(r"([{,]\s*)(\w+):", r'\1"\2":', found[1])
    return json.loads(re.sub(r",\s*([}\]])", r"\1", quoted))


def test_the_tables_are_those_of_the_program() -> None:
    assert DOCUMENT.read_text() == document(), "run 'python -m scripts.states'"


def test_the_page_has_the_words_of_the_tool() -> None:
    assert constant("words.js", "KINDS") == KINDS
    assert constant("words.js", "HELD") == HELD
    assert constant("words.js", "WHERE") == WHERE_ANSWERED


def test_the_page_has_the_order_of_the_list() -> None:
    assert constant("agents.js", "ORDER") == list(ORDER)


def test_each_word_has_a_meaning_and_a_colour() -> None:
    assert set(words()) == set(MEANS)
    assert set(KINDS) == set(KIND_MEANS) == set(STYLES) == set(WORDS)
    assert {str(state) for state in TaskState} == set(TASK_MEANS)
