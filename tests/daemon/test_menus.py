"""Menus that no profile knows, in a real terminal: asked of the person, answered by moving the mark."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import menu
from tests.support.daemon import ANY_PORTS, Daemon


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS).start()
    daemon.start_agent(profile="generic", name="shell", args=["bash", "--norc"], env={"PS1": "$ "})
    yield daemon
    daemon.end()


def asked(daemon: Daemon, *arguments: str) -> dict[str, Any]:
    """The task that runs the menu, once it asks."""
    command = " ".join([sys.executable, menu.__file__, *(f"'{each}'" for each in arguments)])
    return daemon.task_in(daemon.send(command, "shell"), "input_required", "completed", "failed")


def answer_of(daemon: Daemon, task: dict[str, Any]) -> str:
    done = daemon.task_in(task["id"], "completed", "failed")
    return str(done["artifacts"][0]["parts"][0]["text"])


def test_the_mark_is_moved_and_enter_pressed_by_itself(daemon: Daemon) -> None:
    task = asked(daemon, "Run the tool?", "Yes", "Yes, always", "No")
    assert [option["label"] for option in task["prompt"]["options"]] == ["Yes", "Yes, always", "No"]
    assert (task["prompt"]["type"], task["prompt"]["default"]) == ("permission", "1")
    assert daemon.ctl("deny", "shell").code == 0
    assert answer_of(daemon, task) == "chosen: No"


@pytest.mark.night
def test_yes_is_said_once_and_from_wherever_the_mark_stands(daemon: Daemon) -> None:
    task = asked(daemon, "Run the tool?", "Always allow", "Yes, allow once", "No", "--marked", "2")
    assert daemon.ctl("approve", task["id"]).code == 0
    assert answer_of(daemon, task) == "chosen: Yes, allow once"


@pytest.mark.night
def test_a_mark_that_does_not_move_is_submitted_nowhere(daemon: Daemon) -> None:
    task = asked(daemon, "Which one?", "red", "green", "--stuck")
    told = daemon.ctl("input", "shell", "green")
    assert told.code != 0
    assert "the mark of its menu did not move" in told.err
    assert "nothing was submitted" in told.err
    assert daemon.task(task["id"])["status"] == "input_required"
    assert daemon.ctl("input", "shell", "red").code == 0
    assert answer_of(daemon, task) == "chosen: red"
