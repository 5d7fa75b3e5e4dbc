"""A bundle whose profile an agent does not come up with is rolled back where it comes up with the one before."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapsed.interfaces import NewEvent
from synapsed.model.agent import ProcessState
from synapsed.model.events import AgentAlert, AttentionChanged, StateChanged
from synapsed.parts.loading import config_model
from synapsed.parts.profile_tools.bundles import suspicion
from synapsed.parts.profile_tools.bundles.bundle import open_bundle
from synapsed.parts.profile_tools.bundles.shelf import SHIPPED, Shelf
from synapsed.parts.profile_tools.bundles.stand_ins import stand_ins
from synapsed.parts.profile_tools.bundles.taking import roll_back, take
from synapsed.parts.profile_tools.bundles.watching import NOT_UP, ROLLED_BACK, BundleWatch
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


async def failed_once(world: Shelved) -> str:
    """An agent whose first launch with the bundle has failed."""
    view = await world.start(ready=False)
    world.link.die(1)
    await until(lambda: world.watches[-1]._doubts == {"fake": 1})
    assert codes(world) == [], "one may have been slow"
    world.clock.advance(1.0)
    await world.runs_again(view.id)
    return view.id


def codes(world: Shelved) -> list[str]:
    return world.told(AgentAlert, lambda alert: alert.code)


def counting(world: Shelved) -> tuple[str, list[str], str]:
    counts = world.shelf.counts()
    return counts.current, counts.unproved, counts.aside


async def tried(world: Shelved, launches: int = 3) -> None:
    """The agent was launched with the profile before."""
    await until(lambda: len(world.factory.launched) == launches, "it is tried without the bundle")
    assert (world.shelf.counts().aside, world.factory.profiles[-1].command) == ("fake", "sh")


async def test_after_two_failed_launches_it_goes_back_where_the_profile_before_comes_up(world: Shelved) -> None:
    await world.begin()
    good = await world.took(PROFILE)
    await world.took()
    await failed_once(world)
    world.link.die(1)
    await tried(world)
    world.link.ready()
    await until(lambda: codes(world) == [ROLLED_BACK])
    assert [item.kind for item in world.told(AttentionChanged) if item.code == ROLLED_BACK] == ["alert"]
    assert "was rolled back" in world.alerts[0]
    assert counting(world) == (good, [], "")
    assert (world.command, len(world.factory.launched)) == ("sh", 3), "it goes on as it is"
    await world.took(NEW + "\n[busy]\nscreen = ['x']\n")
    assert world.alerts == [], "a person has other profiles count"


async def test_one_launch_is_enough_where_no_other_follows_soon(world: Shelved) -> None:
    await world.begin()
    await world.took()
    view = await world.start(ready=False)
    world.clock.advance(1.0)
    await world.store.commit(events=[NewEvent(view.id, StateChanged(state=state)) for state in ("exited", "failed")])
    await until(lambda: world.watches[-1]._tried == {"fake"}, "it is tried without the bundle")


async def test_where_the_profile_before_does_not_come_up_either_the_bundle_counts_on(world: Shelved) -> None:
    await world.begin()
    digest = await world.took()
    await failed_once(world)
    world.link.die(1)
    await tried(world)
    world.link.die(1)
    world.clock.advance(suspicion.UP_S)
    await until(lambda: codes(world) == [NOT_UP])
    assert "--rollback" in world.alerts[0]
    assert counting(world) == (digest, ["fake"], "")
    assert world.command == "env"


async def test_one_that_comes_up_too_late_without_it_proves_nothing(world: Shelved) -> None:
    await world.begin()
    digest = await world.took()
    await failed_once(world)
    world.link.die(1)
    await tried(world)
    world.clock.advance(suspicion.UP_S)
    await until(lambda: codes(world) == [NOT_UP])
    world.link.ready()
    await world.watches[-1].reached(world.store.events.last_id)
    assert (world.shelf.counts().current, world.shelf.counts().aside) == (digest, "")


@pytest.mark.parametrize("why", ["edited", "broken"])
async def test_what_a_person_writes_meanwhile_is_not_read_for_a_trial(world: Shelved, why: str) -> None:
    await world.begin()
    digest = await world.took()
    await failed_once(world)
    world.paths.config.mkdir(exist_ok=True)
    (world.paths.config / "config.toml").write_text("[attach]\nescape = 'C-x'\n" if why == "edited" else "[")
    world.link.die(1)
    await until(lambda: codes(world) == [NOT_UP])
    assert counting(world) == (digest, ["fake"], "")
    assert len(world.factory.launched) == 2


async def test_an_agent_for_which_the_bundle_changes_nothing_accuses_nothing(world: Shelved) -> None:
    await world.begin()
    digest = await world.took(PROFILE)
    await failed_once(world)
    world.link.die(1)
    await until(lambda: codes(world) == [NOT_UP])
    assert counting(world) == (digest, ["fake"], "")


async def test_who_stops_it_in_a_trial_ends_that(world: Shelved) -> None:
    await world.begin()
    digest = await world.took()
    agent = await failed_once(world)
    world.link.die(1)
    await tried(world)
    await world.manager.stop(agent)
    await until(lambda: world.shelf.counts().aside == "", "the trial is over")
    assert world.shelf.counts().current == digest


async def test_who_goes_back_in_a_trial_has_done_so(world: Shelved) -> None:
    await world.begin()
    await world.took()
    await failed_once(world)
    world.link.die(1)
    await tried(world)
    roll_back(world.shelf)
    await world.manager.reload()
    world.link.ready()
    await until(lambda: not world.watches[-1]._trials.runs, "the trial is over")
    assert (counting(world), codes(world), world.alerts) == ((SHIPPED, [], ""), [], [])


async def test_a_trial_of_a_daemon_that_is_gone_is_ended_by_the_next(world: Shelved) -> None:
    watch = await world.begin()
    digest = await world.took()
    await failed_once(world)
    world.link.die(1)
    await tried(world)
    await watch.end()
    assert world.shelf.counts().aside == "fake"
    await world.manager.close(keep_agents=True)
    world.library.reload()
    assert world.command == "sh"
    await world.begin()
    await world.manager.reload()  # this world's configuration is in no file
    world.watches[-1].go_on()
    await until(lambda: world.shelf.counts().aside == "", "it is ended")
    await until(lambda: world.command == "env", "the bundle counts again")
    assert world.shelf.counts().current == digest


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
