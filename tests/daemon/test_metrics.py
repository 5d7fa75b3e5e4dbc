"""The metrics of a real daemon with a real program: scraped as Prometheus does, by whom, and over a kill."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.telemetry.lint import problems
from tests.parts.telemetry.parsed import OPENMETRICS, Scrape
from tests.support.daemon import PATIENCE_S, Daemon, eventually

DUMMY = {"agent": "dummy", "profile": "dummy"}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path).start()
    daemon.start_agent()
    yield daemon
    daemon.end()


def scrape(daemon: Daemon) -> Scrape:
    answer = daemon.request("GET", "/metrics", headers={"Accept": OPENMETRICS})
    assert answer.status == 200, answer.body
    return Scrape.of(answer.body.decode())


def test_a_turn_of_a_real_program(daemon: Daemon) -> None:
    assert daemon.ctl("send", "dummy", "--wait", "--", "echo hello").out == "hello\n"
    seen = scrape(daemon)
    assert seen("synapse_tasks_ended_total", profile="dummy", state="completed") == 1
    assert seen("synapse_task_completion_seconds_count", profile="dummy") == 1
    assert seen("synapse_task_delivery_seconds_count", profile="dummy") == 1
    assert seen("synapse_task_turn_seconds_count", profile="dummy") == 1
    assert seen("synapse_events_total", type="taskDelivered") == 1
    assert (seen("synapse_agent_output_bytes_total", **DUMMY) or 0) > 0
    assert (seen("synapse_store_commit_seconds_count") or 0) > 0
    assert (seen("synapse_store_read_seconds_count") or 0) > 0
    assert (seen("synapse_store_size_bytes") or 0) > 0
    assert seen.sum("synapse_events_total", type="taskStatus") == 3
    eventually(lambda: (scrape(daemon)("synapse_loop_lag_seconds_count") or 0) > 0, "the event loop is looked at")
    assert problems(daemon.get("/metrics").body.decode()) == []
    written = seen("synapse_agent_output_bytes_total", **DUMMY)
    daemon.kill9()
    daemon.start()
    daemon.ready("dummy")
    after = scrape(daemon)
    assert after.sum("synapse_tasks_ended_total") == 0, "a counter begins with its daemon"
    assert (after("synapse_agent_output_bytes_total", **DUMMY) or 0) >= (written or 0), "the program's own go on"
    assert daemon.ctl("stop", "--remove", "dummy").code == 0
    assert scrape(daemon).labels("agent") == set()


def test_a_turn_that_a_kill_fell_into_is_measured_whole(daemon: Daemon) -> None:
    task = daemon.post("/agents/dummy/message", {"content": "ask\necho done"}).json["task_id"]
    eventually(lambda: daemon.task(task)["status"] == "input_required", "it asks")
    daemon.kill9()
    daemon.start()
    eventually(lambda: daemon.agent()["activity"] == "waiting", "it still asks")
    daemon.post(f"/agents/dummy/tasks/{task}/input", {"input": "y"})
    eventually(lambda: daemon.task(task)["status"] == "completed", "it is done")
    seen = scrape(daemon)
    assert seen("synapse_task_completion_seconds_count", profile="dummy") == 1
    assert seen("synapse_task_input_seconds_count", profile="dummy") == 1
    assert seen("synapse_task_queue_seconds_count", profile="dummy") is None
    assert seen.sum("synapse_tasks_submitted_total") == 0


@pytest.mark.night
def test_the_token_is_the_owners_and_reads_nothing_else(daemon: Daemon) -> None:
    path = daemon.home / "state" / "metrics-token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = path.read_text().strip()
    assert token != (daemon.home / "state" / "token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    assert daemon.request("GET", "/metrics", headers=headers).status == 200
    assert daemon.request("GET", "/agents", headers=headers).status == 401
    daemon.kill9()
    daemon.start()
    assert daemon.request("GET", "/metrics", headers=headers).status == 200, "it outlives the daemon"
    assert token not in daemon.log()


@pytest.mark.night
@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="needs root to become somebody else")
def test_a_prometheus_of_another_user(daemon: Daemon) -> None:
    token = (daemon.home / "state" / "metrics-token").read_text().strip()
    code = (
        "import os, sys, http.client, encodings.idna\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "def ask(path, headers):\n"
        "    c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
        "    c.request('GET', path, headers=headers)\n"
        "    return c.getresponse().status\n"
        "own = {'Authorization': 'Bearer ' + sys.argv[2]}\n"
        "print(ask('/metrics', {}), ask('/metrics', own), ask('/agents', own))\n"
    )
    command = [sys.executable, "-S", "-E", "-c", code, str(daemon.port), token]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S, cwd="/")
    assert done.stdout.split() == ["403", "200", "401"]


@pytest.mark.night
def test_they_can_be_switched_off(tmp_path: Path) -> None:
    config = '[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n[metrics]\nenabled = false\n'
    daemon = Daemon(tmp_path, config=config).start()
    try:
        assert daemon.get("/metrics").status == 404
        assert not (daemon.home / "state" / "metrics-token").exists()
    finally:
        daemon.end()
