"""A real program under its profile, but for a composer that is looked for where it is not: in any blank row."""

import tomllib
from pathlib import Path

import pytest
import tomli_w

from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PROFILES = Path(__file__).parents[2] / "profiles"
BLANK = {"line": r"^(?P<text>)$", "bracketed_paste": True}
LONG = "".join(f"\nline {n} of many" for n in range(40))


def misread(cli: str, daemon: Daemon) -> str:
    """The name of the profile. Messages are typed under it, whatever else the program has for them."""
    told = tomllib.loads((PROFILES / f"{cli}.toml").read_text())
    for one in (told, *told.get("versions", ())):
        one.get("channels", {}).pop("server", None)
    told["composer"] = BLANK
    folder = daemon.home / "config" / "profiles"
    folder.mkdir(exist_ok=True)
    (folder / "misread.toml").write_text(tomli_w.dumps(told))
    assert daemon.ctl("reload").code == 0
    return "misread"


@pytest.mark.parametrize("cli", EVERY)
@pytest.mark.parametrize("more", ["", LONG], ids=["short", "long"])
def test_a_message_is_pasted_once_and_the_next_is_not(
    cli: str, more: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    agent = RealAgent.start(misread(cli, daemon), daemon, model, cli_home(cli))
    first, second = nonce(), nonce()
    task, waits = agent.send(f"A task {first}.{more}"), agent.send(f"Another {second}.")
    ended = daemon.ended(task)
    assert (ended["status"], ended["error"]["code"]) == ("failed", "UNDELIVERED"), ended
    assert "[composer]" in ended["error"]["message"], f"{ended}\n{agent.screen()}"
    assert any("[composer]" in alert for alert in daemon.agent(agent.name)["alerts"]), daemon.agent(agent.name)
    assert (daemon.agent(agent.name)["held"], daemon.task(waits)["status"]) == ("unknown screen", "submitted")
    screen = agent.screen()
    assert second not in screen, screen
    assert screen.count(first) <= 1, screen
    assert screen.lower().count("[pasted") <= 1, screen
    assert not model.turns(first), screen
