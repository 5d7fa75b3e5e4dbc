"""A bundle of profiles with a real program: taken, and rolled back where the program does not come up with it."""

from pathlib import Path

import pytest

from synapsed.parts.profile_tools.bundles.shelf import SHIPPED, Shelf
from tests.parts.profile_tools.made import Signer
from tests.real import shipped
from tests.real.agents import RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

NAME = "pi"
PROFILE = (Path(__file__).parents[2] / "profiles" / f"{NAME}.toml").read_text()


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(tmp_path)


def take(daemon: Daemon, signer: Signer, text: str) -> str:
    file = signer.file.with_name(f"{NAME}.toml")
    file.write_text(text)
    out = signer.file.with_name("pi.bundle")
    made = daemon.ctl("profiles", "bundle", str(file), "--key", str(signer.file), "-o", str(out))
    assert made.code == 0, made.err
    update = ("profiles", "update", "--from", str(out))
    digest = daemon.ctl(*update, "--dry-run").out.split()[1].rstrip(",")
    taken = daemon.ctl(*update, "--accept-commands", digest)
    assert taken.code == 0, taken.err
    return taken.out


def test_one_is_taken_and_one_that_fails_rolled_back(
    daemon: Daemon, model: Model, cli_home: CliHome, signer: Signer
) -> None:
    if reason := shipped.missing(NAME):
        pytest.skip(reason)
    agent = RealAgent.start(NAME, daemon, model, cli_home(NAME))
    agent.ask_exactly(f"First {nonce()}.")
    daemon.config_file.write_text(f'{daemon.config_file.read_text()}\n[profiles]\nkeys = ["{signer.trusted[0]}"]\n')
    shelf = Shelf(daemon.home / "state")
    pid = agent.pid
    told = take(daemon, signer, f'{PROFILE}\n[[error]]\npattern = "^!!!! no such words "\ncode = "MODEL_ERROR"\n')
    assert "WHAT IS RUN" not in told
    good = shelf.counts().current
    assert good != SHIPPED
    agent.ask_exactly(f"Second {nonce()}.")
    assert agent.pid == pid, "how its screen is read counts at once"
    assert daemon.ctl("restart", NAME).code == 0
    daemon.ready(NAME, patience=240)
    eventually(lambda: not shelf.counts().unproved or None, "the profile is proved")
    told = take(daemon, signer, f'args = ["--help"]\n{PROFILE}')
    assert "WHAT IS RUN" in told
    bad = shelf.counts().current
    events = ("events", NAME, "--after", "0", "--json")
    eventually(lambda: "BUNDLE_ROLLED_BACK" in daemon.ctl(*events).out or None, "it is rolled back", patience=240)
    assert shelf.counts().current == good != bad
    daemon.ready(NAME, patience=240)
    agent.ask_exactly(f"Third {nonce()}.")
