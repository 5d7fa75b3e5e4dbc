"""What a person copies after a question, several targets at once, help of sub-verbs, `--json` and simple terminals."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from synapsectl.client import Client
from synapsectl.errors import NoDaemon
from synapsectl.prompts import behind, example
from synapsectl.service.port import refusal
from synapsed.model.task import Task, TaskState
from tests.support.ports import free_port
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon, agent, ends, permission
from tests.synapsectl.pty_tool import DEADLINE, PtyTool


def prompt(question: str, *labels: str, **more: Any) -> dict[str, Any]:
    options = [{"key": str(number), "label": label} for number, label in enumerate(labels, 1)]
    return {"prompt_id": "p1", "type": "trust", "prompt": question, "options": options} | more


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (prompt("Do you trust this folder?", "No, exit", "Yes, I accept", default="1"), "2"),
        (prompt("Do you trust this folder?", "Yes, proceed", "No, exit"), "1"),
        (prompt("Do you trust this folder?", "Quit", "Leave it for now", "Don't"), "KEY"),
        (prompt("Run it?", "Yes, and don't ask again", "Yes", "No"), "2"),
        (prompt("Run it?", "Allow for this session", "Cancel (esc)"), "KEY"),
        (prompt("Do you want to exit?", "Yes", "No"), "KEY"),
        (prompt("Close the session?", "Continue", "Stop"), "KEY"),
        (prompt("Which one?", "the red one", "the closet"), "1"),
        (prompt("Which one?", "Close", "words"), "2"),
        (prompt("Which one?", "a", "b", own_words=True), "TEXT"),
        (prompt("Your name?"), "TEXT"),
    ],
)
def test_the_answer_to_copy_never_ends_the_program(asked: dict[str, Any], answer: str) -> None:
    assert example(asked) == answer


def test_approve_is_not_advised_for_the_end_of_a_program() -> None:
    assert "'synapsectl approve claude' answers" in behind("claude", None, prompt("Run it?", "Yes", "No"))
    assert "'synapsectl input claude …' answers" in behind("claude", None, prompt("Quit anyway?", "Yes", "No"))


@pytest.fixture
def asking(daemon: FakeDaemon, ctl: Ctl) -> str:
    daemon.script = ends(TaskState.INPUT_REQUIRED, prompt=permission())
    task = ctl("send", "claude", "x").out.strip()
    daemon.agents["claude"] = agent("claude", port=8100, activity="waiting", prompt=permission(), task=task)
    daemon.requests.clear()
    return task


def test_several_are_answered_and_the_worst_code_counts(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:
    done = ctl("approve", "codex", "nobody", "claude", "claude", "--json")
    told = json.loads(done.out)
    assert [one["target"] for one in told] == ["codex", "nobody", "claude"]
    assert [one.get("error", {}).get("code") for one in told] == ["NOT_WAITING", "UNKNOWN_AGENT", None]
    assert (told[2]["task"], told[2]["key"], told[2]["label"]) == (asking, "1", "Yes")
    assert done.code == 6, "of 6, 4 and 0"
    answers = [path for method, path, _ in daemon.requests if method == "POST"]
    assert answers == [f"/control/tasks/{asking}/input"]
    assert ctl("deny", "claude", "claude").code == 0


@pytest.mark.parametrize(
    ("verb", "own", "others"),
    [
        (("external", "add"), "--token-env", "--priority"),
        (("external", "send"), "--priority", "--token-env"),
        (("external", "list"), "--json", "--as"),
        (("external", "remove"), "ALIAS", "--as"),
        (("host", "add"), "--synapsectl", "list"),
        (("host", "list"), "--json", "--socket"),
        (("profiles", "show"), "--version", "--from-screen"),
        (("profiles", "new"), "--from-screen", "--version"),
    ],
)
def test_help_of_a_part_of_a_verb(ctl: Ctl, verb: tuple[str, ...], own: str, others: str) -> None:
    for flag in ("-h", "--help"):
        done = ctl(*verb, flag)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"usage: synapsectl {' '.join(verb)} ")
        assert (own in done.out, others in done.out) == (True, False), done.out


def test_options_of_another_part_are_refused(ctl: Ctl) -> None:
    done = ctl("external", "list", "--as", "far")
    assert (done.code, "synapsectl external list: unrecognized arguments: --as" in done.err) == (2, True)
    assert "WHAT -h" in ctl("external", "-h").out


def test_logs_and_shutdown_as_documents(daemon: FakeDaemon, ctl: Ctl, tmp_path: Path) -> None:
    told = json.loads(ctl("logs", "claude", "--json").out)
    assert (type(told["lines"]), type(told["offset"])) == (list, int)
    assert ctl("logs", "claude", "--json", "--raw").code == 2
    done = ctl("shutdown", "--json")
    assert (done.code, json.loads(done.out)) == (0, {"down": True, "keep_agents": False})


def test_profiles_as_documents(home: Path, tmp_path: Path) -> None:
    def document(*arguments: str) -> tuple[int, Any]:
        command = [sys.executable, "-m", "synapsectl", "profiles", *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
        return done.returncode, json.loads(done.stdout)

    code, shown = document("show", "dummy")
    assert (code, "command" in shown) == (0, True)
    code, refused = document("show", "nothing")
    assert (code, refused["error"]["code"]) == (2, "UNKNOWN_PROFILE")
    (file := tmp_path / "mine.toml").write_text('command = "cat"\nports = [8190, 8199]\n')
    code, checked = document("check", str(file))
    assert (code, checked["file"], type(checked["advice"])) == (0, str(file), list)


def test_a_port_that_is_taken_is_told(home: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        assert refusal(f"127.0.0.1:{port}") == "Address already in use"
    assert refusal(f"127.0.0.1:{port}") is None


def test_a_dumb_terminal_gets_no_escape_sequence(daemon: FakeDaemon, home: Path) -> None:
    env = {**os.environ, "TERM": "dumb"}
    daemon.inbox = [
        {"agent": "claude", "kind": "crash_loop", "since": "2026-01-01T00:00:00Z", "question": "no key", "cwd": "/work"}
    ]
    told = PtyTool("inbox", env=env)
    assert (told.end(), b"\x1b" in told.shown) == (0, False), told.shown
    assert [line.split()[:2] for line in told.shown.decode().splitlines()] == [["AGENT", "KIND"], ["claude", "crash"]]
    told.close()
    for verb in (("attach", "claude"), ("screen", "claude", "--ansi"), ("logs", "claude", "--raw")):
        refused = PtyTool(*verb, env=env)
        refused.until(b"TERM says")
        assert refused.end() == 2
        assert b"\x1b" not in refused.shown
        refused.close()
    watching = PtyTool("list", "--watch", env=env)
    watching.until(b"claude")
    watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait(DEADLINE) == 130
    assert b"\x1b" not in watching.shown
    watching.close()


def test_ctrl_c_while_a_message_is_sent_names_the_key(daemon: FakeDaemon, ctl: Ctl) -> None:
    left, seen = threading.Event(), list[str]()

    def script(fake: FakeDaemon, task: Task) -> None:
        seen.append(task.agent_id)
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            left.wait(DEADLINE)

    daemon.script = script
    sent = ctl("send", "claude,codex", "--no-spawn-daemon", "--idempotency-key", "k1", "--", "hello")
    left.set()
    assert sent.code == 130
    assert "claude has the message: 'synapsectl task " in sent.err
    assert "the message to codex may have been accepted; the same with '--idempotency-key k1 'codex''" in sent.err


def test_ctrl_c_of_several_stops_waits_for_none(daemon: FakeDaemon, ctl: Ctl) -> None:
    left, late = threading.Event(), list[bool]()
    both = threading.Barrier(2, lambda: os.kill(os.getpid(), signal.SIGINT))

    def stops() -> None:
        both.wait(DEADLINE)
        late.append(not left.wait(DEADLINE))

    daemon.on_verb = stops
    stopped = ctl("stop", "claude", "codex")
    assert late == [], "it did not wait for them"
    left.set()
    assert (stopped.code, "stop may go on: 'synapsectl list' shows" in stopped.err) == (130, True), stopped
    assert "Traceback" not in stopped.err


def test_what_was_stopped_is_told_where_the_daemon_goes_in_between(
    daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = Client.post

    def breaking(client: Client, path: str, *args: Any, **kwargs: Any) -> Any:
        if path.endswith("codex/stop"):
            raise NoDaemon("no daemon is running")
        return post(client, path, *args, **kwargs)

    monkeypatch.setattr(Client, "post", breaking)
    stopped = ctl("stop", "claude", "codex")
    assert (stopped.code, stopped.out) == (3, "claude stopped\n")
    assert "codex: no daemon is running" in stopped.err
    alone = ctl("stop", "codex", "--json")
    assert (alone.code, json.loads(alone.out)["error"]["code"]) == (3, "NO_DAEMON")
