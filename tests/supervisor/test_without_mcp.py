"""Without the MCP SDK no program is told of a server that could not start, and who asks is told what to install."""

import io
from pathlib import Path

import pytest

from synapsectl.checkup import surroundings
from synapsectl.checkup.finding import NOTE
from synapsectl.commands import mcp as verb
from synapsectl.context import CommandContext
from synapsectl.output import CommandOutput
from synapsectl.service.login import Login
from synapsectl.service.settings import ServiceSettings
from synapsed.agents.part_doors import PartDoors
from synapsed.config.config import AgentConfig, Config
from synapsed.config.paths import Paths
from synapsed.model.records import AgentRecord
from synapsed.process.extras import MCP_INSTALL, MCP_MISSING, has_mcp
from synapsed.profiles.library import ProfileLibrary
from synapsed.supervisor.launch_planner import ManagerSettings, Planner
from synapsed.supervisor.roster import Roster
from tests.fakes.clock import FakeClock

PROGRAM = "#!/bin/sh\n"


@pytest.mark.parametrize("installed", [True, False])
def test_a_program_is_told_of_tools_that_there_are(tmp_path: Path, installed: bool) -> None:
    (tmp_path / "claude").write_text(PROGRAM)
    (tmp_path / "claude").chmod(0o755)
    paths = Paths.from_environ({"SYNAPSED_HOME": str(tmp_path), "HOME": str(tmp_path)})
    library = ProfileLibrary.standard(tmp_path / "profiles")
    config = Config(agents={"claude": AgentConfig()})
    settings = ManagerSettings(
        paths=paths,
        config=config,
        control_token="t" * 43,
        environ={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        tool_dir=None,
        mcp=installed,
    )
    record = AgentRecord(
        id="synapse-claude-8100", name="claude", profile="claude", port=8100, cwd=str(tmp_path), created_at=1.0
    )
    planner = Planner(settings, Roster(config, library, FakeClock()), {}, PartDoors())
    plan = planner.plan(record, library.get("claude"))
    assert plan.mcp is installed
    assert ("send_message" in (plan.instructions or "")) is installed
    assert ("synapsectl send" in (plan.instructions or "")) is not installed


def test_it_is_found_where_it_is_installed() -> None:
    pytest.importorskip("mcp")
    assert has_mcp()


def context(home: Path) -> CommandContext:
    environ = {"SYNAPSED_HOME": str(home), "HOME": str(home)}
    return CommandContext(environ, CommandOutput(io.StringIO(), io.StringIO(), columns=None))


def test_the_verb_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "has_mcp", lambda: False)
    with pytest.raises(verb.NotInstalled, match=r"pip install 'synapsed\[mcp\]'") as refused:
        verb.run(None, context(tmp_path))
    assert refused.value.exit_code == 6


@pytest.mark.parametrize("installed", [True, False])
def test_doctor_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    ctx = context(tmp_path)
    settings = ServiceSettings(ctx.paths, "python", None, (), Login("sh", "", {}, ()), {}, ())
    monkeypatch.setattr(surroundings, "gather", lambda *_: settings)
    monkeypatch.setattr(surroundings, "has_mcp", lambda: installed)
    found = [(one.status, one.detail, one.mend) for one in surroundings.look_around(ctx) if one.what == "agents' tools"]
    assert found == ([] if installed else [(NOTE, MCP_MISSING, MCP_INSTALL)])
