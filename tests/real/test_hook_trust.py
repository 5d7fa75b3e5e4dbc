"""A repository's own hooks run only when a person has trusted them; ours report all the same."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.real.agents import RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "PermissionRequest")


def hooks_of_a_repository(prepared: Prepared) -> Path:
    """Puts hooks into the project that make files in the folder returned."""
    made = prepared.home / "made"
    made.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=prepared.cwd, check=True)
    hooks = {event: [{"hooks": [{"type": "command", "command": f"touch {made / event}"}]}] for event in EVENTS}
    (prepared.cwd / ".codex").mkdir()
    (prepared.cwd / ".codex" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    return made


@pytest.mark.parametrize(("given", "run"), [("no", set()), ("trust", {"SessionStart", "UserPromptSubmit", "Stop"})])
def test_a_person_is_asked_about_the_hooks_of_a_repository(
    given: str, run: set[str], daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    prepared = cli_home("codex")
    made = hooks_of_a_repository(prepared)
    agent = RealAgent.start("codex", daemon, model, prepared, ready=False)
    prompt = eventually(lambda: daemon.agent("codex")["prompt"], "it asks")
    assert prompt["type"] == "trust"
    assert prompt["prompt"].startswith("Hooks need review\n4 hooks are new or changed."), prompt
    assert [option["label"].partition(" (")[0] for option in prompt["options"]] == [
        "Review hooks",
        "Trust all and continue",
        "Continue without trusting",
    ]
    task_id = agent.send(f"Hello {(word := nonce())}.")
    assert not list(made.iterdir())
    assert daemon.ctl("input", "codex", given).code == 0
    task = daemon.ended(task_id)
    assert task["artifacts"][0]["parts"][0]["text"] == f"Answer to {word}."
    assert {path.name for path in made.iterdir()} == run
    written = tomllib.loads((prepared.home / ".codex" / "config.toml").read_text()).get("hooks", {}).get("state", {})
    assert not [key for key in written if "session-flags" in key], "ours are not in the user's configuration"
    agent.ask_exactly(f"Again {nonce()}.")


def test_nothing_is_asked_where_the_hooks_are_ours_alone(daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    prepared = cli_home("codex")
    agent = RealAgent.start("codex", daemon, model, prepared)
    agent.ask_exactly(f"Hello {nonce()}.")
    [rollout] = prepared.home.glob(".codex/sessions/*/*/*/rollout-*.jsonl")
    told = daemon.agent("codex")["conversation"]["id"]
    assert told in rollout.name, "its first hook has told the conversation's id"
    assert "hooks" not in tomllib.loads((prepared.home / ".codex" / "config.toml").read_text())
