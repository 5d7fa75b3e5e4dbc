"""The inbox of a daemon: what a program asks is in it, the same after `kill -9`, and gone once it is answered."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually
from tests.support.threaded import real_one


@pytest.fixture
def daemon(tmp_path: Path, kind: type[Daemon]) -> Iterator[Daemon]:
    daemon = kind(tmp_path, config=ANY_PORTS).start()
    daemon.start_agent(profile="generic", name="shell", args=["bash", "--norc"], env={"PS1": "$ "})
    yield daemon
    daemon.end()


def inbox(daemon: Daemon) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = daemon.request("GET", "/inbox").json
    return items


def kinds(daemon: Daemon, *wanted: str) -> list[dict[str, Any]]:
    """The inbox, once it has these and nothing else."""

    def look() -> list[list[dict[str, Any]]]:
        items = inbox(daemon)
        return [items] if [item["kind"] for item in items] == list(wanted) else []

    return eventually(look, f"in the inbox: {wanted}")[0]


@real_one
def test_a_question_over_a_kill(daemon: Daemon) -> None:
    task = daemon.send("read -rp 'Really? (y/n) ' it; echo \"=$it=\"", "shell")
    (item,) = kinds(daemon, "question")
    assert (item["agent"], item["task"], item["prompt_type"]) == ("shell", task, "confirmation")
    assert item["question"].endswith("Really? (y/n)")
    daemon.kill9()
    daemon.start()
    assert kinds(daemon, "question") == [item]
    daemon.request("POST", f"/agents/shell/tasks/{task}/input", {"input": "y", "prompt_id": item["prompt_id"]})
    (done,) = kinds(daemon, "finished")
    assert (done["task"], "=y=" in done["question"]) == (task, True)
    assert daemon.task(task)["status"] == "completed"
    kinds(daemon)


def test_whoever_waits_needs_no_word(daemon: Daemon) -> None:
    waited = daemon.ctl("send", "shell", "echo waited", "--wait")
    assert (waited.code, "waited" in waited.out) == (0, True)
    left = daemon.send("echo left", "shell")
    (item,) = kinds(daemon, "finished")
    assert item["task"] == left
    assert daemon.request("POST", f"/inbox/{item['id']}/seen", {}).status == 200
    kinds(daemon)
