"""One contract of an agent's link, over all ways in which a message goes to a program (`ways`).

`WAYS_N` is how often each thing is done where more than once says more: 3 by default, 20 to 100 for a release.
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.real import dying
from tests.real.agents import STARTS_S, RealAgent, StartAgent, nonce
from tests.real.conftest import CliHome
from tests.real.looks import LOOKS
from tests.real.model import Model
from tests.real.script import expected_answer
from tests.real.ways import ACP, PIPES, STRUCTURED, TYPED, WAYS, Way, note, typed
from tests.support.daemon import PATIENCE_S, Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

N = int(os.environ.get("WAYS_N", "3"))

FAILURES = ((400, "MODEL_ERROR"), (401, "AUTH_REQUIRED"), (429, "RATE_LIMITED"))

DRAFT = "half a draft of mine"

FROM_OUTSIDE = ("in its turn", "at a permission", "after its end")
"""When it is killed from outside, besides the steps at which it ends by itself (`dying`)."""

QUESTIONS = (dying.ASKED, dying.ANSWERED, "at a permission")

CLOSED_S = 1.0
"""Of a question that is answered on one side, the other side is rid of it by then."""

GIVEN_BACK_S = 10.0
"""By then a program that is stopped has put its message back, if it does so at all."""

OFF_SCREEN = (Way("codex", "keys"), Way("gemini", "keys"))
"""Nothing but their screens has what they say before it is whole, and these show Markdown drawn."""
TOLD = {
    Way("codex", "keys"): "up to the first code, list or table; the rest with the end",
    Way("gemini", "keys"): "up to the first code or table; the rest with the end",
    Way("claude", "keys"): "line by line; of a line that grows what its screen shows, often nothing",
}
"""How much of an answer is told before that is whole, where it is not all of it."""

type Held = Callable[[Way], RealAgent]

every_way = pytest.mark.parametrize("way", WAYS, ids=str)
exact = pytest.mark.parametrize("way", [*STRUCTURED, *PIPES], ids=str)


class DyingDaemon(Daemon):
    """One that ends at a step that the test names (`dying`)."""

    def run(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.home / "daemon.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.real.dying", "run", *arguments],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def dies_at(self, step: str) -> None:
        (self.home / dying.FILE).write_text(step)

    def died(self) -> None:
        """It has ended at that step."""
        assert self.process is not None
        assert self.process.wait(PATIENCE_S) == -signal.SIGKILL


@pytest.fixture
def daemon(private_dir: Path) -> Iterator[DyingDaemon]:
    running = DyingDaemon(private_dir / "synapsed")
    running.start()
    yield running
    running.end()


@pytest.fixture
def held(daemon: DyingDaemon, model: Model, cli_home: CliHome, start_agent: StartAgent) -> Held:
    def start(way: Way) -> RealAgent:
        if way.kind == "pipes":
            return on_pipes(way)
        if way.kind == "keys":
            typed(way.cli, daemon)
        agent = start_agent(way.cli)
        agent.ask_exactly(f"First {nonce()}.")
        over_server = re.search(r'"evidence": "server: (?:turn begun|prompt accepted)"', daemon.log()) is not None
        assert over_server is (way.kind == "structured"), daemon.log()[-2000:]
        return agent

    def on_pipes(way: Way) -> RealAgent:
        prepared = cli_home(way.cli)
        env = {**daemon.env, **prepared.env}
        done = daemon.ctl("start", "acp", "--name", way.cli, "--cwd", str(prepared.cwd), "--", *ACP[way.cli], env=env)
        assert done.code == 0, done.err
        agent = RealAgent(way.cli, daemon, model, prepared)
        daemon.ready(agent.name, patience=STARTS_S)
        agent.ask_exactly(f"First {nonce()}.")
        return agent

    return start


def draft(agent: RealAgent) -> None:
    done = agent.daemon.ctl("keys", agent.name, DRAFT)
    assert done.code == 0, done.err
    eventually(lambda: DRAFT in agent.screen(), "the draft stands in the composer")


def asked(agent: RealAgent, word: str) -> str:
    """A task that waits for a permission."""
    task = agent.send(f"{word} [[tool:shell-ask:touch {word}]] say: Told {word}.")
    agent.daemon.task_in(task, "input_required")
    return task


@every_way
def test_answers_are_exact(way: Way, held: Held) -> None:
    agent = held(way)
    for number in range(N):
        word = nonce()
        agent.ask_exactly(f"{word} [[answer:{('fenced', 'lines200', 'japanese', 'quotes')[number % 4]}]]")
        assert agent.model.submissions(word) == 1
    note(way, "answers exact", "yes")


@every_way
def test_what_is_said_is_told_while_it_is_said(way: Way, held: Held) -> None:
    """The model stops in mid-sentence until as much was told as the way gives: the turn's end cannot tell of it. None
    of it is taken back."""
    agent, word = held(way), nonce()
    message = f"{word} [[slow:150]] [[hold-mid:{word}]] [[answer:below-code]]"
    whole = expected_answer(message)
    sentence = whole.index("```\n\n") + len("```\n\n")
    off_screen = way in OFF_SCREEN
    said, blocks = "", set[str]()
    path = f"/agents/{agent.name}/tasks/{agent.send(message)}"
    with agent.daemon.sse(f"{path}/subscribe") as events:
        for data in (event["data"] for event in events if event["event"] == "artifact"):
            text = data["artifact"]["parts"][0]["text"]
            if data["artifact"]["type"] == "code":
                blocks.add(text)
            elif data["artifact"]["artifact_id"] == "answer":
                said = said + text if data["append"] else text
                assert whole.startswith(said), said
            if said if off_screen else blocks and len(said) > sentence + len("The daemon keeps one small process"):
                agent.model.release(word)
    assert said == whole
    note(way, "text while it is said", TOLD.get(way, "all of it"))
    note(way, "code when its fence closes", "with the end" if off_screen else "yes")


@every_way
def test_a_draft_is_kept(way: Way, held: Held) -> None:
    """Where messages are typed they wait for it; else they run, and it stays as it is."""
    agent = held(way)
    draft(agent)
    if way.kind == "keys":
        task = agent.send(f"Wait {nonce()}.")
        eventually(lambda: agent.daemon.agent(agent.name)["held"] == "typing", "it is held for what a person types")
        assert agent.daemon.task(task)["status"] == "submitted"
        assert DRAFT in agent.screen()
    else:
        for _ in range(N):
            word = nonce()
            agent.ask_exactly(f"Answer {word}.")
            assert agent.model.submissions(word) == 1
            eventually(lambda: DRAFT in agent.screen(), "the draft stands in the composer")
    note(way, "while a draft stands in the composer", "messages wait" if way.kind == "keys" else "messages run")


@every_way
def test_a_permission_is_answered_from_elsewhere(way: Way, held: Held) -> None:
    """The terminal's dialog closes."""
    agent = held(way)
    took = []
    with agent.attached() as person:
        for _ in range(N):
            word = nonce()
            task = asked(agent, word)
            person.wait_screen(word)
            began = time.monotonic()
            assert agent.daemon.ctl("approve", task).code == 0
            if way.kind != "pipes":  # a transcript keeps what was asked
                person.wait_gone(LOOKS[way.cli].dialog)
                took.append(time.monotonic() - began)
            assert agent.daemon.ended(task)["status"] == "completed"
            assert agent.file(word).exists()
            assert not agent.daemon.agent(agent.name)["prompt"]
    note(way, "permission answered from elsewhere", f"yes{closed(way, 'its dialog', took)}")


