"""An agent whose deny rules could not be enforced is not started, unless a person says so."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from synapsed.errors import NotEnforced, NotReady
from synapsed.interfaces import SettingsReading
from synapsed.model.agent import ProcessState
from synapsed.parts.approvals.face import ApprovalConfig
from synapsed.parts.person_settings.reading import ReadingSettings
from tests.fakes.clock import until
from tests.parts.approvals.conftest import AGENT_MODEL
from tests.support.world import World

CAREFUL = """
command = "sh"
args = ["--careful"]
ports = [8150, 8159]
[settings]
files = ["settings.json"]
[[settings.yields]]
args = ["--careful"]
to = "mode"
[[settings.notes]]
path = "off"
values = [true]
says = "it runs no hooks"
loses = ["deny", "default"]
[channels.hooks]
adapter = "hooks"
[channels.hooks.decisions.Asked]
deny = { ok = false }
"""
CAREFUL_ID = "synapse-careful-8150"


async def careful(world: World, folder: Path, settings: str, **config: Any) -> None:
    approval = ApprovalConfig(deny=["Bash(rm *)"])
    world.agents["careful"] = AGENT_MODEL(cwd=str(folder), approval=approval, **config)
    (world.paths.config.parent / "profiles" / "careful.toml").write_text(CAREFUL)
    (folder / "settings.json").write_text(settings)
    world.library.reload()
    await world.daemon()


async def test_it_is_not_started_and_the_way_out_is_named(quiet_world: World, tmp_path: Path) -> None:
    await careful(quiet_world, tmp_path, '{"off": true}')
    with pytest.raises(NotEnforced, match=r"it runs no hooks.*--without-approval"):
        await quiet_world.manager.restart(CAREFUL_ID)
    assert quiet_world.factory.launched == []
    await quiet_world.manager.restart(CAREFUL_ID, without_approval=True)
    assert len(quiet_world.factory.launched) == 1
    await quiet_world.manager.restart(CAREFUL_ID)
    assert len(quiet_world.factory.launched) == 2, "that counts from then on"


async def test_one_that_runs_is_not_ended_for_it(quiet_world: World, tmp_path: Path) -> None:
    await careful(quiet_world, tmp_path, "{}")
    await quiet_world.manager.restart(CAREFUL_ID)
    (tmp_path / "settings.json").write_text('{"off": true}')
    with pytest.raises(NotReady, match=r"its program runs on.*it runs no hooks"):
        await quiet_world.manager.restart(CAREFUL_ID)
    assert quiet_world.manager.directory.view(CAREFUL_ID).state is ProcessState.RUNNING


async def test_with_a_daemon_it_waits_until_the_settings_are_others(quiet_world: World, tmp_path: Path) -> None:
    await careful(quiet_world, tmp_path, '{"off": true}', autostart=True)
    view = await quiet_world.agent_is(CAREFUL_ID, ProcessState.BACKOFF)
    assert "cannot be enforced" in view.evidence
    (tmp_path / "settings.json").write_text('{"mode": "mine"}')
    quiet_world.clock.advance(2)
    await until(lambda: len(quiet_world.factory.launched) == 1, "it is started")


async def test_the_configuration_may_say_so(quiet_world: World, tmp_path: Path) -> None:
    await careful(quiet_world, tmp_path, '{"off": true}', autostart=True, without_approval=True)
    await until(lambda: len(quiet_world.factory.launched) == 1, "it is started")


async def test_it_is_not_started_where_nobody_reads_its_persons_settings(quiet_world: World, tmp_path: Path) -> None:
    quiet_world.provides.pop(SettingsReading)
    await careful(quiet_world, tmp_path, "{}")
    with pytest.raises(NotEnforced, match=r"its person's own settings are not looked at.*--without-approval"):
        await quiet_world.manager.restart(CAREFUL_ID)
    assert quiet_world.factory.launched == []


async def test_nor_where_who_reads_them_has_a_fault_and_the_others_are(
    quiet_world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReadingSettings, "read", Mock(side_effect=ZeroDivisionError))
    quiet_world.agents["fake"] = AGENT_MODEL(cwd="/", autostart=True)
    await careful(quiet_world, tmp_path, "{}", autostart=True)
    view = await quiet_world.agent_is(CAREFUL_ID, ProcessState.BACKOFF)
    assert "its person's own settings are not looked at" in view.evidence
    await quiet_world.agent_is("synapse-fake-8190", ProcessState.RUNNING)


SHOWN = """
command = "sh"
ports = [8140, 8149]
[[prompts.dialogs]]
type = "permission"
when = ['^Run it']
question = '^(?P<text>Run it)'
options = [{ key = "no", label = "No", keys = "n" }]
refusal = ["no"]
"""


async def test_a_program_of_ones_own_that_only_shows_its_questions_is_not_started(quiet_world: World) -> None:
    world = quiet_world
    world.agents["shown"] = AGENT_MODEL(cwd="/", approval=ApprovalConfig(deny=["Bash(rm *)"]))
    world.agents["free"] = AGENT_MODEL(cwd="/", profile="shown", approval=ApprovalConfig(allow=["Read"]))
    (world.paths.config.parent / "profiles" / "shown.toml").write_text(SHOWN)
    world.library.reload()
    await world.daemon()
    with pytest.raises(NotEnforced, match=r"'shown' has no way by which its program asks.*--without-approval"):
        await world.manager.restart("synapse-shown-8140")
    assert world.factory.launched == []
    await world.manager.restart("synapse-shown-8141")
    await world.manager.restart("synapse-shown-8140", without_approval=True)
    assert len(world.factory.launched) == 2
