"""A question that a rule answers a moment later: whoever waits for the task waits for the rule."""

import pytest

from tests.ground.installed import Installed
from tests.ground.person import living_somewhere
from tests.support.daemon import NO_PORTS, PATIENCE_S

pytestmark = [pytest.mark.night, pytest.mark.timeout(10 * PATIENCE_S)]

RULE = """
[[rule]]
name = "yes"
on = { event = "inputRequired", agent = "d" }
do = { approve = true }
"""

RUNS = 20


def test_a_question_that_a_rule_answers_is_no_end(installed: Installed) -> None:
    """In every run: the daemon tells of the question before the rule answers it."""
    with living_somewhere(installed, NO_PORTS + RULE) as person:
        person.with_dummy("d")
        ends = []
        for _ in range(RUNS):
            sent = person.ctl("send", "d", "--wait", "--", "ask y/n")
            ends.append((sent.code, sent.out))
        assert ends == [(0, "Proceed? (y/n) y\nAnswered: y\n")] * RUNS, ends
