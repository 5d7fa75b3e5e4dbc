"""A wrong state of a real program, reported, made a test that fails, and mended.

Its profile has a pattern for its work that fits nothing, no title that says ready, and no other channel: while it works
it counts as ready.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from synapsed.parts.profile_tools.reports.report import read
from tests.real.agents import RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

PROFILES = Path(__file__).parents[2] / "profiles"


def screen_alone(cli: str) -> dict[str, Any]:
    """The shipped profile, without side channels and reports of its own."""
    told = tomllib.loads((PROFILES / f"{cli}.toml").read_text())
    for one in (told, *told.get("versions", ())):
        one.pop("channels", None)
    return {**told, "status_records": False}


def written(path: Path, profile: Mapping[str, Any]) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(tomli_w.dumps(profile))
    return str(path)


@pytest.mark.parametrize("cli", ["claude", "gemini"])
def test_a_wrong_state_becomes_a_test_and_is_mended(
    cli: str, daemon: Daemon, model: Model, cli_home: CliHome, tmp_path: Path
) -> None:
    right = screen_alone(cli)
    ready = {key: value for key, value in right["ready"].items() if key != "title"}
    wrong = {**right, "busy": {"screen": ["^ NEVER SHOWN$"]}, "ready": ready}
    kept = written(daemon.home / "config" / "profiles" / "wrongly.toml", wrong)
    assert daemon.ctl("reload").code == 0
    agent = RealAgent.start("wrongly", daemon, model, cli_home(cli))
    word = nonce()
    agent.send(f"{word} [[hold:never-{word}]]")
    model.wait_for_turn(word)
    eventually(lambda: daemon.agent(agent.name)["activity"] != "busy", "it works, and does not count as busy")

    file = tmp_path / "r.json"
    made = daemon.ctl("report", agent.name, "--should-be", "busy", "--mask", word, "--yes", "--json", "-o", str(file))
    assert made.code == 0, made.err
    assert (made.json["start"], made.json["drawn"], made.json["altered"]) == ("launch", True, False), made.json
    report = read(file.read_bytes())
    assert report.told is not None
    assert report.told.activity == report.recording.reads["activity"] != "busy"
    assert word not in file.read_text()

    failed = daemon.ctl("profiles", "check", kept, "--against", str(file))
    assert (failed.code, "'busy'" in failed.err or '"busy"' in failed.err) == (1, True), failed
    whole = written(tmp_path / "mended" / "wrongly.toml", right)
    mended = daemon.ctl("profiles", "check", whole, "--against", str(file))
    assert mended.code == 0, mended