@every_way
def test_a_permission_is_answered_at_the_terminal(way: Way, held: Held) -> None:
    """The task goes on, and the inbox has nothing left."""
    agent = held(way)
    keys = {"codex": "y", "claude": "1", "gemini": "1", "opencode": "\r"}
    took = []
    with agent.attached() as person:
        for _ in range(N):
            word = nonce()
            task = asked(agent, word)
            person.wait_screen(word)
            person.settle(0.3)
            began = time.monotonic()
            person.send("yes\r" if way.kind == "pipes" else keys[way.cli])
            eventually(lambda: not agent.daemon.agent(agent.name)["prompt"], "nothing is asked")
            took.append(time.monotonic() - began)
            assert agent.daemon.ended(task)["status"] == "completed"
            assert agent.file(word).exists()
    note(way, "permission answered at the terminal", f"yes{closed(way, 'the inbox', took)}")


def closed(way: Way, what: str, took: list[float]) -> str:
    """That the other side was rid of the question in time; said in figures, too, as those of a busy machine vary."""
    if not took:
        return ""
    half = statistics.median(took)
    print(f"{way}: {what} is closed after {half:.2f} s (median of {len(took)}), {max(took):.2f} s at most")
    assert half <= CLOSED_S, took
    return f", {what} is closed within {CLOSED_S:.0f} s"


