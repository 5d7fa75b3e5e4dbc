"""kill -9 of the daemon in mid-turn, at ten different moments: nothing is lost, nothing is typed twice."""

import time

import pytest

from tests.real.agents import MAIN, RealAgent, StartAgent, nonce
from tests.real.script import expected_answer
from tests.support.streams import hand_over, until

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

MOMENTS_S = (0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, None, None)
"""After the send returned; None: when the model is in the middle of its answer, and (the last) has given it while the
daemon was dead."""


@pytest.mark.parametrize("cli", MAIN)
def test_ten_kills_of_the_daemon_in_mid_turn(cli: str, start_agent: StartAgent) -> None:
    agent = start_agent(cli)
    pid = agent.pid
    for number, moment in enumerate(MOMENTS_S):
        _one_kill(agent, moment, finish_while_dead=number == len(MOMENTS_S) - 1)
        assert agent.pid == pid


def _one_kill(agent: RealAgent, moment: float | None, *, finish_while_dead: bool) -> None:
    daemon, word = agent.daemon, nonce()
    message = f"[[hold-mid:{word}]] {word} [[answer:lines20]]"
    daemon.ready(agent.name)
    task_id = agent.send(message)
    path = f"/agents/{agent.name}/tasks/{task_id}/subscribe"
    with daemon.sse(path) as stream:
        first = next(stream)
    if moment is None:
        agent.model.wait_for_turn(word)
        daemon.task_in(task_id, "working")
    else:
        time.sleep(moment)  # the moment is what is varied, not waited for
    daemon.kill9()
    if finish_while_dead:
        agent.model.release(word)
        agent.model.wait_for(lambda requests: any(word in r.user and r.outcome == "sent" for r in requests))
    daemon.start()
    agent.model.release(word)
    done = daemon.task_in(task_id, "completed", "failed", "canceled")
    assert done["status"] == "completed", done
    assert done["artifacts"][-1]["parts"][0]["text"] == expected_answer(message)
    assert agent.model.submissions(word) == 1
    with daemon.sse(path, last_id=first["id"]) as stream:
        rest = list(stream)
    with daemon.sse(path, last_id=0) as stream:
        whole = list(stream)
    assert [first, *rest] == whole, "the stream resumes without gap or double"
    assert whole[-1]["data"]["state"] == "completed"


def test_a_stream_whose_subscriber_was_away_for_a_thousand_events(start_agent: StartAgent) -> None:
    """In the middle of a real turn, of which the daemon is killed too: the rest comes after `Last-Event-ID`, once."""
    agent = start_agent("claude")
    daemon, word = agent.daemon, nonce()
    message = f"[[hold-mid:{word}]] {word} [[answer:lines200]]"
    task_id = agent.send(message)
    path = f"/agents/{agent.name}/tasks/{task_id}/subscribe"
    seen = until(daemon, path, None, 2)
    agent.model.wait_for_turn(word)
    hand_over(daemon, task_id, agent.name, range(500))
    daemon.kill9()
    daemon.start()
    daemon.task_in(task_id, "working")
    hand_over(daemon, task_id, agent.name, range(500, 1000))
    agent.model.release(word)
    seen += until(daemon, path, seen[-1]["id"], None)
    ids = [event["id"] for event in seen]
    assert ids == sorted(set(ids))
    artifacts = [event["data"]["artifact"] for event in seen if event["event"] == "artifact"]
    made = [int(each["artifact_id"].removeprefix("made-")) for each in artifacts if "made-" in each["artifact_id"]]
    assert made == list(range(1000))
    assert [event["data"]["state"] for event in seen if event["event"] == "status"] == [
        "submitted",
        "working",
        "completed",
    ]
    pieces = [each["parts"][0]["text"] for each in artifacts if each["artifact_id"] == "answer"]
    assert "".join(pieces) == expected_answer(message)
    assert agent.model.submissions(word) == 1
    assert daemon.request("GET", path, headers={"Last-Event-ID": str(ids[-1])}).status == 204
