"""Programs on pipes under a real daemon: a scripted one that speaks ACP, and what may happen to both."""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from synapsed import own_python
from tests.support.acp import editor
from tests.support.daemon import Daemon, eventually

pytestmark = pytest.mark.timeout(240)

AGENT = Path(__file__).parents[1] / "support" / "acp_agent.py"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path / "home")
    yield daemon.start()
    assert daemon.end() == 0


class Piped:
    def __init__(self, daemon: Daemon, folder: Path, *options: str) -> None:
        self.daemon, self.folder, self.file = daemon, folder, folder / "receipts"
        script = [sys.executable, "-S", "-E", "-I", str(AGENT), str(self.file), *options]
        done = daemon.ctl("start", "acp", "--name", "p", "--cwd", str(folder), "--json", "--", *script)
        assert done.code == 0, done.err
        daemon.ready("p")

    def receipts(self, kind: str) -> list[Any]:
        lines = [json.loads(line) for line in self.file.read_text().splitlines()]
        return [line[1] for line in lines if line[0] == kind]

    def ask(self, text: str) -> str:
        done = self.daemon.ctl("send", "p", "--wait", "--", text)
        assert done.code == 0, done.err
        return done.out

    def send(self, text: str) -> str:
        return self.daemon.send(text, agent="p")


@pytest.fixture
def piped(daemon: Daemon, tmp_path: Path) -> Piped:
    return Piped(daemon, tmp_path, "mode")


def answer_of(task: dict[str, Any]) -> str:
    return next(a["parts"][0]["text"] for a in task["artifacts"] if a["artifact_id"] == "answer")


@pytest.mark.night
def test_messages_are_answered_exactly(piped: Piped) -> None:
    assert piped.ask("say hello") == "hello\n"
    (server,) = piped.receipts("servers")[0]
    assert (server["name"], server["args"]) == ("synapsed", own_python.command("synapsectl.__main__", "mcp")[1:])
    assert Path(next(each["value"] for each in server["env"] if each["name"] == "SYNAPSE_CONTROL_SOCKET")).is_socket()
    (words,) = piped.receipts("before")[0]
    assert "You are the agent p (agent ID" in words
    assert piped.ask("say one\nthen two") == "two\n"
    assert piped.ask("notice Warning: x\nsay real") == "real\n"
    assert piped.ask("say é\ninfo a notice") == "é\n"
    assert piped.ask("garbage\nread") == "error -32601\n"
    assert piped.receipts("session/set_mode") == ["default"]
    assert piped.receipts("before")[1:] == [[]] * 4
    task = piped.daemon.get("/control/tasks?agent=p&limit=1").json[0]
    assert task["exact"] is True


@pytest.mark.night
@pytest.mark.parametrize(
    ("text", "code"),
    [("error -32000 sign in", "AUTH_REQUIRED"), ("error -32603 no", "MODEL_ERROR"), ("fail status 400", "MODEL_ERROR")],
)
def test_failures_are_typed(piped: Piped, text: str, code: str) -> None:
    done = piped.daemon.ended(piped.send(text))
    assert (done["status"], done["error"]["code"]) == ("failed", code)


@pytest.mark.night
def test_tools_plans_and_tokens_are_told(piped: Piped) -> None:
    piped.ask("plan a step\nthen done")
    events = [json.loads(line) for line in piped.daemon.ctl("events", "--json").out.splitlines()]
    tools = [e["data"]["status"] for e in events if e["event"] == "toolExecution"]
    assert tools == ["started", "completed"]
    assert [e["data"]["steps"][0]["text"] for e in events if e["event"] == "plan"] == ["a step"]
    eventually(lambda: "usage" in piped.daemon.ctl("events", "--json").out, "tokens are told")
    assert len([e for e in events if e["event"] == "taskDelivered"]) == 1


