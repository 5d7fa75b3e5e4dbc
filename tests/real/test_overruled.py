"""What a person said and took back, and what they did that ended the program, on the real programs: by their keys, also
where a message could go over their server (there an answer waits in its socket, and is taken)."""

import fcntl
import os
import struct
import termios

import psutil
import pytest

from tests.real.agents import EVERY, STARTS_S, RealAgent, StartAgent, nonce
from tests.real.ways import typed
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

ENDED = ("completed", "failed", "canceled")


def stand_still(agent: RealAgent, *, still: bool) -> None:
    """The whole program, so that nothing of it reads the terminal."""
    main = psutil.Process(agent.pid)
    for process in (main, *main.children(recursive=True)):
        process.suspend() if still else process.resume()


def kill(agent: RealAgent) -> None:
    """The whole program: what is left of one that stands still goes on when its parent is gone, and stops its turn."""
    main = psutil.Process(agent.pid)
    for process in (*main.children(recursive=True), main):
        process.kill()


def lose_keys(agent: RealAgent) -> None:
    """What was typed and not read yet is gone, as when a program throws its input away before it asks."""
    terminal = os.open(f"/proc/{agent.pid}/fd/0", os.O_RDWR | os.O_NOCTTY)
    termios.tcflush(terminal, termios.TCIFLUSH)
    os.close(terminal)


def unread(agent: RealAgent) -> int:
    """Bytes that were typed and not read yet."""
    terminal = os.open(f"/proc/{agent.pid}/fd/0", os.O_RDWR | os.O_NOCTTY)
    try:
        return int(struct.unpack("i", fcntl.ioctl(terminal, termios.FIONREAD, bytes(4)))[0])
    finally:
        os.close(terminal)


@pytest.mark.parametrize("cli", EVERY)
def test_a_refusal_that_was_not_taken_is_not_told_after_an_approval(
    cli: str, daemon: Daemon, start_agent: StartAgent
) -> None:
    """The command ran, because the person allowed it then: the model hears of nothing else."""
    typed(cli, daemon)
    agent, word = start_agent(cli), nonce()
    before = len(agent.model.requests())
    task = agent.send(f"{word} [[tool:shell-ask:touch made-{word}]] say: Made.")
    asked = agent.daemon.task_in(task, "input_required", *ENDED)
    assert asked["status"] == "input_required", agent.screen()
    stand_still(agent, still=True)
    try:
        denied = agent.daemon.ctl("deny", task)
        lose_keys(agent)
    finally:
        stand_still(agent, still=False)
    assert denied.code == 6, denied
    assert "did not take it" in denied.err
    assert "attach answers it" in denied.err
    approved = eventually(lambda: (a := agent.daemon.ctl("approve", task)).code == 0 and a, "it is approved")
    assert "was answered" in approved.err
    done = agent.daemon.task_in(task, *ENDED)
    assert (done["status"], done["artifacts"][-1]["parts"][0]["text"]) == ("completed", "Made."), agent.screen()
    assert agent.file(f"made-{word}").exists()
    asked_since = agent.model.requests()[before:]
    heard = "\n".join(text for request in asked_since for text in (*request.users, *request.notes))
    assert "refused" not in heard
    agent.ask_exactly(f"And then {nonce()}.")


@pytest.mark.parametrize("cli", EVERY)
def test_an_interrupt_over_which_the_program_ends_says_so(cli: str, daemon: Daemon, start_agent: StartAgent) -> None:
    """The keys are typed, and the program ends instead of stopping; the next one answers the next message."""
    typed(cli, daemon)
    agent, word = start_agent(cli), nonce()
    task = agent.send(f"{word} [[hold:{word}]] say: Late.")
    agent.model.wait_for_turn(word, timeout=STARTS_S)
    before = agent.pid
    stand_still(agent, still=True)
    cancel = agent.daemon.spawn("cancel", agent.name)
    eventually(lambda: unread(agent), "the keys that stop it are typed")
    kill(agent)
    _, said = cancel.communicate(timeout=120)
    assert cancel.returncode == 6, said
    assert f"{agent.name}: its program ended when it was interrupted (signal SIGKILL)" in said
    ended = agent.daemon.ended(task)
    assert (ended["status"], ended["error"]["code"]) == ("failed", "AGENT_EXITED")
    agent.model.release(word)
    eventually(
        lambda: (a := agent.daemon.agent(agent.name))["activity"] == "ready" and a["pid"] != before,
        "it is back",
        patience=STARTS_S,
    )
    agent.ask_exactly(f"And then {nonce()}.")
