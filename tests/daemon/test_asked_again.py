"""A question that is asked again keeps its id over a kill of the daemon, and an answer to the one before is refused."""

import contextlib
import sqlite3
from pathlib import Path

from tests.support.daemon import ANY_PORTS, Daemon, eventually

COMMAND = "until read -rsp 'Password: ' it; echo; [ \"$it\" = right ]; do :; done; echo done"


def kept(home: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(f"file:{home / 'state' / 'synapsed.db'}?mode=ro", uri=True)) as database:
        return [state for (state,) in database.execute("SELECT data FROM checkpoints") if '"asked":{"' in state]


def prompt_of(daemon: Daemon, other_than: str = "") -> str:
    def look() -> str | None:
        prompt = daemon.agent("shell")["prompt"]
        return prompt["prompt_id"] if prompt and prompt["prompt_id"] != other_than else None

    return eventually(look, "it asks")


def test_a_question_that_is_asked_again_is_the_same_to_the_next_daemon(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, config=ANY_PORTS).start()
    try:
        daemon.start_agent(profile="generic", name="shell", args=["bash", "--norc"], env={"PS1": "$ "})
        task = daemon.send(COMMAND, "shell")
        first = prompt_of(daemon)
        assert daemon.post("/control/agents/shell/input", {"input": "wrong", "prompt_id": first}).status == 200
        again = prompt_of(daemon, first)
        assert again.startswith(first)
        eventually(lambda: kept(tmp_path), "the screen is durable")
        daemon.kill9()
        daemon.start()
        assert prompt_of(daemon) == again
        refused = daemon.post("/control/agents/shell/input", {"input": "right", "prompt_id": first})
        assert refused.json["error"]["code"] == "PROMPT_CHANGED"
        assert daemon.post("/control/agents/shell/input", {"input": "right", "prompt_id": again}).status == 200
        assert daemon.ctl("task", task, "--wait").code == 0
    finally:
        daemon.end()