def test_a_permission_over_a_kill_is_found_again(piped: Piped) -> None:
    for verb, option in (("approve", "yes"), ("deny", "no")):
        task = piped.send("ask")
        piped.daemon.task_in(task, "input_required")
        piped.daemon.kill9()
        piped.daemon.start()
        eventually(lambda: piped.daemon.agent("p")["activity"] == "waiting", "it asks still")
        assert piped.daemon.ctl(verb, task).code == 0
        assert answer_of(piped.daemon.ended(task)) == f"You chose {option}."
    assert len(piped.receipts("answer")) == 2


def test_an_answer_that_the_keeper_does_not_take_is_told_and_may_be_given_again(piped: Piped) -> None:
    """Its journal cannot be written, as on a full disk: nothing is written then."""
    task = piped.send("ask")
    piped.daemon.task_in(task, "input_required")
    keeper = psutil.Process(piped.daemon.agent("p")["pid"]).parent()
    assert keeper is not None
    before = keeper.rlimit(psutil.RLIMIT_FSIZE)
    keeper.rlimit(psutil.RLIMIT_FSIZE, (1, before[1]))
    refused = piped.daemon.ctl("approve", task)
    keeper.rlimit(psutil.RLIMIT_FSIZE, before)
    assert refused.code != 0
    assert "did not take the answer" in refused.err
    assert piped.daemon.task(task)["status"] == "input_required"
    eventually(lambda: piped.daemon.agent("p")["activity"] == "waiting", "it asks still")
    assert piped.daemon.ctl("approve", task).code == 0
    assert answer_of(piped.daemon.ended(task)) == "You chose yes."
    assert len(piped.receipts("answer")) == 1


@pytest.mark.parametrize("early", [True, pytest.param(False, marks=pytest.mark.night)])
def test_a_refusal_that_ends_a_turn_is_known_over_a_kill(piped: Piped, *, early: bool) -> None:
    """Also where the turn ended while there was no daemon."""
    go = piped.folder / "go"
    task = piped.send(f"ask silently\nwait {go}")
    piped.daemon.task_in(task, "input_required")
    assert piped.daemon.ctl("deny", task).code == 0
    piped.daemon.task_in(task, "working")
    eventually(lambda: piped.receipts("answer"), "it has the answer")
    piped.daemon.kill9()
    if early:
        go.touch()
    piped.daemon.start()
    go.touch()
    done = piped.daemon.ended(task)
    assert done["status"] == "canceled"


@pytest.mark.night
def test_what_is_not_offered_is_refused_once_over_a_kill(piped: Piped) -> None:
    """Also where the keeper has forgotten that: it remembers the last 512 inputs."""
    go = piped.folder / "go"
    task = piped.send(f"ask-much 700\nwait {go}\nread\nsay done")
    eventually(lambda: piped.receipts("refused") == [700], "all are refused")
    piped.daemon.kill9()
    piped.daemon.start()
    piped.daemon.task_in(task, "working")
    go.touch()
    assert answer_of(piped.daemon.ended(task)).endswith("done")
    assert piped.receipts("strange") == []


@pytest.mark.parametrize("kills", [4, pytest.param(12, marks=pytest.mark.night)])
def test_no_kill_of_the_daemon_loses_or_doubles_a_message(piped: Piped, kills: int) -> None:
    dice = random.Random(18)
    for n in range(kills):
        go = piped.folder / f"go-{n}"
        task = piped.send(f"say a{n}\nwait {go}\nsay b{n}")
        if dice.random() < 0.6:
            eventually(lambda n=n: any(f"a{n}\n" in text for text in piped.receipts("prompt")), "it has it")
        if dice.random() < 0.5:
            go.touch()
        piped.daemon.kill9()
        go.touch()
        piped.daemon.start()
        assert answer_of(piped.daemon.ended(task)) == f"a{n}b{n}"
    assert len(piped.receipts("prompt")) == kills


