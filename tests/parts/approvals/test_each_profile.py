"""Deny rules with every shipped profile: a question of the program is decided by them, or it does not start."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from synapsed.agents.part_doors import PartDoors, RuleDoor
from synapsed.config.paths import Paths
from synapsed.errors import NotEnforced
from synapsed.interfaces import Deciding, SettingsReading
from synapsed.model.records import AgentRecord
from synapsed.parts.approvals.deciding import DecidingByRules
from synapsed.parts.approvals.face import ApprovalConfig
from synapsed.parts.person_settings.reading import ReadingSettings
from synapsed.profiles.channel_spec import ACP_REQUEST
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.supervisor.launch_planner import ManagerSettings, Planner
from synapsed.supervisor.roster import Roster
from tests.fakes.clock import FakeClock
from tests.fakes.store import MemoryStore
from tests.parts.approvals.conftest import AGENT_MODEL, MODEL

RECORDED = Path(__file__).parents[2] / "recordings" / "hooks"
LIBRARY = ProfileLibrary.standard(Path("/nonexistent"))
NAMES = LIBRARY.names()

NO_WAY = {"aider", "amp", "codebuff", "dummy", "generic", "grok", "pi"}
"""Programs that are only read off their screens, or that ask about nothing."""
UNASKED = ("--yolo", "--allow-all-tools", "--approval-mode yolo", "--auto-approve true", "--allowed-tools=shell")
FREE = {
    "claude": ("--bare",),
    "codex": ("--yolo",),
    "qwen": ("-y", *UNASKED),
    "kimi": ("--yolo", "--auto", "-y"),
    "cursor": ("-f", "--force"),
    "acp": (
        "qwen --acp --yolo",
        "npx it -- --yolo",
        "-- qwen --yolo",
        "codex-acp --full-auto",
        "codex-acp -c approval_policy=never",
        "npx -y it --dangerously-skip-permissions",
    ),
    "copilot": UNASKED,
}


def questions(profile: Profile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the program's questions, as it was recorded with one where there is a recording."""
    if profile.transport == "pipes":
        yield ACP_REQUEST, {"kind": "execute", "command": "touch made-by-tool", "paths": []}
    for event in (event for channel in profile.channels.values() for event in channel.decisions):
        file = RECORDED / profile.name / f"{event}.json"
        told = json.loads(file.read_text()) if file.is_file() else {}
        yield event, told.get("properties", told)


@dataclass
class Owner:
    record: AgentRecord
    config: Any

    def denied(self, tool: str, texts: object, reason: str) -> None:
        assert reason == "denied by the rule *", (tool, texts)


@dataclass
class Place:
    """An agent of each profile, whose rules deny everything."""

    root: Path

    def __post_init__(self) -> None:
        for command in {LIBRARY.get(name).command for name in NAMES} - {"{python}"}:
            (self.root / command).write_text("#!/bin/sh\n")
            (self.root / command).chmod(0o755)
        asks = self.root / ".config/opencode/opencode.json"
        asks.parent.mkdir(parents=True)
        asks.write_text('{"permission": {"bash": "ask"}}')

    def owner(self, profile: Profile, approval: ApprovalConfig, *args: str) -> Owner:
        record = AgentRecord(
            id=f"synapse-{profile.name}-8100",
            name=profile.name,
            profile=profile.name,
            port=None,
            cwd=str(self.root),
            created_at=1.0,
            args=list(args),
            from_config=True,
        )
        return Owner(record, AGENT_MODEL(approval=approval))

    def plan(self, owner: Owner, profile: Profile, **environ: str) -> PartDoors:
        """Plans the agent's start. Raises NotEnforced."""
        settings = ManagerSettings(
            paths=Paths.from_environ({"SYNAPSED_HOME": str(self.root), "HOME": str(self.root)}),
            config=MODEL(agents={profile.name: owner.config}),
            control_token="t" * 43,
            environ={"PATH": str(self.root), "HOME": str(self.root), **environ},
            tool_dir=None,
        )
        doors, parts = PartDoors(), {Deciding: DecidingByRules(MemoryStore()), SettingsReading: ReadingSettings()}
        doors.become(lambda kind: [parts[kind]] if kind in parts else [])
        planner = Planner(settings, Roster(settings.config, LIBRARY, FakeClock()), {}, doors)
        planner.plan(owner.record, profile)
        return doors


ALL = ApprovalConfig(deny=["*"])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("name", NAMES)
async def test_its_questions_are_decided_or_it_does_not_start(name: str, place: Place) -> None:
    for profile in (LIBRARY.get(name), *LIBRARY.get(name).variants):
        owner = place.owner(profile, ALL)
        if name in NO_WAY:
            with pytest.raises(NotEnforced, match=r"cannot be enforced.*--without-approval") as refused:
                place.plan(owner, profile)
            assert refused.value.exit_code == 6
            continue
        doors = place.plan(owner, profile)
        rules = RuleDoor(doors, owner, lambda profile=profile: profile)  # type: ignore[misc] - of this round
        asked = list(questions(profile))
        assert asked
        for event, told in asked:
            assert await rules.decide(event, told, None), f"{event} is left to a person"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("approval", [ApprovalConfig(), ApprovalConfig(allow=["*"])], ids=["no rules", "allowed"])
def test_without_deny_rules_nobody_notices_anything(name: str, approval: ApprovalConfig, place: Place) -> None:
    for args in ((), *(each.split() for each in FREE.get(name, ()))):
        profile = LIBRARY.get(name)
        place.plan(place.owner(profile, approval, *args), profile)


@pytest.mark.parametrize(("name", "args"), [(name, args) for name in FREE for args in FREE[name]])
def test_one_that_is_told_not_to_ask_does_not_start(name: str, args: str, place: Place) -> None:
    profile = LIBRARY.get(name)
    with pytest.raises(NotEnforced, match=r"approval rules do not count.*--without-approval"):
        place.plan(place.owner(profile, ALL, *args.split()), profile)


@pytest.mark.parametrize(("name", "environ"), [("copilot", {"COPILOT_ALLOW_ALL": "true"})])
def test_nor_one_whose_environment_says_so(name: str, environ: dict[str, str], place: Place) -> None:
    profile = LIBRARY.get(name)
    with pytest.raises(NotEnforced, match="approval rules do not count"):
        place.plan(place.owner(profile, ALL), profile, **environ)


def test_default_deny_needs_a_place_where_it_decides(place: Place) -> None:
    profile = LIBRARY.get("grok")
    with pytest.raises(NotEnforced, match=r'default = "deny", which cannot be enforced: its profile .grok.'):
        place.plan(place.owner(profile, ApprovalConfig(default="deny")), profile)
