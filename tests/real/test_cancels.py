"""Turns that are canceled at every moment: each is confirmed in time, and each next message is answered exactly.

The moments are spread evenly over the time after the task is WORKING, and at random besides; `CANCELS` says how many
(in all of them together for a program), `SEED` which ones. Older versions are tried where they are in the cache,
``<cache>/versions/<program>/<version>``.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.real import programs
from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.judgement import CONFIRMED_S
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.real.script import expected_answer
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(3000)]

type CliHome = Callable[[str], Prepared]
type StartOf = Callable[[str, str | None], RealAgent]

CANCELS = int(os.environ.get("CANCELS", "50"))
SEED = int(os.environ.get("SEED", "1"))

OLDER = [("claude", "2.1.197"), ("claude", "2.1.92")]
"""Versions that tell nobody of a turn that was stopped before the model said anything, or at all."""

ANSWERED_S = 60.0
"""By then a message that follows is answered, also on a busy machine."""

RETRIES = 3

SHAPES = (
    "[[hold:never-{word}]] {word}",
    "{word} [[slow:60]] [[answer:lines20]]",
    "{word} [[hold-mid:never-{word}]] [[answer:lines200]]",
    "[[hold:never-{word}]] {word}\nin several\n\nlines",
)
"""Nothing was said yet; words come; words came, and no more do; a composer of several rows may come back."""


def moments(count: int, first: float, last: float) -> Iterator[float]:
    """Seconds after WORKING, half of them evenly spread, the others at random; in a random order."""
    chance = random.Random(SEED)
    even = count - count // 2
    spread = [first + (last - first) * n / max(1, even - 1) for n in range(even)]
    every = spread + [chance.uniform(first, last) for _ in range(count // 2)]
    chance.shuffle(every)
    yield from every


class Trial:
    """Canceled turns of one agent, and what went wrong."""

    def __init__(self, agent: RealAgent) -> None:
        self.agent = agent
        self.faults: list[str] = []
        self.longest = 0.0
        self.trials = 0

    def begun(self) -> tuple[str, str]:
        """A task that is WORKING, and its word."""
        word = nonce()
        shape = SHAPES[self.trials % len(SHAPES)]
        self.trials += 1
        task = self.agent.daemon.send(shape.replace("{word}", word), self.agent.name)
        self.agent.daemon.task_in(task, "working")
        return task, word

    def cancel(self, task: str, moment: float) -> None:
        since = time.monotonic()
        answer = self.agent.daemon.post(f"/control/tasks/{task}/cancel", {})
        took = time.monotonic() - since
        self.longest = max(self.longest, took)
        if answer.status != 200 or took > CONFIRMED_S:
            self.fault(moment, f"cancel: {answer.status} after {took:.1f} s, {answer.json}")
        for _ in range(RETRIES):  # the next trials are others
            if answer.status == 200 or self.agent.daemon.task(task)["status"] != "working":
                break
            answer = self.agent.daemon.post(f"/control/tasks/{task}/cancel", {})

    def stopped(self, task: str, word: str, moment: float) -> None:
        """The task is canceled, its message at the model once at the most, and the next one is answered exactly."""
        status = self.agent.daemon.task(task)["status"]
        if status != "canceled":
            self.fault(moment, f"the task is {status}")
        self.answers(moment)
        if (times := self.agent.model.submissions(word)) > 1:
            self.fault(moment, f"submitted {times} times")

    def answers(self, moment: float) -> None:
        message = f"Say {nonce()}."
        task = self.agent.daemon.send(message, self.agent.name)
        try:
            done = self.agent.daemon.task_in(task, "completed", "failed", "canceled", patience=ANSWERED_S)
        except AssertionError:
            self.fault(moment, f"the next message is not answered: {self.agent.daemon.agent(self.agent.name)}")
            self.agent.daemon.post(f"/control/tasks/{task}/cancel", {})
            return
        said = [part["text"] for artifact in done["artifacts"][-1:] for part in artifact["parts"]]
        if done["status"] != "completed" or said != [expected_answer(message)]:
            self.fault(moment, f"the next message: {done['status']} {done['error']} {said}")
        for request in self.agent.model.requests():
            if any(message in text and text.count("nonce-") > 1 for text in request.users):
                self.fault(moment, f"mixed: {request.user[:200]!r}")

    def fault(self, moment: float, what: str) -> None:
        self.faults.append(f"{moment:.3f} s: {what}\n{self.agent.screen()}")

    def judged(self, what: str) -> None:
        longest = f", longest confirmation {self.longest:.2f} s" if self.longest else ""
        told = f"{what}: {self.trials} trials{longest}, {len(self.faults)} faults"
        print(f"\n{told}", flush=True)
        assert not self.faults, "\n".join([told, *self.faults])


@pytest.fixture
def start_of(daemon: Daemon, model: Model, cli_home: CliHome) -> StartOf:
    """`start_of("claude", "2.1.92")`: that version, or the pinned one, under the daemon and ready."""

    def start(cli: str, version: str | None) -> RealAgent:
        prepared = cli_home(cli)
        if version is not None:
            where = bin_of(cli, version)
            if not where.is_dir():
                pytest.skip(f"{cli} {version} is not in the cache: {where}")
            prepared = replace(prepared, env={**prepared.env, "PATH": f"{where}{os.pathsep}{prepared.env['PATH']}"})
        return RealAgent.start(cli, daemon, model, prepared)

    return start


def bin_of(cli: str, version: str) -> Path:
    return programs.cache_dir().parent / "versions" / cli / version / "node_modules" / ".bin"


def trials(start_of: StartOf, cli: str, version: str | None) -> Trial:
    """An agent that has answered: a first turn makes a session, of which the older versions ask something."""
    trial = Trial(start_of(cli, version))
    trial.answers(0.0)
    return trial


@pytest.mark.parametrize("cli", EVERY)
def test_a_cancel_at_any_moment_is_confirmed(cli: str, start_of: StartOf) -> None:
    trial = trials(start_of, cli, None)
    for moment in moments(CANCELS, 0.0, 2.0):
        task, word = trial.begun()
        time.sleep(moment)
        trial.cancel(task, moment)
        trial.stopped(task, word, moment)
    trial.judged(f"cancels of {cli}")


@pytest.mark.parametrize(("cli", "version"), OLDER)
def test_a_cancel_of_an_older_version_is_confirmed(cli: str, version: str, start_of: StartOf) -> None:
    trial = trials(start_of, cli, version)
    for moment in moments(max(2, CANCELS // 4), 0.05, 0.8):
        task, word = trial.begun()
        time.sleep(moment)
        trial.cancel(task, moment)
        trial.stopped(task, word, moment)
    trial.judged(f"cancels of {cli} {version}")


@pytest.mark.parametrize(("cli", "version"), [*((cli, None) for cli in EVERY), *OLDER])
def test_an_urgent_message_at_any_moment_goes_first(cli: str, version: str | None, start_of: StartOf) -> None:
    trial = trials(start_of, cli, version)
    agent = trial.agent
    for moment in moments(max(2, CANCELS // 5), 0.0, 2.0):
        task, word = trial.begun()
        time.sleep(moment)
        message = f"Now {nonce()}."
        body = {"message": {"role": "user", "parts": [{"type": "text", "text": message}]}, "priority": 5}
        urgent = agent.daemon.post(f"/agents/{agent.name}/tasks/send", body).json["task"]["id"]
        try:
            done = agent.daemon.task_in(urgent, "completed", "failed", "canceled", patience=ANSWERED_S)
        except AssertionError:
            trial.fault(moment, f"the urgent message waits: {agent.daemon.agent(agent.name)}")
        else:
            if done["artifacts"][-1]["parts"][0]["text"] != expected_answer(message):
                trial.fault(moment, f"the urgent message: {done['status']} {done['artifacts']}")
        trial.stopped(task, word, moment)
    trial.judged(f"urgent messages to {cli} {version or ''}")


@pytest.mark.parametrize(("cli", "version"), [*((cli, None) for cli in EVERY), *OLDER])
def test_a_cancel_under_which_the_daemon_dies_is_done(cli: str, version: str | None, start_of: StartOf) -> None:
    """What was asked and begun is done by the next daemon; what it never heard of can be asked again."""
    trial = trials(start_of, cli, version)
    agent = trial.agent
    chance = random.Random(SEED)
    for moment in moments(max(2, CANCELS // 12), 0.0, 1.0):
        task, word = trial.begun()
        time.sleep(moment)
        asking = threading.Thread(target=_ask, args=(agent.daemon, task))
        asking.start()
        time.sleep(chance.uniform(0.02, 0.8))
        agent.daemon.kill9()
        asking.join()
        agent.daemon.start()
        try:
            eventually(lambda task=task: _canceled(agent.daemon, task), "it is canceled", patience=ANSWERED_S)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        except AssertionError:
            trial.fault(moment, f"not canceled after a restart: {agent.daemon.task(task)['error']}")
        trial.stopped(task, word, moment)
    trial.judged(f"restarts in a cancel of {cli} {version or ''}")


CONTROLS = "\t\x00\x07\x08\x1b\x7f\x85\x9b\ufeff"


@pytest.mark.parametrize(("cli", "version"), [*((cli, None) for cli in EVERY), ("claude", "2.1.197")])
def test_a_control_character_after_an_interrupt_cancels_nothing(
    cli: str, version: str | None, start_of: StartOf
) -> None:
    """The mark of the interruption stays on the screen, and the message is shown without the character."""
    trial = trials(start_of, cli, version)
    daemon = trial.agent.daemon
    for character in CONTROLS:
        task, word = trial.begun()
        trial.agent.model.wait_for_turn(word)
        trial.cancel(task, 0.0)
        message = f"one{character}two {nonce()}"
        done = daemon.ended(daemon.send(message, trial.agent.name))
        said = [part["text"] for artifact in done["artifacts"][-1:] for part in artifact["parts"]]
        if (done["status"], said) != ("completed", [expected_answer(message)]):
            trial.fault(0.0, f"{character!a}: {done['status']} {done['error']} {said}")
    trial.judged(f"control characters to {cli} {version or ''}")


def _canceled(daemon: Daemon, task: str) -> bool:
    """Whether the task is canceled now; else that is asked for again, as far as its agent is found already."""
    if daemon.task(task)["status"] == "working":
        daemon.post(f"/control/tasks/{task}/cancel", {})
    return bool(daemon.task(task)["status"] == "canceled")


def _ask(daemon: Daemon, task: str) -> None:
    try:
        daemon.post(f"/control/tasks/{task}/cancel", {})
    except (OSError, HTTPException):
        return  # killed meanwhile


@pytest.mark.parametrize(("cli", "version"), [*OLDER, ("claude", "2.1.261"), ("claude", None)])
def test_a_person_s_stop_is_told_where_the_program_tells_nobody(
    cli: str, version: str | None, start_of: StartOf
) -> None:
    agent = start_of(cli, version)
    agent.ask_exactly(f"Say {nonce()}.")
    word = nonce()
    task = agent.send(f"[[hold:never-{word}]] {word}")
    agent.daemon.task_in(task, "working")
    agent.model.wait_for(lambda requests: any(word in request.user for request in requests))
    assert agent.daemon.ctl("keys", agent.name, "Escape").code == 0
    ended = agent.daemon.task_in(task, "canceled", "failed", "completed")
    assert ended["status"] == "canceled", ended
    agent.ask_exactly(f"Say {nonce()}.")
