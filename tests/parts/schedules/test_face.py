"""What `[[schedule]]` may be, what a reload says of it, and the part from its opening to its end."""

from typing import Any

import pytest

from synapsed.config.config import Config
from synapsed.config.config_files import load_config
from synapsed.errors import ConfigError
from synapsed.kernel import open_parts
from synapsed.model.events import ScheduleCame
from synapsed.parts.config import config_with
from synapsed.parts.schedules.face import FACE
from synapsed.parts.schedules.scheduler import Scheduler
from synapsed.supervisor.reload import differences
from tests.fakes.clock import until
from tests.support.kernels import kernel_of
from tests.support.world import World

MODEL = config_with([FACE])


def said(*schedules: dict[str, Any]) -> Config:
    return MODEL.model_validate({"schedule": [{"agent": "fake", "message": "m"} | one for one in schedules]})


def test_each_is_called_otherwise(world: World) -> None:
    world.paths.config.mkdir()
    world.paths.config_file.write_text(2 * '[[schedule]]\nat = "08:00"\nagent = "a"\nmessage = "m"\n')
    with pytest.raises(ConfigError, match=r"config\.toml: schedule\.1: another \[\[schedule\]\] \(schedule\.0\) is"):
        load_config(world.paths, MODEL)


def test_a_reload_tells_of_each() -> None:
    old = said({"name": "gone", "at": "08:00"}, {"name": "other", "at": "08:00"}, {"name": "same", "at": "08:00"})
    new = said({"name": "same", "at": "08:00"}, {"name": "other", "at": "09:00"}, {"name": "new", "at": "08:00"})
    changes = differences([], old, new, lambda _: None, lambda _: None)
    assert [(one.agent, one.action, one.reason) for one in changes] == [
        (None, "update", "[[schedule]] gone is gone"),
        (None, "update", "[[schedule]] new is new"),
        (None, "update", "[[schedule]] other changed"),
    ]


async def test_the_part_from_its_opening_to_its_end(world: World) -> None:
    clock, config = world.clock, said({"name": "often", "at": "*:*"})
    kernel = kernel_of(
        control=world.manager, store=world.store, clock=clock, timers=clock, config=config, paths=world.paths
    )
    await world.start()
    async with open_parts([FACE], kernel) as parts:
        assert parts.problems == {}
        assert [(one.kind, one.name, one.state) for one in await parts.automated()] == [("schedule", "often", "ok")]
        parts.started()
        scheduler = parts.provided(Scheduler)
        await until(lambda: all(not entry.stale for entry in scheduler._entries.values()), "the next time is known")
        clock.advance(61)
        await until(lambda: [told.outcome for told in world.told(ScheduleCame)] == ["sent"], "it is sent")
        kernel.config = said()
        parts.reconfigured()
        await until(lambda: not scheduler._entries, "it is gone")
    (task,) = [task for task in world.store._tasks.values() if "scheduled" in task.metadata]
    assert task.metadata["scheduled"]["schedule"] == "file:often"


async def test_a_fault_is_told_in_no_other_part(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kernel_of(
        control=world.manager,
        store=world.store,
        clock=world.clock,
        timers=world.clock,
        config=said({"at": "08:00"}),
        paths=world.paths,
    )
    async with open_parts([FACE], kernel) as parts:
        monkeypatch.setattr(parts.provided(Scheduler), "views", lambda: 1 / 0)
        assert await parts.automated() == []
