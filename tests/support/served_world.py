"""The real API over the real manager, with fake programs below it: for tests of verbs and routes that the fake control
would answer by itself."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from synapsed.model.agent import Activity
from synapsed.model.task import Prompt
from synapsed.parts.loading import config_model
from synapsed.profiles.library import ProfileLibrary
from tests.api.serving import TOKEN, Api, serving
from tests.fakes.clock import until
from tests.fakes.link import FakeLink
from tests.fakes.served import Served, served
from tests.support.world import World

__all__ = ["ServedWorld", "served_world"]


class ServedWorld:
    """`daemon` is asked as a real one; `world` is what is below. The profiles are the built-in ones and the home's."""

    def __init__(self, daemon: Served, world: World) -> None:
        self.daemon = daemon
        self.world = world

    def start(self, name: str = "dummy") -> dict[str, Any]:
        """An agent of the profile `dummy`, once its program is ready."""
        answer = self.daemon.post("/control/start", {"profile": "dummy", "name": name, "cwd": "/"})
        assert answer.status == 200, answer.json
        self.daemon.do(_ready(self.world.link))
        return self.daemon.ready(name)

    def asks(self, prompt: Prompt) -> None:
        """The newest program, which has been given a message, asks that."""
        self.daemon.do(_begun(self.world.link))
        self.daemon.do(_observed(self.world.link, Activity.WAITING, prompt))

    def ends(self, answer: str) -> None:
        """The newest program ends the turn that it has been given."""
        self.daemon.do(_begun(self.world.link))
        self.daemon.do(_ended(self.world.link, answer))

    def works(self) -> None:
        """The newest program goes on with its turn."""
        self.daemon.do(_observed(self.world.link, Activity.BUSY, None))

    @property
    def typed(self) -> int:
        """How many messages were given to programs."""
        return sum(len(link.deliveries) + len(link.answers) for link in self.world.factory.links)


async def _ready(link: FakeLink) -> None:
    await until(lambda: link.opened, "its program runs")
    link.ready()


async def _begun(link: FakeLink) -> None:
    await until(lambda: link.deliveries and not link.seen.can_receive, "a message is delivered")
    if link.seen.activity is Activity.READY:
        link.submit()


async def _ended(link: FakeLink, answer: str) -> None:
    link.end(answer)


async def _observed(link: FakeLink, activity: Activity, prompt: Prompt | None) -> None:
    link.observe_as(activity, prompt=prompt)


@contextmanager
def served_world(home: Path) -> Iterator[ServedWorld]:
    world = World(home)
    world.control_token = TOKEN
    world.model = config_model()

    @asynccontextmanager
    async def serve(control: Any, home: Path) -> AsyncGenerator[Api]:
        world.library = ProfileLibrary.standard(world.paths.user_profiles)
        manager = await world.daemon()
        for name in ("directory", "processes", "tasks", "terminals", "events"):
            setattr(control, name, getattr(manager, name))
        try:
            async with serving(control, home) as api:
                yield api
        finally:
            await world.close()

    control = SimpleNamespace(store=world.store, elsewhere=None, views={}, ports={}, tokens={})
    with served(home, serve, control=control) as daemon:
        yield ServedWorld(daemon, world)
