"""claude and codex on three hosts of a fleet, each with a daemon of its own, over a real broker: they ask each other,
and one is out of reach in mid-turn. `FLEET_AWAY` is for how many seconds."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.parts.fleet.brokers import FleetHome, fleet, needs_broker
from tests.parts.fleet.proxy import Proxy
from tests.real.agents import RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.support.daemon import NO_PORTS, Daemon, eventually

pytestmark = [pytest.mark.real, needs_broker, pytest.mark.timeout(900)]

AWAY_S = float(os.environ.get("FLEET_AWAY", "15"))


@dataclass
class Three:
    """`laptop` has claude, and its wire can be held; `box` has the broker and codex, `attic` another codex."""

    broker: FleetHome
    wire: Proxy
    claude: RealAgent
    codex: RealAgent
    attic: RealAgent

    def knows(self, daemon: Daemon, address: str) -> None:
        eventually(lambda: address in [row["name"] for row in daemon.ctl("list", "--json").json], f"{address} is known")


@pytest.fixture
def three(private_dir: Path, model: Model, cli_home: CliHome) -> Iterator[Three]:
    with ExitStack() as stack:
        home = stack.enter_context(fleet(private_dir))
        wire = stack.enter_context(Proxy(home.port))
        daemons = {}
        for name in ("box", "laptop", "attic"):
            folder = private_dir / name
            if name != "box":
                home.joined(folder, name)
            url = f'[fleet]\nurls = ["{wire.url}"]\n' if name == "laptop" else ""
            daemons[name] = Daemon(folder, config=f"{NO_PORTS}{url}").start()
            stack.callback(daemons[name].end)
        made = Three(
            home,
            wire,
            RealAgent.start("claude", daemons["laptop"], model, cli_home("claude")),
            RealAgent.start("codex", daemons["box"], model, cli_home("codex")),
            RealAgent.start("codex", daemons["attic"], model, cli_home("codex")),
        )
        made.claude.allow_tools()
        for address in ("codex@box", "codex@attic"):
            made.knows(daemons["laptop"], address)
        yield made


def results(model: Model, word: str) -> str:
    """What the tools of the turn about `word` said."""
    return "\n".join(result.text for request in model.turns(word) for result in request.results)


def test_they_ask_each_other_and_one_is_out_of_reach_in_mid_turn(three: Three) -> None:
    claude, model = three.claude, three.claude.model

    mine, yours = nonce(), nonce()
    command = f"synapsectl send --response --wait codex@box -- 'What of {yours}?'"
    answer = claude.ask(f"{mine} [[tool:shell:{command}]] say: I know.")
    assert (answer.code, answer.out) == (0, "I know.\n"), f"{answer.err}\n{claude.screen()}"
    assert f"Answer to {yours}." in results(model, mine), "claude's model reads what codex on the other host said"
    (asked,) = three.codex.tasks()
    assert asked["metadata"]["sender"]["sender_id"] == "claude@laptop"
    assert asked["metadata"]["sender"].get("verified") is not True, "who another host's agent is, that host says"

    mine, other = nonce(), nonce()
    command = f"synapsectl send --response codex@attic -- 'What of {other}?'"
    answer = claude.ask(f"{mine} [[tool:shell:{command}]] say: I have asked.")
    assert answer.out == "I have asked.\n", f"{answer.err}\n{claude.screen()}"
    told = eventually(
        lambda: next(iter(model.turns(f"Answer to {other}.")), None),
        "the reply of attic's comes as a message",
        patience=120,
    )
    assert told.user.startswith("[A2A:reply:")

    held = nonce()
    sent = claude.daemon.ctl("send", "codex@box", "--json", f"[[hold:{held}]] What of {held}?")
    assert sent.code == 0, sent.err
    task = sent.json["task"]["id"]
    model.wait_for_turn(held, timeout=120)
    three.wire.hold()
    began = time.monotonic()
    model.release(held)
    eventually(lambda: three.codex.tasks()[0]["status"] == "completed", "codex ends its turn meanwhile", patience=120)
    late = claude.daemon.ctl("send", "codex@attic", "--json", f"What of late {held}?").json["task"]["id"]
    time.sleep(max(0.0, AWAY_S - (time.monotonic() - began)))  # so long it is out of reach
    assert claude.daemon.task(task)["status"] in ("submitted", "working")
    three.wire.release()
    began = time.monotonic()
    assert claude.daemon.ended(task)["status"] == "completed"
    assert claude.daemon.ended(late)["status"] == "completed"
    print(f"out of reach for {AWAY_S:.0f} s; both ended {time.monotonic() - began:.1f} s after")
    assert model.submissions(f"What of {held}?") == 1, "typed once"
    assert model.submissions(f"What of late {held}?") == 1
    for daemon in (three.claude.daemon, three.codex.daemon, three.attic.daemon):
        eventually(lambda daemon=daemon: daemon.get("/fleet/outbox").json == [], "nothing is under way any more")
        assert daemon.get("/fleet/quarantine").json == []
