"""Many turns, and slow ones: every answer exact and its own, none early."""

import pytest

from tests.real.agents import EVERY, StartAgent, nonce
from tests.real.script import expected_answer

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("cli", EVERY)
def test_a_hundred_turns(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    for turn in range(100):
        word = nonce()
        agent.ask_exactly(f"Turn {turn}: {word}.")
        assert agent.model.submissions(word) == 1, (turn, word)


@pytest.mark.parametrize("cli", EVERY)
@pytest.mark.parametrize("timing", ["[[delay:0.05]]", "[[delay:2]]", "[[delay:40]]", "[[stall:2]]", "[[stall:40]]"])
def test_no_answer_is_early(cli: str, timing: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    word = nonce()
    message = f"{timing} {word} [[answer:lines20]]"
    task_id = agent.send(message)
    done = agent.daemon.task_in(task_id, "completed", "failed", "canceled", patience=180)
    assert done["status"] == "completed", done
    assert next(a for a in done["artifacts"] if a["artifact_id"] == "answer")["parts"][0]["text"] == expected_answer(
        message
    )
    (request,) = agent.model.turns(word)
    assert request.outcome == "sent"
