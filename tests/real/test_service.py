"""Real agent programs as units of a real `systemd --user`, all of it inside the loopback-only namespace."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.real.agents import MAIN, RealAgent, nonce
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.real.script import expected_answer
from tests.service.house import House
from tests.support import systemd
from tests.support.daemon import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.fixture
def house(isolated: None) -> Iterator[House]:
    if reason := systemd.obstacle():
        pytest.skip(f"NO REAL PROGRAM WAS TESTED UNDER A REAL systemd --user: {reason}")
    with systemd.user_manager() as manager:
        house = House(manager)
        yield house
        house.clear()


def restart(house: House) -> None:
    house.manager.systemctl("restart", "synapsed")


def kill(house: House) -> None:
    os.kill(house.pid, signal.SIGKILL)


@pytest.mark.parametrize("swap", [restart, kill])
@pytest.mark.parametrize("cli", MAIN)
def test_a_turn_goes_on_through_a_new_daemon(
    cli: str,
    swap: Callable[[House], None],
    house: House,
    model: Model,
    cli_home: Callable[[str], Prepared],
) -> None:
    before = house.up()
    agent = RealAgent.start(cli, house.daemon, model, cli_home(cli))
    pid, word = agent.pid, nonce()
    message = f"[[hold-mid:{word}]] {word} [[answer:lines20]]"
    task = agent.send(message)
    path = f"/agents/{agent.name}/tasks/{task}/subscribe"
    with house.daemon.sse(path) as stream:
        first = next(stream)
    model.wait_for_turn(word)
    house.daemon.task_in(task, "working")
    swap(house)
    eventually(lambda: house.pid not in (0, before) and house.state() == "active", "another daemon serves")
    model.release(word)
    done = house.daemon.ended(task)
    assert done["status"] == "completed", done
    assert done["artifacts"][-1]["parts"][0]["text"] == expected_answer(message)
    assert model.submissions(word) == 1
    assert agent.pid == pid
    with house.daemon.sse(path, last_id=first["id"]) as stream:
        rest = list(stream)
    with house.daemon.sse(path, last_id=0) as stream:
        assert [first, *rest] == list(stream), "the stream resumes without gap or double"
    house.manager.systemctl("stop", "synapsed")
    eventually(house.gone, "no process is left")
