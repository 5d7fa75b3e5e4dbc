"""A clock that is set back in a turn of opencode, which then takes that message for its last one for ever."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real.agents import RealAgent, nonce
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.real.script import expected_answer
from tests.support.daemon import Daemon
from tests.support.set_clock import SetClock

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

AHEAD_S = 20 * 86_400.0
ASKED_MIN, ASKED_MAX = 3, 8
"""Requests of a turn with a tool; most requests before a turn is stopped, on a machine that is busy."""


@pytest.fixture
def clock(private_dir: Path) -> SetClock:
    return SetClock(private_dir, os.environ)


@pytest.fixture
def set_daemon(private_dir: Path, clock: SetClock) -> Iterator[Daemon]:
    """A daemon that has the clock, as its programs have."""
    running = Daemon(private_dir / "synapsed", clock.env).start()
    yield running
    running.end()


def test_it_is_stopped_and_a_new_conversation_goes_on(
    clock: SetClock, set_daemon: Daemon, model: Model, cli_home: Callable[[str], Prepared]
) -> None:
    clock.to(AHEAD_S)
    agent = RealAgent.start("opencode", set_daemon, model, cli_home("opencode"))
    agent.ask_exactly(f"Say {nonce()}.")
    word = nonce()
    first = f"{word} [[tool:shell-ask:touch {word}]] say: After the tool."
    tasks = [agent.send(first)]
    set_daemon.task_in(tasks[0], "input_required")
    clock.to(0)
    assert set_daemon.ctl("input", tasks[0], "yes").code == 0
    tasks += [agent.send(f"Say {nonce()}."), agent.send(f"Say {nonce()}.")]
    ended = [set_daemon.ended(task) for task in tasks]
    assert set_daemon.ctl("task", tasks[0], "--wait").out == expected_answer(first) + "\n", ended[0]
    for task in ended[1:]:
        error = task["error"]
        assert error["code"] == "MODEL_ERROR"
        assert "send --new-conversation" in error["message"]
    assert ASKED_MIN < len(model.turns(word)) <= ASKED_MAX * len(tasks)
    again = f"Say {nonce()}."
    answer = set_daemon.ctl("send", agent.name, "--wait", "--new-conversation", "--", again)
    assert answer.out == expected_answer(again) + "\n", answer.err
