"""Streams of a task over a kill of the daemon: the subscriber was away for many events, and gets each once."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.gated import first_of
from tests.support.streams import hand_over, jsonrpc_events, until

AGENT = "dummy"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path).start()
    daemon.start_agent()
    yield daemon
    daemon.end()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("made", first_of([250, 1000]))
def test_away_for_many_events_and_two_kills(daemon: Daemon, made: int) -> None:
    task = daemon.send("sleep 600")
    daemon.task_in(task, "working")
    path = f"/agents/{AGENT}/tasks/{task}/subscribe"
    seen = until(daemon, path, None, 2)
    assert [event["data"]["state"] for event in seen] == ["submitted", "working"]

    hand_over(daemon, task, AGENT, range(made // 2))
    daemon.kill9()
    daemon.start()
    daemon.task_in(task, "working")
    hand_over(daemon, task, AGENT, range(made // 2, made))

    # Some of it, then away once more, and the daemon is killed again.
    seen += until(daemon, path, seen[-1]["id"], made // 3)
    daemon.kill9()
    daemon.start()
    daemon.task_in(task, "working")
    with ExitStack() as stack:
        v10 = jsonrpc_events(daemon, AGENT, "SubscribeToTask", task, stack, **{"A2A-Version": "1.0"})
        v03 = jsonrpc_events(daemon, AGENT, "tasks/resubscribe", task, stack)
        snapshot10, snapshot03 = next(v10)["task"], next(v03)
        hand_over(daemon, task, AGENT, range(made, made + 1))
        assert daemon.post(f"/agents/{AGENT}/tasks/{task}/cancel", {}).status == 200
        rest10, rest03 = list(v10), list(v03)
    seen += until(daemon, path, seen[-1]["id"], None)

    ids = [event["id"] for event in seen]
    assert ids == sorted(set(ids))
    texts = [event["data"]["artifact"]["parts"][0]["text"] for event in seen if event["event"] == "artifact"]
    assert [text for text in texts if text.isdigit()] == [str(number) for number in range(made + 1)]
    assert seen[-1]["data"]["state"] == "canceled"
    assert daemon.request("GET", path, headers={"Last-Event-ID": str(ids[-1])}).status == 204

    # A2A tells the task as it is, and then what follows: together each artifact once.
    whole = [f"made-{number}" for number in range(made + 1)]
    told = [artifact["artifactId"] for artifact in snapshot10["artifacts"]]
    told += [event["artifactUpdate"]["artifact"]["artifactId"] for event in rest10 if "artifactUpdate" in event]
    assert [each for each in told if each.startswith("made-")] == whole
    told = [artifact["artifactId"] for artifact in snapshot03["artifacts"]]
    told += [event["artifact"]["artifactId"] for event in rest03 if event["kind"] == "artifact-update"]
    assert [each for each in told if each.startswith("made-")] == whole
    assert rest10[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"
    assert (rest03[-1]["status"]["state"], rest03[-1]["final"]) == ("canceled", True)