@every_way
def test_a_turn_is_canceled(way: Way, held: Held) -> None:
    agent = held(way)
    for _ in range(N):
        word = nonce()
        task = agent.send(f"{word} [[hold-mid:never-{word}]] [[answer:lines20]]")
        agent.model.wait_for_turn(word)
        assert agent.daemon.ctl("cancel", task).code == 0
        assert agent.daemon.ended(task)["status"] == "canceled"
        agent.ask_exactly(f"And {nonce()}.")
    note(way, "a turn is canceled, the next one runs", "yes")


@pytest.mark.parametrize("way", TYPED, ids=str)
def test_what_a_stopped_program_gives_back_is_removed_by_the_next_daemon(
    way: Way, held: Held, daemon: DyingDaemon
) -> None:
    """It was stopped before its first words, and the daemon is killed before it has removed the message. Else the next
    one takes it for a person's draft, and holds all others back."""
    agent, given = held(way), 0
    for _ in range(N):
        word = nonce()
        daemon.dies_at(dying.GIVEN_BACK)
        task = agent.send(f"{word} [[hold:never-{word}]] [[answer:lines20]]")
        agent.model.wait_for_turn(word)
        canceling = threading.Thread(target=daemon.ctl, args=("cancel", task))
        canceling.start()
        assert daemon.process is not None
        try:
            daemon.process.wait(GIVEN_BACK_S)
            given += 1
        except subprocess.TimeoutExpired:  # the program gave nothing back, or the message was not yet taken
            (daemon.home / dying.FILE).unlink(missing_ok=True)
            daemon.kill9()
        canceling.join()
        daemon.start()
        assert daemon.ended(task)["status"] == "canceled"
        agent.ask_exactly(f"And {nonce()}.")
    note(way, "what is given back is removed by the next daemon", f"{given} of {N}")


@exact
def test_failures_have_codes(way: Way, held: Held) -> None:
    agent = held(way)
    for status, code in FAILURES:
        word = nonce()
        if way.cli in ("opencode", "gemini") and status == 429:
            continue  # it tries again for minutes
        task = agent.send(f"{word} [[status:{status}]]")
        if code == "RATE_LIMITED":  # it is put off until that is over
            eventually(lambda: agent.daemon.agent(agent.name)["activity"] == "limited", "it is limited")
            break
        done = agent.daemon.ended(task)
        assert (done["status"], done["error"]["code"]) == ("failed", code), done
        if code == "AUTH_REQUIRED":
            agent.daemon.ctl("cancel", agent.name)  # the account is to be tried again
        agent.ask_exactly(f"And {nonce()}.")
    note(way, "failures have codes", "by the program's word")


@exact
def test_the_daemon_is_killed_at_every_phase(way: Way, held: Held, daemon: DyingDaemon) -> None:
    """0 lost, 0 doubled."""
    agent = held(way)
    phases = (*dying.STEPS, *FROM_OUTSIDE)
    for number in range(max(N, len(phases))):
        killed_once(agent, daemon, phases[number % len(phases)])
    note(way, "daemon killed at every phase", "nothing lost, nothing doubled")


