"""A message of several lines that is canceled before it is submitted is taken out whole, and the next one is exact."""

from pathlib import Path

import pytest

from tests.real import strangers
from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.ways import OFF
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

STRANGERS = ("cn", "pi", "qwen")
STANDS = "[delivery]\nsettle_ms = 10000\nsettle_max_ms = 60000\n"
"""So long a message stands in the composer before it is submitted."""


@pytest.fixture(params=[*EVERY, *STRANGERS])
def agent(
    request: pytest.FixtureRequest, daemon: Daemon, model: Model, cli_home: CliHome, private_dir: Path
) -> RealAgent:
    """The program, with messages that are typed and stand there for a while."""
    name: str = request.param
    told = f'extends = "{name}"\n{OFF.get(name, "")}'
    if name in STRANGERS:
        told = (Path(__file__).with_name("profiles") / f"{name}.toml").read_text()
    folder = daemon.home / "config" / "profiles"
    folder.mkdir(exist_ok=True)
    (folder / f"slow-{name}.toml").write_text(f"{told}\n{STANDS}")
    assert daemon.ctl("reload").code == 0
    if name not in STRANGERS:
        return RealAgent.start(f"slow-{name}", daemon, model, cli_home(name))
    if (reason := strangers.missing()) is not None:
        pytest.skip(reason)
    prepared = strangers.prepare(name, private_dir / "home", private_dir / "project", model.url)
    return RealAgent.start(f"slow-{name}", daemon, model, prepared, "--", *prepared.argv[1:])


def shows(agent: RealAgent, word: str) -> bool:
    """Returns True if the message stands there, or the placeholder that the program has for a long one."""
    screen = agent.screen()
    return word in screen or "[paste" in screen.lower()


@pytest.mark.parametrize("lines", [2, 12])
def test_several_lines(agent: RealAgent, lines: int) -> None:
    word, daemon = nonce(), agent.daemon
    task = agent.send("\n".join([f"first of {word}", *(f"line {n} of it" for n in range(2, lines)), "the last"]))
    eventually(lambda: shows(agent, word), "the message stands in the composer")
    canceled = daemon.post(f"/control/tasks/{task}/cancel", {})
    assert canceled.status == 200, canceled
    eventually(lambda: not shows(agent, word), f"it is taken out:\n{agent.screen()}")
    agent.ask_exactly(f"Say {nonce()}.")
    assert not agent.model.turns(word), agent.screen()
