"""Keepers found again by a daemon that comes back."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from synapsed.channels.adapters import Adapter
from synapsed.channels.launch_additions import LaunchContext
from synapsed.config.paths import Paths
from synapsed.errors import KeeperLost
from synapsed.keepers.client import KeeperClient
from synapsed.keepers.launch_plan import LaunchPlan
from synapsed.keepers.launchers import LaunchedKeeper, LaunchSpec, ProcessLauncher, sweep_launch
from synapsed.profiles.profile import Profile
from synapsed.pty.link_factory import LAUNCH_FILE, PtyLinkFactory
from synapsed.pty.program_version import VersionReader
from synapsed.pty.pty_link import PtyLink
from synapsed.pty.shared_timer import Rounds
from synapsed.screens.pool import ScreenPool
from tests.fakes.clock import FakeClock
from tests.fakes.screens import FakeScreenProcess
from tests.fakes.store import MemoryStore
from tests.keeper.conftest import DEADLINE_S, until_gone
from tests.pty.test_channel_delivery import FakeChannel
from tests.store.samples import an_agent


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(**{name: tmp_path / name for name in ("config", "state", "run", "a2a")})


@pytest.fixture(autouse=True)
def _drawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapsed.screens.pool.ScreenProcess", FakeScreenProcess)


def factory(paths: Paths, store: Any = None, launcher: Any = None) -> PtyLinkFactory:
    return PtyLinkFactory(
        paths=paths,
        launcher=launcher or ProcessLauncher(),
        store=store,
        clock=FakeClock(),
        versions=VersionReader(paths.versions),
        screens=ScreenPool(),
        rounds=Rounds(FakeClock()),
    )


class Launcher:
    """Starts nothing; closes the store where that is given."""

    def __init__(self, closes: MemoryStore | None = None) -> None:
        self._closes = closes

    async def launch(self, spec: LaunchSpec) -> LaunchedKeeper:
        if self._closes is not None:
            await self._closes.close()
        return LaunchedKeeper(spec.launch_id, spec.socket_path, 1, 1, 2, 2, 0, 0.0)


def note(paths: Paths, agent: str, launch_id: str, socket: Path) -> None:
    paths.agent(agent).mkdir(parents=True, exist_ok=True)
    (paths.agent(agent) / LAUNCH_FILE).write_text(json.dumps({"launch_id": launch_id, "socket": str(socket)}))


async def test_a_launch_under_way_whose_keeper_does_not_listen_yet_is_ended(paths: Paths) -> None:
    """Else it would begin in a moment, and keep the agent's place from every launch to come."""
    record, launch_id = an_agent(), uuid4().hex
    note(paths, record.id, launch_id, paths.run / "no.sock")
    environ = {**os.environ, "SYNAPSE_LAUNCH_ID": launch_id}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environ) as starting:
        try:
            assert await factory(paths).adopt(record, Profile(name="p", command="p")) is None
            assert starting.wait(timeout=60) == -9
        finally:
            starting.kill()


async def test_the_launch_before_is_not_taken_for_one_under_way(paths: Paths) -> None:
    """The daemon was killed before it noted its own launch, and the keeper of the last one still waits for its exit to
    be acknowledged."""
    record, launch_id = an_agent(), uuid4().hex
    socket = paths.run / "k.sock"
    spec = LaunchSpec(
        launch_id=launch_id,
        agent="a",
        argv=["true"],
        env={"PATH": os.environ["PATH"]},
        cwd="/",
        state_dir=paths.agent(record.id),
        socket_path=socket,
    )
    keeper = await ProcessLauncher().launch(spec)
    try:
        client = await KeeperClient.connect(socket, timeout=DEADLINE_S)
        while (await client.ping()).exit is None:
            pass
        client.close()
        note(paths, record.id, launch_id, socket)
        assert await factory(paths).adopt(record, Profile(name="p", command="p")) is None
        with pytest.raises(KeeperLost):
            await KeeperClient.connect(socket)
        await until_gone(keeper.keeper_pid, keeper.keeper_start)
    finally:
        await sweep_launch(launch_id)