def killed_once(agent: RealAgent, daemon: DyingDaemon, phase: str) -> None:
    word, gone = nonce(), phase in dying.STEPS
    daemon.ready(agent.name)
    message = f"[[hold-mid:{word}]] {word} [[answer:lines20]]"
    if phase in QUESTIONS:
        message = f"{word} [[tool:shell-ask:echo x >> {word}]] say: Told {word}."
    if gone:
        daemon.dies_at(phase)
    task = sent(agent, message, word)
    if phase == dying.ANSWERED:
        daemon.task_in(task, "input_required")
        daemon.ctl("approve", task)
    elif phase == dying.ENDED:
        agent.model.release(word)
    elif phase == "at a permission":
        daemon.task_in(task, "input_required")
    elif not gone:
        agent.model.wait_for_turn(word)
    daemon.died() if gone else daemon.kill9()
    if phase == "after its end":
        agent.model.release(word)
        agent.model.wait_for(lambda requests: any(word in r.user and r.outcome == "sent" for r in requests))
    daemon.start()
    task = task or only_task(agent, word)
    agent.model.release(word)
    if phase in QUESTIONS and daemon.task_in(task, "input_required", "completed")["status"] != "completed":
        again = daemon.ctl("approve", task)
        assert again.code == 0 or phase == dying.ANSWERED, again.err  # that one has it, perhaps
    done = daemon.ended(task)
    assert done["status"] == "completed", (phase, done)
    answer = next(a for a in done["artifacts"] if a["artifact_id"] == "answer")
    assert answer["parts"][0]["text"] == expected_answer(message), phase
    assert only_task(agent, word) == task, phase
    turns = {request.user for request in agent.model.requests() if word in request.user}
    assert len(turns) == 1, (phase, turns)
    assert agent.model.submissions(word) == 1, phase
    assert phase not in QUESTIONS or agent.file(word).read_text() == "x\n", phase


def sent(agent: RealAgent, message: str, word: str) -> str:
    """The task's id; empty where the daemon ended before it said which."""
    done = agent.daemon.ctl("send", agent.name, "--json", "--", message)
    return str(done.json["task"]["id"]) if done.code == 0 else ""


def only_task(agent: RealAgent, word: str) -> str:
    (task,) = [task["id"] for task in agent.tasks() if word in task["message"]["parts"][0]["text"]]
    return str(task)


def test_a_companion_that_is_killed_in_mid_turn(held: Held) -> None:
    """Its task fails and says why, its program is started again, and the next message runs."""
    way = STRUCTURED[0]
    agent, word = held(way), nonce()
    pid = agent.pid
    task = agent.send(f"{word} [[hold-mid:never-{word}]] [[answer:lines20]]")
    agent.model.wait_for_turn(word)
    for server in companions(agent):
        server.send_signal(signal.SIGKILL)
    done = agent.daemon.ended(task)
    assert (done["status"], done["error"]["code"]) == ("failed", "AGENT_EXITED"), done
    eventually(lambda: agent.daemon.agent(agent.name)["pid"] not in (None, pid), "it is started again")
    agent.daemon.ready(agent.name)
    agent.ask_exactly(f"And {nonce()}.")
    note(way, "its server is killed in mid-turn", "the task fails, the program is restarted")


@every_way
def test_nothing_is_left_after_a_stop(way: Way, held: Held) -> None:
    agent = held(way)
    mark = f"SYNAPSED_HOME={agent.daemon.home}"
    assert agent.daemon.ctl("stop", agent.name).code == 0
    eventually(lambda: not list(of_launches(agent.prepared.home)), f"no process is left of {mark}")
    servers = agent.daemon.home / "run" / "servers"
    assert [path for path in servers.rglob("*") if path.is_socket()] == []
    note(way, "left after a stop", "nothing")


def of_launches(home: Path) -> Iterator[psutil.Process]:
    """The processes that have that home."""
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == str(home):
                yield process
        except psutil.Error:
            continue


def companions(agent: RealAgent) -> list[psutil.Process]:
    """The server beside the program, and what has started it."""
    found = [process for process in of_launches(agent.prepared.home) if "app-server" in process.cmdline()]
    assert found
    return found


def test_a_program_without_a_server_is_as_before(daemon: Daemon, start_agent: StartAgent) -> None:
    """Its server does not come up: it starts all the same, messages are typed, and that is said once."""
    folder = daemon.home / "config" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "codex.toml").write_text(
        '[channels.server]\ncompanion = ["{program}", "app-server", "--no-such-option"]\n'
    )
    assert daemon.ctl("reload").code == 0
    agent = start_agent("codex")
    for _ in range(2):
        agent.ask_exactly(f"Answer {nonce()}.")
    told = daemon.ctl("events", "--json", "--after", "0", "--types", "agentAlert").out
    assert told.count("CHANNEL_AWAY") == 1, told
