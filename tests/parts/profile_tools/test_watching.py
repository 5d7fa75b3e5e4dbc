"""A person is told of a bundle whose profile an agent does not come up with; nothing is changed by itself."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapsed.model.agent import ProcessState
from synapsed.model.events import AgentAlert, AttentionChanged
from synapsed.parts.loading import config_model
from synapsed.parts.profile_tools.bundles import suspicion
from synapsed.parts.profile_tools.bundles.bundle import open_bundle
from synapsed.parts.profile_tools.bundles.shelf import Shelf
from synapsed.parts.profile_tools.bundles.stand_ins import stand_ins
from synapsed.parts.profile_tools.bundles.taking import take
from synapsed.parts.profile_tools.bundles.watching import NOT_UP, BundleWatch
from synapsed.profiles.library import ProfileLibrary, StandIn
from tests.fakes.clock import until
from tests.parts.profile_tools.made import Signer
from tests.support.kernels import kernel_of
from tests.support.world import PROFILE, World

NEW = PROFILE.replace('command = "sh"', 'command = "env"\nverified = "2.0"')


class Shelved(World):
    """A home whose profiles a bundle may stand in for, with the part."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.shelf = Shelf(self.paths.state)
        self.signer = Signer(root)
        self.library = ProfileLibrary([root / "profiles"], self._stand_ins)
        self.alerts: list[str] = []
        self.watches: list[BundleWatch] = []

    def _stand_ins(self) -> dict[str, StandIn]:
        return {name: StandIn(*each) for name, each in stand_ins(self.paths.state).items()}

    async def begin(self) -> BundleWatch:
        await self.daemon()
        kernel = kernel_of(
            control=self.manager,
            store=self.store,
            clock=self.clock,
            timers=self.clock,
            config=config_model()(),
            paths=self.paths,
            alerts=self.alerts,
        )
        watch = BundleWatch(kernel)
        await watch.restore()
        await watch.look()
        watch.start()
        self.watches.append(watch)
        return watch

    async def end(self) -> None:
        for watch in self.watches:
            await watch.end()
        await self.close()

    def take(self, text: str = NEW) -> str:
        content = self.signer.bundle({"profiles/fake.toml": text})
        bundle = open_bundle(content, self.signer.trusted)
        self.shelf.put(bundle, content, source="a test", now=self.clock.wall())
        current = self.shelf.counts().current
        take(bundle.digest, self.shelf, instead_of=current, keys=self.signer.trusted, unproved=["fake"])
        return bundle.digest

    async def took(self, text: str = NEW) -> str:
        """A bundle is taken, and the daemon has read it."""
        digest = self.take(text)
        await self.manager.reload()
        await self.watches[-1].look()
        return digest

    @property
    def command(self) -> str:
        """The program that agents of the profile are started with now."""
        return self.manager._library.get("fake").command

    async def runs_again(self, agent: str) -> None:
        """It was launched a second time."""
        await until(lambda: len(self.factory.launched) > 1, "another launch")
        await self.agent_is(agent, ProcessState.RUNNING)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Shelved]:
    world = Shelved(tmp_path)
    yield world
    await world.end()


async def test_after_two_failed_launches_it_is_told_and_nothing_changes(world: Shelved) -> None:
    await world.begin()
    digest = await world.took()
    view = await world.start(ready=False)
    world.link.die(1)
    await until(lambda: world.watches[-1]._doubts == {"fake": 1})
    assert world.told(AgentAlert, lambda alert: alert.code) == [], "one may have been slow"
    world.clock.advance(1.0)
    await world.runs_again(view.id)
    world.link.die(1)
    await until(lambda: world.told(AgentAlert, lambda alert: alert.code) == [NOT_UP])
    assert [item.kind for item in world.told(AttentionChanged) if item.code == NOT_UP] == ["alert"]
    assert "--rollback" in world.alerts[0]
    counts = world.shelf.counts()
    assert counts.current == digest
    assert world.command == "env"
    await world.took(NEW + "\n[busy]\nscreen = ['x']\n")
    assert world.alerts == [], "a person has other profiles count"


async def test_one_that_comes_up_after_all_is_no_fault_any_more(world: Shelved) -> None:
    await world.begin()
    await world.took()
    view = await world.start(ready=False)
    world.link.die(1)
    await until(lambda: world.watches[-1]._doubts == {"fake": 1})
    world.clock.advance(1.0)
    await world.runs_again(view.id)
    await world.watches[-1].reached(world.store.events.last_id)
    world.clock.advance(suspicion.UP_S)
    await until(lambda: bool(world.alerts), "nothing of it was read")
    world.link.ready()
    await until(lambda: world.shelf.counts().unproved == [], "it is proved")
    assert world.alerts == []


async def test_a_profile_that_came_up_once_is_not_suspected_later(world: Shelved) -> None:
    await world.begin()
    digest = await world.took()
    view = await world.start()
    await until(lambda: world.shelf.counts().unproved == [], "it is proved")
    world.link.die(1)
    await until(lambda: world.manager.directory.view(view.id).state in suspicion.GONE)
    world.clock.advance(1.0)
    await world.runs_again(view.id)
    assert world.shelf.counts().current == digest
    assert world.command == "env"


async def test_an_agent_that_a_person_stops_is_no_reason(world: Shelved) -> None:
    await world.begin()
    digest = await world.took()
    view = await world.start(ready=False)
    await world.manager.stop(view.id)
    world.clock.advance(suspicion.UP_S)
    await world.watches[-1].reached(world.store.events.last_id)
    assert world.shelf.counts().current == digest
