"""Traces of real daemons, read back from a collector on loopback: over two agents, two hosts, and kills."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.model.trace import context_of
from tests.support.collector import Collector, Seen
from tests.support.daemon import NO_PORTS, Daemon, eventually

pytest.importorskip("opentelemetry.sdk", reason="the extra `otel` is not installed")

SERVER, CLIENT, INTERNAL = 2, 3, 1
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
SECRET = "collector-Geheimnis"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def config(collector: Collector, more: str = "") -> str:
    return (
        f'{NO_PORTS}[traces]\nendpoint = "{collector.url}"\nheaders = {{ Authorization = "Bearer {SECRET}" }}\n{more}'
    )


@pytest.fixture
def daemon(tmp_path: Path, collector: Collector) -> Iterator[Daemon]:
    (tmp_path / "here").mkdir()
    daemon = Daemon(tmp_path / "here", config=config(collector)).start()
    for name in ("ann", "bob"):
        daemon.start_agent(name=name)
    yield daemon
    assert daemon.end() == 0


def send(daemon: Daemon, agent: str, text: str, *, sender: str = "", **headers: str) -> str:
    """The task's id; `sender` is an agent that sends, by its own token."""
    head = dict(headers)
    if sender:
        head["Authorization"] = f"Bearer {daemon.token_of(daemon.agent(sender)['id'])}"
    body = {"message": {"role": "user", "parts": [{"type": "text", "text": text}]}}
    answer = daemon.request("POST", f"/agents/{agent}/tasks/send", body, head)
    assert answer.status == 200, answer.json
    return str(answer.json["task"]["id"])


def whole(collector: Collector, task: str) -> Seen:
    """The span of the task, once it has arrived."""
    span_id = context_of(task, {}, share=1.0).span_id
    return eventually(lambda: collector.spans.get(span_id), f"the span of {task} arrives")


def below(collector: Collector, parent: Seen) -> set[str]:
    return {span.name for span in collector.spans.values() if span.parent_id == parent.span_id}


@pytest.mark.parametrize(
    "killed", [pytest.param(False, marks=pytest.mark.night, id="as it goes"), pytest.param(True, id="over a kill")]
)
def test_one_trace_over_two_agents(daemon: Daemon, collector: Collector, tmp_path: Path, killed: bool) -> None:
    """A client that is traced asks ann, who asks bob while she works on it; the daemon may be killed meanwhile."""
    go = tmp_path / "go"
    of_ann = send(daemon, "ann", f"until {go}\necho Geheimnis-1", traceparent=PARENT, tracestate="vendor=1")
    daemon.task_in(of_ann, "working")
    eventually(lambda: daemon.agent("ann")["activity"] == "busy", "ann works")
    of_bob = send(daemon, "bob", "echo Geheimnis-2", sender="ann")
    daemon.ended(of_bob)
    if killed:
        daemon.kill9()
        daemon.start()
    go.touch()
    assert daemon.ended(of_ann)["status"] == "completed"
    ann, bob = whole(collector, of_ann), whole(collector, of_bob)
    assert {span.trace_id for span in collector.spans.values()} == {TRACE}
    assert (ann.name, ann.parent_id, ann.kind, ann.state) == ("invoke_agent ann", SPAN, SERVER, "vendor=1")
    assert (bob.name, bob.parent_id, bob.kind) == ("invoke_agent bob", ann.span_id, SERVER)
    for span in (ann, bob):
        assert below(collector, span) >= {"queue", "deliver", "turn"}
        assert not span.failed
    assert ann.begin <= bob.begin <= bob.end <= ann.end
    assert bob.attributes["synapse.sender.id"] == daemon.agent("ann")["id"]
    assert ann.resource["service.name"] == "synapsed"
    assert b"Geheimnis" not in b"".join(collector.bodies)
    assert {head["authorization"] for head in collector.headers} == {f"Bearer {SECRET}"}
    assert SECRET not in daemon.log()
    assert len(collector.spans) == 8


