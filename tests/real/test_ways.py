"""One contract of an agent's link, over all ways in which a message goes to a program (`ways`).

`WAYS_N` is how often each thing is done where more than once says more: 3 by default, 20 to 100 for a release.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.real.agents import RealAgent, StartAgent, nonce
from tests.real.script import expected_answer
from tests.real.ways import STRUCTURED, WAYS, Way, note, typed
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

N = int(os.environ.get("WAYS_N", "3"))

FAILURES = ((400, "MODEL_ERROR"), (401, "AUTH_REQUIRED"), (429, "RATE_LIMITED"))

DRAFT = "half a draft of mine"

PHASES = ("before it is given", "given", "in its turn", "at a permission", "after its end")

type Held = Callable[[Way], RealAgent]

every_way = pytest.mark.parametrize("way", WAYS, ids=str)
structured = pytest.mark.parametrize("way", STRUCTURED, ids=str)


@pytest.fixture
def held(daemon: Daemon, start_agent: StartAgent) -> Iterator[Held]:
    def start(way: Way) -> RealAgent:
        if way.kind == "keys":
            typed(way.cli, daemon)
        agent = start_agent(way.cli)
        how = "server" if way.kind == "structured" else ""
        agent.ask_exactly(f"First {nonce()}.")
        assert (f'"evidence": "{how}: turn begun"' in daemon.log()) is bool(how), daemon.log()[-2000:]
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
def test_a_draft_is_kept(way: Way, held: Held) -> None:
    """Where messages are typed they wait for it; else they run, and it stays as it is."""
    agent = held(way)
    draft(agent)
    if way.kind == "keys":
        task = agent.send(f"Wait {nonce()}.")
        assert eventually(lambda: agent.daemon.agent(agent.name)["held"], "it is held") == "typing"
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
    agent = held(way)
    for _ in range(N):
        word = nonce()
        task = asked(agent, word)
        began = time.monotonic()
        assert agent.daemon.ctl("approve", task).code == 0
        assert agent.daemon.ended(task)["status"] == "completed"
        assert agent.file(word).exists()
        took = time.monotonic() - began
        assert not agent.daemon.agent(agent.name)["prompt"], took
    note(way, "permission answered from elsewhere", "yes")


@every_way
def test_a_permission_is_answered_at_the_terminal(way: Way, held: Held) -> None:
    """The task goes on, and the inbox has nothing left."""
    agent = held(way)
    with agent.attached() as person:
        for _ in range(N):
            word = nonce()
            task = asked(agent, word)
            person.wait_screen(word)
            person.settle(0.3)
            person.send({"codex": "y", "claude": "1", "gemini": "1", "opencode": "\r"}[way.cli])
            assert agent.daemon.ended(task)["status"] == "completed"
            assert agent.file(word).exists()
            eventually(lambda: agent.daemon.ctl("inbox", "--json").json == [], "nothing waits")
    note(way, "permission answered at the terminal", "yes")


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


@structured
def test_failures_have_codes(way: Way, held: Held) -> None:
    agent = held(way)
    for status, code in FAILURES:
        word = nonce()
        if way.cli == "opencode" and status == 429:
            continue  # it tries again for minutes
        task = agent.send(f"{word} [[status:{status}]]")
        if code == "RATE_LIMITED":  # it is put off until that is over
            eventually(lambda: agent.daemon.agent(agent.name)["activity"] == "limited", "it is limited")
            break
        done = agent.daemon.ended(task)
        assert (done["status"], done["error"]["code"]) == ("failed", code), done
        agent.ask_exactly(f"And {nonce()}.")
    note(way, "failures have codes", "by the program's word")


@structured
def test_the_daemon_is_killed_at_every_phase(way: Way, held: Held) -> None:
    """0 lost, 0 doubled."""
    agent = held(way)
    chance = random.Random(7)
    for number in range(max(N, len(PHASES))):
        phase, word = PHASES[number % len(PHASES)], nonce()
        agent.daemon.ready(agent.name)
        if phase == "at a permission":
            task = asked(agent, word)
            said = f"Told {word}."
        else:
            message = f"[[hold-mid:{word}]] {word} [[answer:lines20]]"
            task, said = agent.send(message), expected_answer(message)
        if phase == "given":
            time.sleep(chance.uniform(0.0, 0.15))  # the moment is what is varied, not waited for
        elif phase == "in its turn" or phase == "after its end":
            agent.model.wait_for_turn(word)
        agent.daemon.kill9()
        if phase == "after its end":
            agent.model.release(word)
            agent.model.wait_for(
                lambda requests, word=word: any(word in r.user and r.outcome == "sent" for r in requests)
            )
        agent.daemon.start()
        agent.model.release(word)
        if phase == "at a permission":
            agent.daemon.task_in(task, "input_required")
            assert agent.daemon.ctl("approve", task).code == 0
        done = agent.daemon.ended(task)
        assert done["status"] == "completed", (phase, done)
        assert done["artifacts"][0]["parts"][0]["text"] == said, phase
        turns = {request.user for request in agent.model.requests() if word in request.user}
        assert len(turns) == 1, (phase, turns)
        assert agent.model.submissions(word) == 1, phase
    note(way, "daemon killed at every phase", "nothing lost, nothing doubled")


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
