"""What the real programs' clients are told while a turn runs: all pieces together are the answer."""

import json
import sys
from typing import Any

import pytest

from tests.real.agents import EVERY, RealAgent, StartAgent, nonce
from tests.real.script import expected_answer

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

MESSAGES = (
    "{word} [[slow:150]] [[answer:prose]]",
    "{word} [[slow:100]] [[answer:fenced]]",
    "{word} [[slow:100]] [[answer:explained]]",
    "{word} [[slow:40]] [[answer:cjk]]",
    "{word} [[slow:200]] [[answer:long-lines]]",
    "{word} [[slow:100]] [[answer:markup]]",
    "{word} [[slow:20]] [[answer:table]]",
    "{word} [[slow:60]] [[answer:japanese]]",
    "{word} [[slow:100]] [[answer:quotes]]",
    "{word} [[slow:1000]] [[answer:lines200]]",
    "{word} say: One line.",
)


def told(agent: RealAgent, message: str) -> list[dict[str, Any]]:
    """The artifacts of a task, as they are told."""
    task_id = agent.send(message)
    with agent.daemon.sse(f"/agents/{agent.name}/tasks/{task_id}/subscribe") as events:
        return [event["data"] for event in events if event["event"] == "artifact"]


@pytest.mark.parametrize("cli", EVERY)
def test_all_pieces_together_are_the_answer(cli: str, start_agent: StartAgent) -> None:
    """None of them takes back what was told before: clients that only join text have the answer."""
    agent = start_agent(cli)
    rows, wrong = [], []
    for template in MESSAGES:
        message = template.format(word=nonce())
        answer = expected_answer(message)
        pieces = [data for data in told(agent, message) if data["artifact"]["artifact_id"] == "answer"]
        texts = [data["artifact"]["parts"][0]["text"] for data in pieces]
        name = template.partition("[[answer:")[2].rstrip("]") or "line"
        rows.append((name, len(pieces), sum(map(len, texts[:-1])), len(answer)))
        if "".join(texts) != answer:
            wrong.append((name, texts, answer))
    print(json.dumps({cli: rows}), file=sys.stderr)
    assert wrong == []
    assert sum(count > 1 for _, count, _, _ in rows) >= 3
