"""Approval policies on the real programs: what is allowed runs without a dialog, what is denied the model is told."""

import itertools
import json
from pathlib import Path

import pytest

from tests.real.agents import EVERY, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.support.daemon import Daemon

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

TOOLS = {"claude": "Bash", "codex": "Bash", "gemini": "run_shell_command", "opencode": "bash"}
"""How each calls its shell."""


def decisions(agent: RealAgent, count: int) -> list[tuple[str, str | None]]:
    with agent.daemon.sse("/events", last_id=0) as events:
        found = (event["data"]["data"] for event in events if event["event"] == "permissionDecided")
        return [(data["verdict"], data["rule"]) for data in itertools.islice(found, count)]


@pytest.mark.parametrize("cli", EVERY)
def test_rules_decide_without_a_person(cli: str, private_dir: Path, model: Model, cli_home: CliHome) -> None:
    tool, prepared = TOOLS[cli], cli_home(cli)
    allowed, denied, compound = nonce(), nonce(), nonce()
    allow, deny = f"{tool}(touch allowed-*)", f"{tool}(touch denied-*)"
    daemon = Daemon(private_dir / "synapsed")
    agent = RealAgent.configured(cli, daemon, model, prepared, {"approval": {"allow": [allow], "deny": [deny]}})
    try:
        done = agent.ask(f"{allowed} [[tool:shell-ask:touch allowed-{allowed}]] say: Made.")
        assert (done.code, done.out) == (0, "Made.\n"), f"{done.err}\n{agent.screen()}"
        assert agent.file(f"allowed-{allowed}").exists()

        before = len(model.requests())
        done = agent.ask(f"{denied} [[tool:shell-ask:touch denied-{denied}]] say: Not made.")
        assert (done.code, done.out) == (0, "Not made.\n"), f"{done.err}\n{agent.screen()}"
        assert not agent.file(f"denied-{denied}").exists()
        told = "\n".join(result.text for request in model.requests()[before:] for result in request.results)
        assert (f"denied by the rule {deny}" if cli != "codex" else "rejected by user") in told

        asked = agent.ask(f"{compound} [[tool:shell-ask:touch allowed-{compound}; touch {compound}]] say: Both.")
        assert asked.code == 7, f"{asked.out}{asked.err}\n{agent.screen()}"
        assert not agent.file(compound).exists()
        assert agent.daemon.ctl("input", agent.name, "yes").code == 0
        task = agent.tasks()[0]
        assert agent.daemon.task_in(task["id"], "completed", "failed", "canceled")["status"] == "completed"
        assert agent.file(compound).exists()
        assert decisions(agent, 3) == [("allow", allow), ("deny", deny), ("escalate", None)]
    finally:
        daemon.end()


@pytest.mark.parametrize("cli", EVERY)
def test_rules_that_change_while_it_asks_count_for_the_next_call(
    cli: str, private_dir: Path, model: Model, cli_home: CliHome
) -> None:
    """What is asked already stays the person's; the very same command once more is not asked about."""
    daemon, tool = Daemon(private_dir / "synapsed"), TOOLS[cli]
    agent = RealAgent.configured(cli, daemon, model, cli_home(cli), {"approval": {"allow": [f"{tool}(touch some*)"]}})
    word = nonce()
    calls = f"[[tool:shell-ask:touch {word}]]" * 2 + f"[[tool:shell-ask:touch no-{word}]]"
    try:
        task_id = agent.send(f"{word} {calls} say: Told.")
        asked = daemon.task_in(task_id, "input_required")["prompt"]
        config = daemon.config_file.read_text()
        daemon.config_file.write_text(config.replace(f'"{tool}(touch some*)"', f'"{tool}(touch nonce*)"'))
        assert "approval changed" in daemon.ctl("reload").out
        assert daemon.task(task_id)["prompt"] == asked
        assert not agent.file(word).exists()
        assert daemon.ctl("approve", task_id).code == 0
        second = daemon.task_in(task_id, "input_required", "completed", "failed", "canceled")
        assert f"no-{word}" in second["prompt"]["prompt"], f"{second}\n{agent.screen()}"
        assert daemon.ctl("deny", task_id).code == 0
        daemon.ended(task_id)
        assert agent.file(word).exists()
        assert not agent.file(f"no-{word}").exists()
        assert [verdict for verdict, _ in decisions(agent, 3)] == ["escalate", "allow", "escalate"]
    finally:
        daemon.end()


FORGED = {
    "gemini": (
        "read_file",
        '{"file_path": "secret/key", "command": "git status"}',
        '{"file_path": "./secret//key", "dir_path": "src"}',
    ),
    "opencode": (
        "apply_patch",
        json.dumps(
            {"patchText": "*** Begin Patch\n*** Add File: src/a\n+a\n*** Add File: secret/b\n+b\n*** End Patch"}
        ),
        json.dumps(
            {"patchText": "*** Begin Patch\n*** Update File: src/m\n*** Move to: secret/m\n@@\n-a\n+b\n*** End Patch"}
        ),
    ),
}
"""Calls of a tool that mean a file of `secret` and something else, too, and how the rules call what it does."""


@pytest.mark.parametrize("cli", FORGED)
def test_a_file_that_is_denied_is_not_reached_beside_another(
    cli: str, private_dir: Path, model: Model, cli_home: CliHome
) -> None:
    prepared = cli_home(cli)
    if cli == "opencode":
        patching(prepared)
    for name in ("src", "secret"):
        (prepared.cwd / name).mkdir()
    (prepared.cwd / "secret" / "key").write_text("4711\n")
    (prepared.cwd / "src" / "m").write_text("a\n")
    tool, *calls = FORGED[cli]
    rule = f"{'edit' if cli == 'opencode' else tool}(%s/*)"
    daemon = Daemon(private_dir / "synapsed")
    settings = {"approval": {"allow": [rule % "src"], "deny": [rule % "secret"]}}
    agent = RealAgent.configured(cli, daemon, model, prepared, settings)
    try:
        for call in calls:
            before = len(model.requests())
            done = agent.ask(f"{nonce()} [[tool:{tool}:{call}]] say: Told.")
            assert (done.code, done.out) == (0, "Told.\n"), f"{done.err}\n{agent.screen()}"
            told = "\n".join(result.text for request in model.requests()[before:] for result in request.results)
            assert f"denied by the rule {rule % 'secret'}" in told
            assert "4711" not in told
        assert [file.name for file in (prepared.cwd / "secret").iterdir()] == ["key"]
    finally:
        daemon.end()


def patching(prepared: Prepared) -> None:
    """opencode asks before edits, and its model is one that it lets edit by patches."""
    (file,) = prepared.home.rglob("opencode.json")
    name = "gpt-5-scripted"
    config = json.loads(file.read_text().replace("scripted/scripted", f"scripted/{name}"))
    config["permission"] = {"edit": "ask"}
    config["provider"]["scripted"]["models"] = {name: {"name": "Scripted", "tool_call": True}}
    file.write_text(json.dumps(config))
