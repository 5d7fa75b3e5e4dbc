"""Number 20: hundreds of agents of one kind, started at once by a daemon with the files that a shell gives it."""

import http.client
import os
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.faults.house import PATIENT_S
from tests.faults.ledger import Ledger
from tests.faults.test_readers import MB, STANDS_S, watched
from tests.support.daemon import ANY_PORTS, Daemon, eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

MANY = int(os.environ.get("FAULT_MANY", "300"))
FILES = 1024
CALLERS = 32


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
    daemon = Daemon(tmp_path, config=ANY_PORTS).start()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    yield daemon
    daemon.end()


def test_20_hundreds_of_one_kind(daemon: Daemon, ledger: Ledger) -> None:
    def start(name: str) -> int:
        body = {
            "profile": "generic",
            "name": name,
            "cwd": "/",
            "args": ["sh"],
            "env": {"PS1": "$ ", "PATH": os.defpath},
        }
        return daemon.post("/control/start", body).status

    def ready() -> dict[str, Any] | None:
        agents = {agent["name"]: agent for agent in daemon.get("/agents").json}
        here = len(agents) == MANY and {agent["activity"] for agent in agents.values()} == {"ready"}
        return agents if here else None

    def at_its_port(agent: dict[str, Any]) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", agent["port"], timeout=PATIENT_S)
        try:
            connection.request("GET", "/status")
            return connection.getresponse().status
        finally:
            connection.close()

    def answer(name: str) -> str:
        done = daemon.task_in(daemon.send(f"echo it-is-{name}", name), "completed", "failed", patience=PATIENT_S)
        return str(done["artifacts"][-1]["parts"][0]["text"]).strip()

    def all_are_there(agents: dict[str, Any]) -> None:
        assert list(pool.map(at_its_port, agents.values())) == [200] * MANY
        assert list(pool.map(answer, agents)) == [f"it-is-{name}" for name in agents]

    names = [f"g{number}" for number in range(MANY)]
    row = ledger.open("20", f"{MANY} agents of one kind are started at once")
    with watched(daemon) as watch:
        began = time.monotonic()
        with ThreadPoolExecutor(MANY) as pool:
            assert list(pool.map(start, names)) == [200] * MANY
        agents = eventually(ready, "all are ready", patience=PATIENT_S)
        row.figures["start"] = f"{time.monotonic() - began:.1f} s, {watch.grew / MB:.0f} MB, {watch.lag * 1000:.0f} ms"
    assert watch.lag <= STANDS_S, row.figures
    with ThreadPoolExecutor(CALLERS) as pool:
        assert len({agent["port"] for agent in agents.values()}) == MANY
        all_are_there(agents)
        daemon.kill9()
        daemon.start()
        with watched(daemon) as watch:
            after = eventually(ready, "all are back", patience=PATIENT_S)
        row.figures["back"] = f"{watch.lag * 1000:.0f} ms"
        assert watch.lag <= STANDS_S, row.figures
        assert {name: agent["pid"] for name, agent in after.items()} == {n: a["pid"] for n, a in agents.items()}
        all_are_there(after)
        assert daemon.ctl("stop", "--all").code == 0
    assert not [agent["pid"] for agent in agents.values() if psutil.pid_exists(agent["pid"])]