@pytest.mark.night
def test_a_turn_is_canceled_and_one_that_does_not_hear_ends_with_its_program(piped: Piped) -> None:
    never = piped.folder / "never"
    for words in ("", "deaf\n"):
        task = piped.send(f"{words}say a\nwait {never}")
        eventually(lambda: piped.daemon.agent("p")["activity"] == "busy", "it works")
        assert piped.daemon.ctl("cancel", task).code == 0
        assert piped.daemon.ended(task)["status"] == "canceled"
    piped.daemon.ready("p")
    assert piped.ask("say on") == "on\n"


@pytest.mark.night
def test_one_that_asks_and_reads_nothing_is_ended_by_the_next_daemon(piped: Piped) -> None:
    """Its keeper keeps the answers until it reads."""
    task = piped.send("flood 900")
    eventually(lambda: piped.receipts("flooded"), "it has asked")
    piped.daemon.kill9()
    piped.daemon.start()
    eventually(lambda: piped.daemon.agent("p")["activity"] == "busy", "it is taken up")
    assert piped.daemon.ctl("stop", "p").code == 0
    assert piped.daemon.ended(task)["status"] in ("failed", "canceled")


def test_a_program_that_ends_fails_its_turn_and_goes_on_with_its_session(piped: Piped) -> None:
    piped.ask("say x")
    done = piped.daemon.ended(piped.send("exit 3"))
    assert done["error"]["code"] == "AGENT_EXITED"
    piped.daemon.ready("p")
    assert piped.ask("say back") == "back\n"
    assert piped.receipts("session/load") == ["s1"]


@pytest.mark.night
def test_a_person_attaches_reads_and_writes(piped: Piped) -> None:
    piped.ask("say hello")
    assert piped.daemon.ctl("keys", "p", "say from a person", "Enter").code == 0
    eventually(lambda: "from a person" in piped.receipts("prompt")[-1], "it is asked")
    screen = eventually(
        lambda: (s := piped.daemon.ctl("screen", "p").out).count("from a person") >= 2 and s, "it shows"
    )
    assert "hello" in screen
    seen = eventually(lambda: [e for e in piped.daemon.ctl("events", "--json").out.splitlines() if "turnSeen" in e], "")
    assert json.loads(seen[0])["data"]["answer"] == "from a person"
    piped.daemon.kill9()
    piped.daemon.start()
    eventually(lambda: "hello" in piped.daemon.ctl("screen", "p").out, "the transcript is there")


@pytest.mark.night
def test_a_persons_prompt_that_is_open_over_a_kill_is_no_tasks(piped: Piped) -> None:
    """The next daemon knows that it is open: a message waits for its end, and has its own answer."""
    go = piped.folder / "go"
    assert piped.daemon.ctl("keys", "p", f"wait {go}", "Enter").code == 0
    eventually(lambda: piped.receipts("prompt"), "it is asked")
    piped.daemon.kill9()
    piped.daemon.start()
    eventually(lambda: piped.daemon.agent("p")["activity"] == "busy", "it works on it")
    task = piped.send("say so")
    assert piped.daemon.task(task)["status"] == "submitted"
    go.touch()
    assert answer_of(piped.daemon.ended(task)) == "so"
    events = piped.daemon.ctl("events", "--json").out.splitlines()
    assert len([line for line in events if json.loads(line)["event"] == "turnSeen"]) == 1
    assert len(piped.receipts("prompt")) == 2


@pytest.mark.night
def test_it_is_a_session_in_an_editor(piped: Piped) -> None:
    with editor(piped.daemon, "p") as one:
        one.new("/")
        assert one.prompt("say hello")[1] == "hello"
        one.choose = lambda request: "3"
        assert one.prompt("ask")[1] == "You chose no."


@pytest.mark.night
def test_nothing_is_left_after_stop(piped: Piped) -> None:
    pid = piped.daemon.agent("p")["pid"]
    assert piped.daemon.ctl("stop", "p").code == 0
    assert not Path(f"/proc/{pid}").exists()
