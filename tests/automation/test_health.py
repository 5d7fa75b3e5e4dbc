"""What `synapsectl doctor` is told of schedules, rules and webhooks, and how it says that."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from synapsectl.checkup.automation import look_at_automation
from synapsectl.checkup.finding import NOTE, OK, WRONG
from synapsed.a2a.push.poster import Receipt
from synapsed.automation.health import Health
from synapsed.automation.webhooks import WebhookMeans, Webhooks
from synapsed.config import Config, PushPolicy, WebhookConfig
from synapsed.documents.writing import Texts
from synapsed.interfaces import NewEvent
from synapsed.model.events import AgentReported, RuleFired, ScheduleCame
from synapsed.parts.schedules.schedule import NewSchedule
from synapsed.parts.schedules.scheduler import Scheduler
from tests.automation.test_rule_runner import SECRET, URL, Poster, rule
from tests.fakes.clock import until
from tests.support.world import World

TELL = {"webhook": "ci"}


class Home(World):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.poster = Poster()
        self.closing: list[Any] = []

    async def health(self, **config: Any) -> Health:
        policy = PushPolicy(jitter=0, initial=1, factor=2, maximum=8, attempts=2)
        scheduler = Scheduler(
            directory=self.manager.directory,
            tasks=self.manager.tasks,
            store=self.store,
            clock=self.clock,
            timers=self.clock,
            zone=lambda: ZoneInfo("UTC"),
        )
        hooks = Webhooks(
            WebhookMeans(
                store=self.store, poster=self.poster, policy=policy, clock=self.clock,
                timers=self.clock, rng=lambda: 0.0, user_agent="t", environ={"HOOK": SECRET}, config=self.paths.config,
                texts=Texts(),
            )
        )  # fmt: skip
        self.closing += [scheduler, hooks]
        made = Config(**config)
        await scheduler.restore(made.schedule)
        hooks.reconfigure(made.webhooks)
        return Health(self.manager.directory, scheduler, config=made, webhooks=hooks)

    async def close(self) -> None:
        for part in self.closing:
            await part.close()
        await super().close()


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path)
    await home.daemon()
    yield home
    await home.close()


async def found(health: Health) -> dict[str, tuple[str, str]]:
    return {f"{one.kind} {one.name}": (one.state, one.problem) for one in await health.look()}


async def test_nothing_is_there(home: Home) -> None:
    assert await (await home.health()).look() == []
    assert list(look_at_automation([])) == []


async def test_schedules(home: Home) -> None:
    await home.start()
    stopped = await home.start("talker", name="t")
    await home.manager.stop(stopped.id)

    def one(name: str, agent: str, at: str = "08:00") -> NewSchedule:
        return NewSchedule(name=name, at=at, agent=agent, message="m")

    health = await home.health(
        schedule=[one("fine", "fake"), one("lost", "fke"), one("over", "fake", "2001-01-01 08:00"), one("rests", "t")]
    )
    told = await found(health)
    assert told["schedule fine"] == ("ok", "")
    assert told["schedule lost"][0] == "wrong"
    assert "fke" in told["schedule lost"][1]
    assert told["schedule over"] == ("idle", "none of its times comes again (2001-01-01 08:00)")
    assert told["schedule rests"] == ("idle", "t is stopped: while it is, its messages are refused")
    shown = list(look_at_automation([each.model_dump() for each in await health.look()]))
    assert [(each.what, each.status) for each in shown] == [
        ("schedules", OK),
        ("schedule lost", WRONG),
        ("schedule over", NOTE),
        ("schedule rests", NOTE),
    ]
    assert shown[0].detail == "1 as it should be"
    assert all("[[schedule]] of config.toml" in each.mend for each in shown[1:])


async def test_a_time_that_was_refused(home: Home) -> None:
    agent = await home.start()
    health = await home.health(schedule=[NewSchedule(name="s", at="*:*", agent="fake", message="m")])
    scheduler: Scheduler = home.closing[0]
    await home.manager.stop(agent.id)
    scheduler.start()
    home.clock.advance(61)
    await until(lambda: [told.outcome for told in home.told(ScheduleCame)] == ["refused"])
    state, problem = (await found(health))["schedule s"]
    assert (state, "was refused: " in problem) == ("wrong", True)


async def test_a_schedule_of_the_verb_is_removed_by_the_verb(home: Home) -> None:
    view = await home.start()
    health = await home.health()
    scheduler: Scheduler = home.closing[0]
    await scheduler.add(NewSchedule(name="mine", at="08:00", agent=view.name, message="m"))
    await home.manager.stop(view.id, remove=True)
    (shown,) = look_at_automation([each.model_dump() for each in await health.look()])
    assert (shown.what, shown.status) == ("schedule mine", WRONG)
    assert shown.mend.startswith("synapsectl schedule remove mine")


async def test_rules(home: Home) -> None:
    await home.start()
    health = await home.health(
        rule=[
            rule("fine", "agentReported", {"send": "fake", "message": "m"}, agent="fa*"),
            rule("whoever", "agentReported", {"restart": "{agent}"}),
            rule("lost", "agentReported", {"send": "fke", "message": "m"}),
            rule("gone", "agentReported", {"restart": "fke"}),
            rule("unheard", "agentReported", {"notify": "m"}, agent="nobody"),
        ]
    )
    told = await found(health)
    assert told["rule fine"] == told["rule whoever"] == ("ok", "")
    assert (told["rule lost"][0], told["rule lost"][1][:8]) == ("wrong", "do.send:")
    assert (told["rule gone"][0], told["rule gone"][1][:11]) == ("wrong", "do.restart:")
    assert told["rule unheard"] == ("idle", "on.agent: no agent is called 'nobody'")


async def test_webhooks(home: Home) -> None:
    failing = Receipt(accepted=False, problem="HTTP 500")
    hook = {"url": URL, "secret_env": "HOOK"}
    webhooks = {
        "ci": WebhookConfig(**hook),
        "unused": WebhookConfig(**hook),
        "keyless": WebhookConfig(url=URL, secret_env="NO_SUCH"),
    }
    home.poster.receipts = [failing, failing]
    health = await home.health(rule=[rule("r", "agentReported", TELL)], webhooks=webhooks)
    hooks: Webhooks = home.closing[1]
    await until(lambda: hooks.states()["keyless"].problem != "" and "webhook:ci" in home.store._followers)
    assert (await found(health))["webhook ci"] == ("ok", "")
    fired = RuleFired(rule="r", cause=1, cause_event="agentReported", action="webhook", outcome="done", webhook="ci")
    await home.store.commit(events=[NewEvent("a", AgentReported(kind="k", message="m")), NewEvent("a", fired)])
    await until(lambda: hooks.states()["ci"].attempt == 1)
    told = await found(health)
    assert told["webhook ci"][0] == "wrong"
    assert told["webhook ci"][1].startswith("it fails since ")
    assert told["webhook ci"][1].endswith(" (1 attempt): HTTP 500")
    assert told["webhook unused"] == ("idle", "no rule tells it anything")
    assert told["webhook keyless"] == ("wrong", "it is not told anything: the variable NO_SUCH is not set")
    home.clock.advance(1)
    await until(lambda: hooks.states()["ci"].state == "given_up")
    assert " and is given up: HTTP 500" in (await found(health))["webhook ci"][1]
    kept = await home.store.follower("webhook:ci")
    assert kept is not None
    assert kept.problem == "HTTP 500", "the next daemon knows it, too"
