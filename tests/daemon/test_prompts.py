"""What a line-oriented program asks, in a real terminal: answered over A2A, again and again, in two languages."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS).start()
    daemon.start_agent(profile="generic", name="shell", args=["bash", "--norc"], env={"PS1": "$ "})
    yield daemon
    daemon.end()


def asked(daemon: Daemon, command: str) -> dict[str, Any]:
    """The task of `command`, once it asks."""
    return daemon.task_in(daemon.send(command, "shell"), "input_required", "completed", "failed")


def answer(daemon: Daemon, task_id: str, text: str) -> str:
    """The task's state after an answer over A2A, which waits for what comes of it."""
    message = {"messageId": "m1", "role": "ROLE_USER", "taskId": task_id, "parts": [{"text": text}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    told = daemon.request("POST", "/agents/shell/a2a", call, {"A2A-Version": "1.0"}).json
    state: str = told["result"]["task"]["status"]["state"]
    return state


@pytest.mark.parametrize("echo", [pytest.param("echo", marks=pytest.mark.night), "echo; echo Sorry, try again."])
def test_who_answered_is_told_that_the_same_is_asked_again(daemon: Daemon, echo: str) -> None:
    """In the same moment, so that no screen without a question is ever seen."""
    task = asked(daemon, f"until read -rsp 'Password: ' it; {echo}; [ \"$it\" = right ]; do :; done; echo done")
    assert task["prompt"]["type"] == "password"
    for text, state in (("wrong", "INPUT_REQUIRED"), ("wrong again", "INPUT_REQUIRED"), ("right", "COMPLETED")):
        assert answer(daemon, task["id"], text) == f"TASK_STATE_{state}"
    with daemon.sse(f"/agents/shell/tasks/{task['id']}/subscribe") as events:
        states = [event["data"]["state"] for event in events if event["event"] == "status"]
    assert (states.count("input_required"), states[-1]) == (3, "completed"), states


@pytest.mark.night
def test_a_menu_in_japanese_is_answered_with_its_words(daemon: Daemon) -> None:
    task = asked(daemon, "printf '１．はい\\n２．いいえ\\n'; read -rp '番号を入力してください：' it; echo \"=$it=\"")
    assert [option["label"] for option in task["prompt"]["options"]] == ["はい", "いいえ"]
    assert answer(daemon, task["id"], "いいえ") == "TASK_STATE_COMPLETED"
    assert "=2=" in daemon.task(task["id"])["artifacts"][0]["parts"][0]["text"]


@pytest.mark.night
def test_an_answer_of_two_lines_does_not_answer_what_is_asked_next(daemon: Daemon) -> None:
    task = asked(daemon, "read -rp 'Enter your name: ' name; read -rp 'Really? (y/n) ' sure; echo \"=$name=$sure=\"")
    assert answer(daemon, task["id"], "Ann\ny") == "TASK_STATE_INPUT_REQUIRED"
    assert answer(daemon, task["id"], "n") == "TASK_STATE_COMPLETED"
    assert "=Ann y=n=" in daemon.task(task["id"])["artifacts"][0]["parts"][0]["text"]


@pytest.mark.night
@pytest.mark.parametrize("sign", ["> ", ">>> ", "? "])
def test_a_sign_alone_asks(daemon: Daemon, sign: str) -> None:
    task = asked(daemon, f"echo 'Which colour?'; read -rp '{sign}' it; echo \"=$it=\"")
    assert (task["prompt"]["type"], task["prompt"]["prompt"]) == ("text", f"Which colour?\n{sign.strip()}")
    assert answer(daemon, task["id"], "dark red") == "TASK_STATE_COMPLETED"
    assert "=dark red=" in daemon.task(task["id"])["artifacts"][0]["parts"][0]["text"]


@pytest.mark.night
def test_a_menu_above_a_sign_is_a_choice(daemon: Daemon) -> None:
    task = asked(daemon, "printf '1) red\\n2) blue\\n'; read -rp '> ' it; read -rp 'Sure? ' sure; echo \"=$it=$sure=\"")
    assert [option["label"] for option in task["prompt"]["options"]] == ["red", "blue"]
    assert answer(daemon, task["id"], "blue") == "TASK_STATE_INPUT_REQUIRED"
    assert answer(daemon, task["id"], "quite") == "TASK_STATE_COMPLETED"
    assert "=2=quite=" in daemon.task(task["id"])["artifacts"][0]["parts"][0]["text"]


@pytest.mark.night
def test_the_rest_of_a_statement_is_asked_for(daemon: Daemon) -> None:
    task = asked(daemon, "echo 'one")
    assert task["prompt"]["type"] == "text"
    assert answer(daemon, task["id"], "two'") == "TASK_STATE_COMPLETED"
    assert daemon.ctl("send", "shell", "echo 3", "--wait").out == "3\n"


@pytest.mark.night
def test_a_question_that_is_canceled_leaves_the_shell_ready(daemon: Daemon) -> None:
    task = asked(daemon, "read -rp '> ' it")
    assert daemon.ctl("cancel", task["id"]).code == 0
    assert daemon.ctl("send", "shell", "echo 3", "--wait").out == "3\n"


@pytest.mark.night
def test_the_prompt_of_a_program_that_the_shell_starts_asks(daemon: Daemon) -> None:
    """It is no end of the shell's turn: the next message is for the shell."""
    command = f"{sys.executable} -q"
    task = asked(daemon, command)
    assert task["status"] == "input_required"
    assert task["prompt"]["prompt"].splitlines() == [f"$ {command}", ">>>"], "the rows as they stand"
    assert answer(daemon, task["id"], "exit()") == "TASK_STATE_COMPLETED"
    assert daemon.ctl("send", "shell", "echo 3", "--wait").out == "3\n"


@pytest.mark.night
def test_a_prompt_of_its_own_is_ready_and_another_one_asks(daemon: Daemon) -> None:
    daemon.start_agent(profile="generic", name="py", args=[sys.executable, "-q"])
    assert daemon.ctl("send", "py", "6*7", "--wait").out == "42\n"
    waiting = daemon.ctl("send", "py", "input('> ')", "--wait")
    assert waiting.code == 7, waiting
    assert daemon.ctl("input", "py", "six").code == 0
    eventually(lambda: daemon.ctl("list", "--json").json[1]["activity"] == "ready", "it has its answer")
    assert daemon.ctl("send", "py", "6*7", "--wait").out == "42\n"
