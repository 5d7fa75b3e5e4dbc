"""What `synapsectl doctor` is told of schedules, and how it says that."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapsectl.checkup.finding import NOTE, OK, WRONG
from synapsectl.checkup.home import look_at_automation
from synapsed.kernel import Automated
from synapsed.model.events import ScheduleCame
from synapsed.parts.schedules.running import automated
from synapsed.parts.schedules.schedule import NewSchedule
from tests.fakes.clock import until
from tests.parts.schedules.test_scheduler import Home


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path)
    home.at("2026-11-23T07:30+01:00")
    yield home
    await home.close()


async def found(home: Home) -> list[Automated]:
    return [automated(view, home.manager.directory) for view in await home.schedulers[-1].views()]


async def test_schedules(home: Home) -> None:
    def one(name: str, agent: str, at: str = "08:00") -> NewSchedule:
        return NewSchedule(name=name, at=at, agent=agent, message="m")

    home.schedules = [
        *(one("fine", "fake"), one("lost", "fke"), one("over", "fake", "2001-01-01 08:00"), one("rests", "t")),
    ]
    await home.up()
    await home.start()
    stopped = await home.start("talker", name="t")
    await home.manager.stop(stopped.id)
    told = {one.name: (one.state, one.problem) for one in await found(home)}
    assert told["fine"] == ("ok", "")
    assert told["lost"][0] == "wrong"
    assert "fke" in told["lost"][1]
    assert told["over"] == ("idle", "none of its times comes again (2001-01-01 08:00)")
    assert told["rests"] == ("idle", "t is stopped: while it is, its messages are refused")
    shown = list(look_at_automation([each.model_dump() for each in await found(home)]))
    assert [(each.what, each.status) for each in shown] == [
        ("schedules", OK),
        ("schedule lost", WRONG),
        ("schedule over", NOTE),
        ("schedule rests", NOTE),
    ]
    assert shown[0].detail == "1 as it should be"
    assert all("[[schedule]] of config.toml" in each.mend for each in shown[1:])


async def test_a_time_that_was_refused(home: Home) -> None:
    home.schedules = [NewSchedule(name="s", at="*:*", agent="fake", message="m")]
    await home.up()
    agent = await home.start()
    await home.manager.stop(agent.id)
    await home.rest()
    home.clock.advance(61)
    await until(lambda: [told.outcome for told in home.told(ScheduleCame)] == ["refused"])
    (one,) = await found(home)
    assert (one.state, "was refused: " in one.problem) == ("wrong", True)


async def test_a_schedule_of_the_verb_is_removed_by_the_verb(home: Home) -> None:
    scheduler = await home.up()
    view = await home.start()
    await scheduler.add(NewSchedule(name="mine", at="08:00", agent=view.name, message="m"))
    await home.manager.stop(view.id, remove=True)
    (shown,) = look_at_automation([each.model_dump() for each in await found(home)])
    assert (shown.what, shown.status) == ("schedule mine", WRONG)
    assert shown.mend.startswith("synapsectl schedule remove mine")
