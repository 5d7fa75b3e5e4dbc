"""What `synapsectl doctor` is told of rules and webhooks, and what the face says of them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.config.config_files import load_config
from synapsed.errors import ConfigError
from synapsed.interfaces import NewEvent
from synapsed.kernel import open_parts
from synapsed.model.events import AgentReported, RuleFired
from synapsed.outgoing import PushPolicy
from synapsed.outgoing.poster import Receipt
from synapsed.parts.config import config_with
from synapsed.parts.rules import running
from synapsed.parts.rules.face import FACE
from synapsed.parts.rules.rule import WebhookConfig
from synapsed.parts.rules.running import Rules
from synapsed.supervisor.reload import differences
from tests.fakes.clock import until
from tests.parts.rules.test_rule_runner import URL, Home, rule
from tests.support.world import World

TELL = {"webhook": "ci"}
MODEL = config_with([FACE])


class HomeOfPart(Home):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.policy = PushPolicy(jitter=0, initial=1, factor=2, maximum=8, attempts=2)
        self.parts: list[Rules] = []

    async def part(self, **config: Any) -> Rules:
        async with running.opened(self.kernel(MODEL(**config))) as part:
            assert isinstance(part, Rules)
            self.parts.append(part)
            return part

    async def close(self) -> None:
        for part in self.parts:
            await part.stopping()
        await super().close()


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[HomeOfPart]:
    home = HomeOfPart(tmp_path)
    await home.daemon()
    yield home
    await home.close()


async def found(part: Rules) -> dict[str, tuple[str, str]]:
    return {f"{one.kind} {one.name}": (one.state, one.problem) for one in await part.automated()}


async def test_nothing_is_there(home: HomeOfPart) -> None:
    assert await (await home.part()).automated() == []


async def test_rules(home: HomeOfPart) -> None:
    await home.start()
    part = await home.part(
        rule=[
            rule("fine", "agentReported", {"send": "fake", "message": "m"}, agent="fa*"),
            rule("whoever", "agentReported", {"restart": "{agent}"}),
            rule("lost", "agentReported", {"send": "fke", "message": "m"}),
            rule("gone", "agentReported", {"restart": "fke"}),
            rule("unheard", "agentReported", {"notify": "m"}, agent="nobody"),
        ]
    )
    told = await found(part)
    assert told["rule fine"] == told["rule whoever"] == ("ok", "")
    assert (told["rule lost"][0], told["rule lost"][1][:8]) == ("wrong", "do.send:")
    assert (told["rule gone"][0], told["rule gone"][1][:11]) == ("wrong", "do.restart:")
    assert told["rule unheard"] == ("idle", "on.agent: no agent is called 'nobody'")


async def test_webhooks(home: HomeOfPart) -> None:
    failing = Receipt(accepted=False, problem="HTTP 500")
    hook = {"url": URL, "secret_env": "HOOK"}
    webhooks = {
        "ci": WebhookConfig(**hook),
        "unused": WebhookConfig(**hook),
        "keyless": WebhookConfig(url=URL, secret_env="NO_SUCH"),
    }
    home.poster.receipts = [failing, failing]
    part = await home.part(rule=[rule("r", "agentReported", TELL)], webhooks=webhooks)
    hooks = part.webhooks
    await until(lambda: hooks.states()["keyless"].problem != "" and "webhook:ci" in home.store._followers)
    assert (await found(part))["webhook ci"] == ("ok", "")
    fired = RuleFired(rule="r", cause=1, cause_event="agentReported", action="webhook", outcome="done", webhook="ci")
    await home.store.commit(events=[NewEvent("a", AgentReported(kind="k", message="m")), NewEvent("a", fired)])
    await until(lambda: hooks.states()["ci"].attempt == 1)
    told = await found(part)
    assert told["webhook ci"][0] == "wrong"
    assert told["webhook ci"][1].startswith("it fails since ")
    assert told["webhook ci"][1].endswith(" (1 attempt): HTTP 500")
    assert told["webhook unused"] == ("idle", "no rule uses it")
    assert told["webhook keyless"] == ("wrong", "it is not told anything: the variable NO_SUCH is not set")
    home.clock.advance(1)
    await until(lambda: hooks.states()["ci"].state == "given_up")
    assert " and is given up: HTTP 500" in (await found(part))["webhook ci"][1]
    kept = await home.store.follower("webhook:ci")
    assert kept is not None
    assert kept.problem == "HTTP 500", "the next daemon knows it, too"


async def test_a_fault_holds_up_nobody(home: HomeOfPart, monkeypatch: pytest.MonkeyPatch) -> None:
    config = MODEL(rule=[rule("fine", "agentReported", {"send": "fake", "message": "m"})])
    async with open_parts([FACE], home.kernel(config)) as parts:
        monkeypatch.setattr(parts._running["rules"], "seen", lambda _: 1 / 0)
        await parts.seen("a")


SAID = """
[[rule]]
name = "r"
on = { event = "taskStatus" }
do = { webhook = "cii" }
"""


def test_a_rule_tells_a_receiver_that_there_is(world: World) -> None:
    world.paths.config.mkdir()
    world.paths.config_file.write_text(f'{SAID}[webhooks.ci]\nurl = "{URL}"\nsecret_env = "HOOK"\n')
    with pytest.raises(ConfigError, match=r"rule\.0: do\.webhook: there is no webhook 'cii'; did you mean 'ci'\?"):
        load_config(world.paths, MODEL)
    world.paths.config_file.write_text(2 * SAID.replace('webhook = "cii"', 'notify = "n"'))
    with pytest.raises(ConfigError, match=r"rule\.1: name: another \[\[rule\]\] is called 'r'"):
        load_config(world.paths, MODEL)


def test_a_reload_tells_of_them() -> None:
    new = MODEL(rule=[rule("r", "agentReported", TELL)], webhooks={"ci": WebhookConfig(url=URL, secret_env="HOOK")})
    changes = differences([], MODEL(), new, lambda _: None, lambda _: None)
    assert [(one.action, one.reason) for one in changes] == [
        ("update", "[[rule]] changed"),
        ("update", "[webhooks] changed"),
    ]
