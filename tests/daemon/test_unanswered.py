"""Questions that nobody answers: who waits behind one is told so, and they may end by themselves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from synapsed.model.task import Prompt, PromptOption
from tests.support.daemon import ANY_PORTS, Daemon
from tests.support.served_world import ServedWorld, served_world

PATIENT = """
[agents.shell]
profile = "generic"
args = ["bash", "--norc"]
env = { PS1 = "$ " }
autostart = true
"""
REALLY = Prompt(
    prompt_id="p1",
    type="permission",
    prompt="Really go on? (y/n)",
    options=[PromptOption(key="y", label="Yes"), PromptOption(key="n", label="No")],
)
QUESTION = "read -rp 'Really go on? (y/n) ' it; echo \"=$it=\""


@pytest.fixture
def below(tmp_path: Path) -> Iterator[ServedWorld]:
    with served_world(tmp_path) as world:
        yield world


@pytest.fixture
def daemon(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS + PATIENT + getattr(request, "param", "")).start()
    daemon.ready("shell")
    yield daemon
    daemon.end()


def test_what_waits_behind_a_question_says_so(below: ServedWorld) -> None:
    daemon = below.daemon
    below.start("shell")
    asking = daemon.send(QUESTION, "shell")
    below.asks(REALLY)
    daemon.task_in(asking, "input_required")
    first, second = daemon.send("echo 1", "shell"), daemon.send("echo 2", "shell")
    behind = daemon.ctl("task", second, "--json").json["task"]["waits_behind"]
    assert (behind["task"], behind["ahead"]) == (asking, 1)
    assert behind["prompt"]["prompt"] == "Really go on? (y/n)"
    words = f"waits behind task {asking[:8]}, which asks: Really go on? (y/n); 'synapsectl approve {asking[:8]}'"
    assert words in daemon.ctl("task", first).out
    assert words in daemon.ctl("status", "shell").out
    waited = daemon.ctl("send", "shell", "echo 3", "--wait", "--timeout", "4")
    assert (waited.code, words in waited.err) == (5, True), waited
    assert daemon.ctl("approve", asking).code == 0
    assert below.world.link.answers == [("y", REALLY.prompt_id)]
    for task in (asking, first, second):
        below.ends("done")
        assert daemon.ended(task)["status"] == "completed"
    assert daemon.ctl("task", second, "--json").json["task"]["waits_behind"] is None


@pytest.mark.parametrize("daemon", ["question_timeout = '3s'\n"], indirect=True)
def test_a_question_ends_after_its_time_also_over_a_restart(daemon: Daemon) -> None:
    asking = daemon.task_in(daemon.send(QUESTION, "shell"), "input_required", "failed")["id"]  # 3 s may be over
    waiting = daemon.send("echo next", "shell")
    daemon.kill9()
    daemon.start()
    failed = daemon.ended(asking)
    assert (failed["status"], failed["error"]["code"]) == ("failed", "TIMEOUT")
    assert failed["error"]["message"] == "nobody answered within 3s: Really go on? (y/n)"
    assert daemon.ended(waiting)["status"] == "completed"


@pytest.mark.night
@pytest.mark.parametrize("daemon", ["question_timeout = '600s'\n"], indirect=True)
def test_a_reload_changes_the_time_at_once(daemon: Daemon) -> None:
    asking = daemon.task_in(daemon.send(QUESTION, "shell"), "input_required")["id"]
    daemon.config_file.write_text(daemon.config_file.read_text().replace("600s", "1s"))
    assert daemon.ctl("reload").code == 0
    assert daemon.ended(asking)["error"]["code"] == "TIMEOUT"


def test_a_time_that_is_none_is_told(below: ServedWorld) -> None:
    daemon = below.daemon
    below.start("shell")
    daemon.config_file.write_text(daemon.config_file.read_text() + PATIENT + "question_timeout = 'soon'\n")
    told = daemon.ctl("reload")
    assert told.code != 0
    assert "question_timeout: must be a time like '90s'" in told.err + told.out
    assert daemon.agent("shell")["state"] == "running", "the agent is still there"
