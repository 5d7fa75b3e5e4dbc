"""Turns that a person types at the terminal of a real program, as `turnSeen` tells of them."""

import json
from typing import Any

import pytest

from tests.real.agents import EVERY, RealAgent, StartAgent, nonce
from tests.real.looks import LOOKS, press_interrupt
from tests.support.daemon import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


def seen(agent: RealAgent, count: int) -> list[dict[str, Any]]:
    """What is told of such turns, once there are so many."""

    def now() -> list[dict[str, Any]]:
        told = agent.daemon.ctl("events", "--json", "--after", "0", "--types", "turnSeen")
        return [json.loads(line) for line in told.out.splitlines()]

    return eventually(lambda: (told := now())[count - 1 :] and told, f"{count} turns are told", patience=120.0)


@pytest.mark.parametrize("cli", EVERY)
def test_what_a_person_types_is_told_and_what_is_sent_is_not(cli: str, start_agent: StartAgent) -> None:
    """With its text and its answer; a stopped one without an answer; none twice after the daemon was killed."""
    agent, sent, typed, stopped, after = start_agent(cli), nonce(), nonce(), nonce(), nonce()
    agent.ask_exactly(f"A task {sent}.")
    with agent.attached() as person:
        person.submit(f"I type {typed} [[answer:fenced]]")
        agent.model.wait_for_turn(typed, timeout=120)
        (one,) = seen(agent, 1)
        assert (one["data"]["text"], one["task"]) == (f"I type {typed} [[answer:fenced]]", None), one
        assert "def add(a: int, b: int) -> int:" in one["data"]["answer"], one
        agent.daemon.ready(agent.name)
        person.settle(1.5)
        person.submit(f"I stop {stopped} [[hold-mid:never-{stopped}]] [[answer:lines20]]")
        person.wait_screen("Line 005", timeout=120)
        press_interrupt(person, LOOKS[cli])
        person.wait_screen(LOOKS[cli].interrupted)
    agent.daemon.kill9()
    agent.daemon.start()
    agent.daemon.ready(agent.name)
    agent.ask_exactly(f"Another task {after}.")
    with agent.attached() as person:
        person.settle(1.5)
        person.submit(f"I type the last {typed}")
        told = seen(agent, 3)
    words = [event["data"]["text"].split()[1:3] for event in told]
    assert words == [["type", typed], ["stop", stopped], ["type", "the"]], told
    assert told[1]["data"]["answer"] is None, told
    assert told[2]["data"]["answer"] == f"Answer to {typed}.", told
    assert len({event["data"]["turn_id"] for event in told}) == 3, told