@pytest.mark.night
def test_what_was_over_before_the_kill_and_had_not_been_sent(daemon: Daemon, collector: Collector) -> None:
    collector.status = 503
    tasks = [send(daemon, "ann", f"echo {number}") for number in range(3)]
    for task in tasks:
        daemon.ended(task)
    eventually(lambda: collector.attempts > 0, "it was tried")
    daemon.kill9()
    daemon.start()
    daemon.ready("ann")
    assert daemon.ctl("send", "ann", "--wait", "--", "echo goes on").out == "goes on\n"
    collector.status = 200
    for task in tasks:
        assert whole(collector, task).attributes["synapse.task.state"] == "completed"
    eventually(lambda: len(collector.named("turn")) == 4, "the last one arrives too")


@pytest.mark.night
def test_one_trace_over_two_hosts(daemon: Daemon, collector: Collector, tmp_path: Path) -> None:
    """Over A2A to an agent of another daemon, which sends its spans to the same collector."""
    (tmp_path / "there").mkdir()
    there = Daemon(tmp_path / "there", config=config(collector)).start()
    try:
        there.start_agent(name="far")
        url = f"http://127.0.0.1:{there.port}/agents/far"
        added = daemon.ctl("external", "add", url, "--alias", "far")
        assert added.code == 0, added.err
        task = send(daemon, "far", "echo hello")
        assert daemon.ended(task)["status"] == "completed"
        (over_there,) = there.get("/control/tasks").json
        here, remote = whole(collector, task), whole(collector, over_there["id"])
        assert (here.name, here.kind, here.parent_id) == ("invoke_agent far", CLIENT, "")
        assert (remote.name, remote.kind, remote.parent_id) == ("invoke_agent far", SERVER, here.span_id)
        assert here.trace_id == remote.trace_id
        assert here.attributes["synapse.profile"] == "external"
    finally:
        assert there.end() == 0


@pytest.mark.night
def test_a_context_in_the_message_of_a2a(daemon: Daemon, collector: Collector) -> None:
    """It counts for more than the headers, which may be a proxy's."""
    message: dict[str, Any] = {
        "messageId": "m",
        "role": "ROLE_USER",
        "parts": [{"text": "echo hello"}],
        "metadata": {"traceparent": PARENT},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    headers = {"A2A-Version": "1.0", "traceparent": f"00-{'1' * 32}-{'2' * 16}-01"}
    answer = daemon.request("POST", "/agents/ann/a2a", body, headers).json
    span = whole(collector, answer["result"]["task"]["id"])
    assert (span.trace_id, span.parent_id) == (TRACE, SPAN)


@pytest.mark.night
def test_a_failed_task_and_one_without_a_parent(daemon: Daemon, collector: Collector) -> None:
    task = send(daemon, "ann", "crash", traceparent="nonsense")
    assert daemon.ended(task)["status"] == "failed"
    span = whole(collector, task)
    assert span.failed
    assert span.attributes["error.type"] == "AGENT_EXITED"
    assert (span.parent_id, span.trace_id) == ("", context_of(task, {}, share=1.0).trace_id)


@pytest.mark.night
def test_a_collector_that_is_not_there_holds_up_nobody(tmp_path: Path, collector: Collector) -> None:
    text = config(collector).replace(collector.url, "http://127.0.0.1:1/v1/traces")
    daemon = Daemon(tmp_path, config=text).start()
    try:
        daemon.start_agent()
        for number in range(3):
            assert daemon.ctl("send", "dummy", "--wait", "--", f"echo {number}").out == f"{number}\n"
        eventually(lambda: "takes no spans" in daemon.log(), "it says so")
        assert daemon.log().count("takes no spans") == 1, "once"
        assert SECRET not in daemon.log()
    finally:
        assert daemon.end() == 0


@pytest.mark.night
def test_where_there_are_no_traces_a_context_is_passed_on(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path).start()
    try:
        daemon.start_agent(name="ann")
        task = send(daemon, "ann", "echo hello", traceparent=PARENT)
        assert daemon.ended(task)["metadata"]["traceparent"] == PARENT
        assert "traceparent" not in json.dumps(daemon.ended(send(daemon, "ann", "echo hello")))
        assert not (daemon.home / "state" / "traces.cursor").exists()
    finally:
        assert daemon.end() == 0
