"""`approval` of the configuration, and an agent that has rules which nobody keeps."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError, NotEnforced, NotReady
from synapsed.interfaces import Deciding
from synapsed.kernel import Kernel, Running, open_parts
from synapsed.model.agent import ProcessState
from synapsed.model.events import AgentAlert
from synapsed.parts.approvals import deciding
from synapsed.parts.approvals.deciding import Approvals, DecidingByRules
from synapsed.parts.approvals.face import FACE, ApprovalConfig
from synapsed.parts.approvals.policy import ToolCall
from synapsed.parts.config import config_with
from synapsed.supervisor.manager import SWEEP_S
from tests.fakes.clock import until
from tests.parts.approvals.conftest import AGENT_MODEL, MODEL
from tests.parts.approvals.test_deciding import asker, bash
from tests.support.kernels import kernel_of
from tests.support.world import World


def test_approval_rules_are_read_when_the_configuration_is(tmp_path: Path) -> None:
    paths = Paths(config=tmp_path, state=tmp_path, run=tmp_path, a2a=tmp_path)
    (tmp_path / "config.toml").write_text(
        '[agents.claude]\napproval = {default = "deny", allow = ["Bash(git status*)"]}\n'
    )
    policy = load_config(paths, MODEL).agents["claude"].approval.policy
    assert policy.decide(ToolCall(tool="bash", command="git status")).verdict == "allow"
    assert policy.decide(ToolCall(tool="bash", command="git push")).verdict == "deny"
    (tmp_path / "config.toml").write_text('[agents.claude]\napproval = {allow = ["Bash(git"]}\n')
    with pytest.raises(ConfigError, match="is no rule: write Tool"):
        load_config(paths, MODEL)


@asynccontextmanager
async def _broken(_: Kernel) -> AsyncIterator[Running]:
    raise ZeroDivisionError
    yield Running()


async def test_an_agent_with_rules_is_not_started_where_the_part_is_left_out(
    quiet_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = quiet_world
    world.agents["fake"] = AGENT_MODEL(cwd="/", approval=ApprovalConfig(deny=["Bash(rm *)"]))
    world.agents["talker"] = AGENT_MODEL(cwd="/")
    await world.daemon()
    monkeypatch.setattr(deciding, "opened", _broken)
    given: dict[str, Any] = {"config": MODEL(), "control": world.manager, "store": world.store}
    kernel = kernel_of(**given, clock=world.clock, timers=world.clock, paths=world.paths)
    async with open_parts([FACE], kernel) as parts:
        world.manager.doors.become(parts.all, parts.closed)
        with pytest.raises(NotEnforced, match=r"nobody keeps its 'approval': the part approvals.*--without-approval"):
            await world.manager.restart("synapse-fake-8190")
        assert world.factory.launched == []
        await world.manager.restart("synapse-talker-8170")
        assert len(world.factory.launched) == 1
        await world.manager.restart("synapse-fake-8190", without_approval=True)
        assert len(world.factory.launched) == 2


async def test_a_fault_in_a_decision_leaves_it_to_the_person(
    quiet_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError

    agent = await asker(quiet_world)
    decide = quiet_world.manager.terminals.decide
    monkeypatch.setattr(Approvals, "_remember", breaks)
    assert await decide(agent.id, "Asked", bash("git status")) is None


async def test_an_agent_of_which_it_is_not_known_what_is_refused_is_not_started_and_the_others_are(
    quiet_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(_: object, config: Any) -> frozenset[str]:
        if config.approval.deny:
            raise ZeroDivisionError
        return frozenset()

    world = quiet_world
    monkeypatch.setattr(DecidingByRules, "refusing", breaks)
    world.agents["fake"] = AGENT_MODEL(cwd="/", autostart=True, approval=ApprovalConfig(deny=["Bash(rm *)"]))
    world.agents["talker"] = AGENT_MODEL(cwd="/", autostart=True)
    await world.daemon()
    why = "which of its rules may refuse a call is not known: ZeroDivisionError"
    assert why in (await world.agent_is("synapse-fake-8190", ProcessState.BACKOFF)).evidence
    await world.agent_is("synapse-talker-8170", ProcessState.RUNNING)
    with pytest.raises(NotEnforced, match=rf"{why}.*--without-approval"):
        await world.manager.restart("synapse-fake-8190")
    await world.manager.restart("synapse-fake-8190", without_approval=True)


async def test_rules_are_refused_by_whichever_part_decides(quiet_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that refuses nothing hides no other."""

    class Silent(DecidingByRules):
        def refusing(self, config: Any) -> frozenset[str]:
            return frozenset()

    await quiet_world.daemon()
    doors, config = quiet_world.manager.doors, AGENT_MODEL(approval=ApprovalConfig(deny=["Bash(rm *)"]))
    deciding = [Silent(quiet_world.store), DecidingByRules(quiet_world.store)]
    doors.become(lambda kind: list(deciding) if kind is Deciding else [])
    assert doors.refusing("fake", config) == {"deny"}


