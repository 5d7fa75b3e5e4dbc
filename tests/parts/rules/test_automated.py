"""What `synapsectl doctor` is told of rules and webhooks, and how it says that."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapsectl.checkup.automation import look_at_automation
from synapsed.automation.health import Health
from synapsed.config import Config, WebhookConfig
from synapsed.documents.writing import Texts
from synapsed.interfaces import NewEvent
from synapsed.model.events import AgentReported, RuleFired
from synapsed.outgoing import PushPolicy
from synapsed.outgoing.poster import Receipt
from synapsed.parts.rules.webhooks import WebhookMeans, Webhooks
from tests.fakes.clock import until
from tests.parts.rules.test_rule_runner import SECRET, URL, Poster, rule
from tests.support.world import World

TELL = {"webhook": "ci"}


class Home(World):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.poster = Poster()
        self.closing: list[Any] = []

    async def health(self, **config: Any) -> Health:
        policy = PushPolicy(jitter=0, initial=1, factor=2, maximum=8, attempts=2)
        hooks = Webhooks(
            WebhookMeans(
                store=self.store, poster=self.poster, policy=policy, clock=self.clock,
                timers=self.clock, rng=lambda: 0.0, user_agent="t", environ={"HOOK": SECRET}, config=self.paths.config,
                texts=Texts(),
            )
        )  # fmt: skip
        self.closing.append(hooks)
        made = Config(**config)
        hooks.reconfigure(made.webhooks)
        return Health(self.manager.directory, config=made, webhooks=hooks)

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
    return {f"{one.kind} {one.name}": (one.state, one.problem) for one in health.look()}


async def test_nothing_is_there(home: Home) -> None:
    assert (await home.health()).look() == []
    assert list(look_at_automation([])) == []


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
    hooks: Webhooks = home.closing[0]
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