async def test_once_a_keeper_runs_nothing_keeps_its_launch_from_being_recorded(paths: Paths) -> None:
    """Else it would run for nobody, and keep its agent's place for ever."""
    made = factory(paths, store := MemoryStore(), Launcher(store))
    link = await made.launch(an_agent(), Profile(name="p", command="p"), LaunchPlan(program="p", env={}))
    assert link.launch.keeper_pid == 1


async def test_a_disk_that_refuses_the_note_of_a_launch_does_not_undo_it(paths: Paths) -> None:
    class Blocked(Launcher):
        async def launch(self, spec: LaunchSpec) -> LaunchedKeeper:
            (spec.state_dir / LAUNCH_FILE).unlink()
            (spec.state_dir / LAUNCH_FILE).mkdir()  # no file can replace it
            return await super().launch(spec)

    made = factory(paths, MemoryStore(), Blocked())
    link = await made.launch(an_agent(), Profile(name="p", command="p"), LaunchPlan(program="p", env={}))
    assert link.launch.keeper_pid == 1


async def test_a_program_that_gets_no_link_does_not_run_on(paths: Paths) -> None:
    """Nobody would own it, and its keeper would keep the agent's place from every launch to come."""
    running: list[subprocess.Popen[bytes]] = []

    class Starts(Launcher):
        async def launch(self, spec: LaunchSpec) -> LaunchedKeeper:
            environ = {**os.environ, "SYNAPSE_LAUNCH_ID": spec.launch_id}
            running.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environ))
            return await super().launch(spec)

    def faulty(**_: object) -> FakeChannel:
        raise RuntimeError("a part has a fault")

    profile = Profile.model_validate({"name": "p", "command": "p", "channels": {"c": {"adapter": "session-server"}}})
    adapters = {"session-server": Adapter(faulty, faulty, lambda _context: True)}
    made = replace(factory(paths, MemoryStore(), Starts()), adapters=adapters)
    try:
        with pytest.raises(RuntimeError, match="fault"):
            await made.launch(an_agent(), profile, LaunchPlan(program="p", env={}))
        assert [one.wait(timeout=60) for one in running] == [-9]
    finally:
        for one in running:
            with one:
                one.kill()


@pytest.mark.parametrize("chosen", [True, False])
async def test_only_arguments_that_choose_the_conversation_are_kept_as_its_choice(paths: Paths, chosen: bool) -> None:
    """By others the first message would go to a session that nobody chose."""
    record, plan = an_agent(), LaunchPlan(program="p", env={}, args=("--session", "s1"), chosen=chosen)
    await factory(paths, MemoryStore(), Launcher()).launch(record, Profile(name="p", command="p"), plan)
    assert LaunchContext.load(paths.agent(record.id)).chosen_by == (plan.args if chosen else ())


@pytest.mark.parametrize("delivers", [True, False])
async def test_a_program_that_takes_messages_over_a_channel_gets_a_link_with_that_way(
    paths: Paths, delivers: bool
) -> None:
    channel = {"adapter": "session-server", "delivers": delivers}
    profile = Profile.model_validate({"name": "p", "command": "p", "channels": {"server": channel}})
    adapters = {"session-server": Adapter(lambda **_: _Reads(), lambda **_: FakeChannel(), lambda _context: True)}
    made = replace(factory(paths, MemoryStore(), Launcher()), adapters=adapters)
    link = await made.launch(an_agent(), profile, LaunchPlan(program="p", env={}))
    assert isinstance(link, PtyLink)
    assert (link._beside is not None) == delivers
    assert link.terminal is link


class _Reads(FakeChannel):
    """A channel over which no message goes."""

    find = None  # type: ignore[assignment]
