"""Fault 16: everything that may be asked of agents, several things at once, and kills at any moment of it."""

import contextlib
import http.client
import os
import random
import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psutil
import pytest

from tests.faults.house import ENDS, PATIENT_S, House
from tests.support.daemon import NO_PORTS, eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

ROUNDS = int(os.environ.get("FAULT_ROUNDS", "25"))

NAMES = ("one", "two")

AGENT = """
[agents.{name}]
profile = "flooder"
autostart = true
restart = {{ initial = 0.1, maximum = 0.5, limit = 1000 }}
"""

VERBS = ("send", "send", "send", "park", "park", "restart", "later", "stop", "kill", "interrupt")

RESUME = """
[resume]
args = ["-X", "resume={conversation}"]
fresh_args = ["-X", "session={conversation}"]
"""
"""Nothing of a conversation is kept; the interpreter does not mind being told of one."""

DEFECTS = re.compile(
    r"operation failed|Traceback|IllegalEvent|could not be handled|not every agent|another keeper|never retrieved"
)
"""What no sequence of operations and kills may bring into the log."""


class Storm:
    """Asks for this and that, and does not wait for what becomes of it."""

    def __init__(self, house: House, rng: random.Random, pool: ThreadPoolExecutor) -> None:
        self._house = house
        self._rng = rng
        self._pool = pool
        self._asked: list[Future[Any]] = []
        self._sent = 0

    def ask(self, times: int) -> None:
        for _ in range(times):
            self._asked.append(self._pool.submit(self._one(), self._rng.choice(NAMES)))
            time.sleep(self._rng.choice([0, self._rng.uniform(0, 0.1)]))

    def answered(self) -> None:
        """Whatever was asked is done, or refused, or its daemon is dead."""
        for asked in self._asked:
            asked.result()
        self._asked.clear()

    def kill_another(self) -> None:
        """A program or a keeper, while no daemon looks."""
        process = self._rng.choice([*programs(self._house), None])
        if process is not None:
            with contextlib.suppress(psutil.Error):
                (process if self._rng.random() < 0.5 else process.parent() or process).kill()
                self._house.fault()

    def _one(self) -> Callable[[str], Any]:
        verb = self._rng.choice(
            ["send", "send", "send", "park", "park", "restart", "later", "stop", "kill", "interrupt"]
        )
        if verb == "send":
            self._sent += 1
            text = self._rng.choice(["echo {}", "sleep 0.3\necho {}"]).format(f"number {self._sent}")
            return lambda name: self._house.send(text, name)
        body = {"when_idle": True} if verb == "later" else {}
        return lambda name: self._post(f"/control/agents/{name}/{'restart' if verb == 'later' else verb}", body)

    def _post(self, path: str, body: dict[str, Any]) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            self._house.daemon.post(path, body)


def programs(house: House) -> list[psutil.Process]:
    found = []
    for process in house.left_over():
        with contextlib.suppress(psutil.Error):
            if any(part.endswith("flooder.py") for part in process.cmdline()):
                found.append(process)
    return found


def at_rest(house: House, name: str) -> dict[str, Any] | None:
    agent = house.daemon.agent(name)
    idle = agent["state"] == "parked" or agent["activity"] == "ready"
    return agent if agent["state"] == "stopped" or (idle and agent["queue"] == 0 and agent["task"] is None) else None


def answers(house: House, name: str) -> None:
    """The agent comes to rest, and takes a message then."""
    agent = eventually(lambda: at_rest(house, name), f"{name} is at rest", patience=PATIENT_S)
    if agent["state"] == "stopped":
        assert house.daemon.post(f"/control/agents/{name}/restart", {}).status == 200
    task = house.send("echo are you there", name)
    assert task is not None, house.refusal
    assert house.daemon.ended(task)["status"] == "completed"
    del house.sent[task]


def test_16_operations_and_kills_at_any_moment(house: Callable[..., House]) -> None:
    config = NO_PORTS + "".join(AGENT.format(name=name) for name in NAMES)
    here = house("16", "kills at any moment of operations that overlap", config=config)
    profile = here.daemon.home / "config" / "profiles" / "flooder.toml"
    profile.write_text(profile.read_text() + RESUME)
    rng = random.Random(os.environ.get("FAULT_SEED", "1"))
    daemon = here.daemon.start()
    with ThreadPoolExecutor(32) as pool:
        storm = Storm(here, rng, pool)
        for _ in range(ROUNDS):
            storm.ask(rng.randint(1, 6))
            time.sleep(rng.uniform(0, 0.4))  # the moment of the fault
            daemon.kill9()
            here.fault()
            storm.kill_another()
            while rng.random() < 0.4:
                daemon.process = daemon.run()
                time.sleep(rng.uniform(0, 0.6))  # the moment of the fault
                daemon.kill9()
                here.fault()
            daemon.start()
            storm.ask(rng.randint(0, 3))
            storm.answered()
            for name in NAMES:
                answers(here, name)
    eventually(lambda: {p.pid for p in programs(here)} == set(here.pids().values()), "one program for each agent")
    here.audit_tasks(may_fail=ended_by_operations(here))
    assert not DEFECTS.search(daemon.log()), daemon.log()


def ended_by_operations(house: House) -> frozenset[str]:
    """Tasks whose program was stopped or killed, or that were interrupted; the daemon has to say so."""
    found = []
    for task_id in house.sent:
        task = house.daemon.task_in(task_id, *ENDS, patience=PATIENT_S)
        if task["status"] == "failed":
            assert task["error"]["code"] in ("AGENT_EXITED", "INTERRUPTED"), task
        if task["status"] != "completed":
            found.append(task_id)
    return frozenset(found)