WHY = "nobody keeps its 'approval': the part approvals is left out"


async def test_the_calls_of_a_living_agent_whose_rules_nobody_keeps_are_refused(quiet_world: World) -> None:
    world = quiet_world
    agent = await asker(world)
    await world.manager.close(keep_agents=True)
    await world.daemon(adopt=False)
    world.manager.doors.become(lambda _: [], {"approval": "the part approvals is left out"})
    await world.manager.adopt()
    await until(lambda: world.link.opened)
    decide = world.manager.terminals.decide
    assert await decide(agent.id, "Asked", bash("git status")) == {"ok": False, "why": {"text": WHY}}
    assert await decide(agent.id, "Unknown", bash("git status")) is None
    world.clock.advance(SWEEP_S)
    await until(lambda: bool(told_unenforced(world)), "it is told of")
    (state, message) = told_unenforced(world)[-1]
    assert (state, WHY in message, "--without-approval" in message) == ("begins", True, True)
    world.clock.advance(SWEEP_S)
    await until(lambda: bool(world.manager.directory.detail(agent.id).alerts), "it stands")
    await world.manager.restart(agent.id, without_approval=True)
    assert await decide(agent.id, "Asked", bash("git status")) is None
    world.clock.advance(SWEEP_S)
    await until(lambda: told_unenforced(world)[-1][0] == "over", "it is over")
    assert [state for state, _ in told_unenforced(world)] == ["begins", "over"]


async def test_rules_that_come_while_a_program_runs_that_cannot_obey_are_told_of(quiet_world: World) -> None:
    world = quiet_world
    await world.daemon()
    view = await world.start("talker", cwd="/")
    world.clock.advance(SWEEP_S)
    await world.manager.restart(view.id)
    assert told_unenforced(world) == [], "without rules there is nothing to tell"
    config = world.paths.config / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[agents.talker]\napproval = {deny = ["Bash(rm *)"]}\n')
    await world.manager.reload()
    world.clock.advance(SWEEP_S)
    await until(lambda: bool(told_unenforced(world)), "it is told of")
    assert "no way to obey them: remove them, or run 'synapsectl restart' with" in told_unenforced(world)[-1][1]
    with pytest.raises(NotReady, match=r"its program runs on.*cannot be enforced"):
        await world.manager.restart(view.id)
    await world.manager.restart(view.id, without_approval=True)
    world.clock.advance(SWEEP_S)
    await until(lambda: told_unenforced(world)[-1][0] == "over", "it is over")


def told_unenforced(world: World) -> list[tuple[str, str]]:
    found = [alert for alert in world.told(AgentAlert) if alert.code == "NOT_ENFORCED"]
    return [(alert.details["state"], alert.message) for alert in found]


def test_at_the_top_of_the_configuration_it_is_said_where_rules_belong(tmp_path: Path) -> None:
    paths = Paths(config=tmp_path, state=tmp_path, run=tmp_path, a2a=tmp_path)
    (tmp_path / "config.toml").write_text('[approval]\ndefault = "deny"\n')
    with pytest.raises(ConfigError, match=r"unknown key 'approval'; it belongs in the table of an agent, \[agents"):
        load_config(paths, MODEL)
    with pytest.raises(ConfigError, match=r"'approval' belongs to the part approvals, which is not installed"):
        load_config(paths, config_with([]))


async def test_rules_count_at_once_for_an_agent_that_was_started_by_hand(quiet_world: World) -> None:
    """Also where they are all that is configured of it."""
    world = quiet_world
    await world.daemon()
    await world.start("fake", cwd="/")
    config = world.paths.config / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[agents.fake]\napproval = {deny = ["Bash(rm *)"]}\n')
    changes = [change for change in await world.manager.reload() if change.agent == "fake"]
    assert [(change.action, change.reason) for change in changes] == [("update", "approval changed")]
