"""Rules at work on scripted agents; receivers of webhooks; kills in between."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from standardwebhooks.webhooks import Webhook

from synapsed.api.task_stream import frames_until_settled
from synapsed.config.config import Config
from synapsed.documents.writing import Parts, joined
from synapsed.errors import InvalidRequest
from synapsed.interfaces import NewEvent
from synapsed.kernel import Kernel
from synapsed.model.agent import Activity
from synapsed.model.events import AgentAlert, AgentReported, InputAnswered, RuleFired
from synapsed.model.records import FollowerState
from synapsed.model.task import Task
from synapsed.outgoing import PushPolicy
from synapsed.outgoing.poster import HttpPoster, Receipt
from synapsed.outgoing.posting import Posting
from synapsed.outgoing.secrets import SecretPlaces
from synapsed.parts.rules.rule import DEPTH_MAX, RATE_MAX, RuleConfig, WebhookConfig
from synapsed.parts.rules.rule_runner import Ruler
from synapsed.parts.rules.webhooks import GIVEN_UP, Webhooks
from tests.fakes.clock import until
from tests.support.kernels import kernel_of
from tests.support.world import PERMISSION, World

SECRET = "whsec_" + base64.b64encode(bytes(32)).decode()
URL = "https://example.com/hook"


def rule(name: str, event: str, do: dict[str, Any], **on: Any) -> RuleConfig:
    return RuleConfig.model_validate({"name": name, "on": {"event": event, **on}, "do": do})


class Killed(BaseException):
    """The daemon was killed here."""


class Poster:
    """Answers as it is told, and keeps what it was sent."""

    def __init__(self) -> None:
        self.receipts: list[Receipt] = []
        self.sent: list[tuple[bytes, dict[str, str]]] = []

    async def check(self, url: str) -> str:
        if "10.0.0.1" in url:
            raise InvalidRequest("url: notifications to its network are not allowed")
        return url

    async def post(self, url: str, body: Parts, headers: Mapping[str, str]) -> Receipt:
        self.sent.append((await joined(body), dict(headers)))
        return self.receipts.pop(0) if self.receipts else Receipt(accepted=True)

    async def close(self) -> None:
        pass


class Home(World):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.notes: list[str] = []
        self.poster = Poster()
        self.rulers: list[Ruler] = []
        self.hooks: list[Webhooks] = []
        self.policy = PushPolicy(jitter=0, initial=1, factor=2, maximum=8, attempts=3)

    def kernel(self, config: Config | None = None) -> Kernel:
        outgoing = Posting(
            poster=lambda: cast("HttpPoster", self.poster),
            policy=self.policy,
            secrets=SecretPlaces(environ={"HOOK": SECRET}, config=self.paths.config),
            clock=self.clock,
            rng=lambda: 0.0,
            user_agent="t",
        )
        return kernel_of(
            control=self.manager,
            store=self.store,
            clock=self.clock,
            timers=self.clock,
            config=config,
            paths=self.paths,
            outgoing=outgoing,
        )

    async def rules(self, *rules: RuleConfig, webhooks: dict[str, WebhookConfig] | None = None) -> Ruler:
        async def notify(text: str) -> None:
            self.notes.append(text)

        hooks = Webhooks(self.kernel())
        ruler = Ruler(
            control=self.manager,
            store=self.store,
            clock=self.clock,
            timers=self.clock,
            notify=notify,
            receivers=hooks,
        )
        await ruler.restore()
        ruler.reconfigure(rules)
        self.rulers.append(ruler)
        ruler.start()
        hooks.reconfigure(webhooks or {})
        self.hooks.append(hooks)
        return ruler

    async def close(self) -> None:
        for part in (*self.rulers, *self.hooks):
            await part.close()
        await super().close()

    async def report(self, message: str = "hello", agent: str = "a") -> None:
        await self.store.commit(events=[NewEvent(agent, AgentReported(kind="k", message=message))])

    async def fired(self, count: int = 1) -> list[RuleFired]:
        await until(lambda: len(self.told(RuleFired)) >= count, f"{count} rules fired")
        return self.told(RuleFired)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path)
    await home.daemon()
    yield home
    await home.close()


async def test_notify(home: Home) -> None:
    await home.rules(rule("tell", "agentReported", {"notify": "{agent} says {message}"}, match={"message": "h*"}))
    await home.report("no")
    await home.report()
    (fired,) = await home.fired()
    await until(lambda: home.notes == ["a says hello"])
    assert (fired.rule, fired.cause, fired.cause_event, fired.outcome) == ("tell", 2, "agentReported", "done")
    assert fired.text == "a says hello"


async def test_what_a_removed_agent_told_moves_no_other_with_its_id(home: Home) -> None:
    """The rules come to it late."""
    await home.store.keep_follower(Ruler.name, FollowerState(cursor=0))
    first = await home.start()
    await home.report("the first", first.id)
    await home.manager.stop(first.id, remove=True)
    assert (await home.start()).id == first.id
    acts = {
        "send": {"send": "{agent}", "message": "go on"},
        "restart": {"restart": "{agent}"},
        "tell": {"notify": "{agent}: {message}"},
    }
    await home.rules(*(rule(name, "agentReported", do) for name, do in acts.items()))
    outcomes = {fired.rule: fired.outcome for fired in await home.fired(3)}
    assert outcomes == {"send": "held", "restart": "held", "tell": "done"}
    await until(lambda: home.notes == [f"{first.id}: the first"])
    assert len(home.factory.launched) == 2
    assert not home.store._tasks
    assert not [event for event in await home.store.events.read(0, agent_id=first.id) if event.data.type == "ruleFired"]


@pytest.mark.parametrize(("verb", "key"), [("approve", "1"), ("deny", "2")])
async def test_approve_and_deny(home: Home, verb: str, key: str) -> None:
    agent = await home.start()
    await home.rules(rule("yes", "taskStatus", {verb: True}, match={"prompt.type": "permission"}))
    task = await home.send(agent.id)
    await home.delivered()
    home.link.submit()
    home.link.observe_as(Activity.WAITING, prompt=PERMISSION)
    (fired,) = await home.fired()
    assert (fired.outcome, fired.problem) == ("done", "")
    assert fired.sent is None
    assert task.status is not None
    (answered,) = home.told(InputAnswered)
    assert (answered.answer, answered.by, answered.who) == (key, "rule", "yes")


async def test_an_answer_is_for_its_own_question_only(home: Home) -> None:
    agent = await home.start()
    await home.send(agent.id)
    await home.delivered()
    await home.rules(rule("yes", "inputRequired", {"approve": True}))
    from synapsed.model.events import InputRequired

    old = PERMISSION.model_copy(update={"prompt_id": "gone"})
    await home.store.commit(events=[NewEvent(agent.id, InputRequired(prompt=old))])
    (fired,) = await home.fired()
    assert fired.outcome == "failed"
    assert home.told(InputAnswered) == []


async def waited_for(home: Home, task: Task, ruler: Ruler) -> list[str]:
    """The states that whoever waits for the task is told."""
    frames = frames_until_settled(home.manager.tasks, home.store.events, task, 0, ruler)
    return [frame.data["state"] async for frame in frames if frame.event == "status"]


@pytest.mark.parametrize("event", ["inputRequired", "taskStatus", "activity"])
async def test_who_waits_does_not_wait_for_a_person_where_a_rule_answers(home: Home, event: str) -> None:
    agent = await home.start()
    ruler = await home.rules(rule("yes", event, {"approve": True}, agent="fa*", match={"prompt.type": "permission"}))
    task = await home.send(agent.id)
    waiting = asyncio.create_task(waited_for(home, task, ruler))
    await home.delivered()
    home.link.submit()
    home.link.observe_as(Activity.WAITING, prompt=PERMISSION)
    await home.fired()
    home.link.observe_as(Activity.BUSY)
    home.link.end("done")
    assert (await waiting)[-1] == "completed"


@pytest.mark.parametrize("name", ["*", "another-*"])
async def test_what_no_rule_answers_waits_for_a_person(home: Home, name: str) -> None:
    """A rule is for it and cannot, or is for other agents."""
    agent = await home.start()
    ruler = await home.rules(rule("no", "inputRequired", {"deny": True}, agent=name))
    task = await home.send(agent.id)
    await home.delivered()
    home.link.submit()
    home.link.observe_as(Activity.WAITING, prompt=PERMISSION.model_copy(update={"options": []}))
    assert (await waited_for(home, task, ruler))[-1] == "input_required"


async def test_send_once_and_marked_where_others_words_are_in_it(home: Home) -> None:
    agent = await home.start("talker", name="t")
    one = rule("plain", "agentReported", {"send": "t", "message": "Look at {agent}"})
    two = rule("quoting", "agentReported", {"send": "t", "message": "It said: {message}"})
    await home.rules(one, two)
    await home.report()
    fired = await home.fired(2)
    tasks = {task.message.text: task for task in home.store._tasks.values()}
    assert set(tasks) == {"Look at a", "It said: hello"}
    assert {one.sent for one in fired} == {task.id for task in tasks.values()}
    assert tasks["Look at a"].metadata["sender"]["tier"] == "person"
    assert tasks["It said: hello"].metadata["sender"]["tier"] == "claimed"
    assert tasks["Look at a"].metadata["fired"] == {"rule": "plain", "event": fired[0].cause, "depth": 1}
    assert agent.id == tasks["Look at a"].agent_id


async def test_a_killed_daemon_sends_it_once(home: Home) -> None:
    """Killed after the task was made and before that was told; and between two rules for one event."""
    await home.start("talker", name="t")
    one = rule("one", "agentReported", {"send": "t", "message": "Go"})
    two = rule("two", "agentReported", {"notify": "n"})
    ruler = await home.rules(one, two)
    keep = home.store.keep_follower
    left = 1

    async def dies(*args: Any, **kwargs: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        await keep(*args, **kwargs)

    for allowed in (0, 1):
        left = allowed
        home.store.keep_follower = dies  # type: ignore[method-assign]
        await home.report()
        task = ruler._running
        assert task is not None
        with pytest.raises(Killed):
            await task
        home.store.keep_follower = keep  # type: ignore[method-assign]
        before = len(home.told(RuleFired))
        ruler = await home.rules(one, two)
        await home.fired(before + 2 - allowed)
    assert len(home.store._tasks) == 2
    await until(lambda: home.notes == ["n", "n"])
    assert [fired.rule for fired in home.told(RuleFired)] == ["one", "two", "one", "two"]


async def test_restart(home: Home) -> None:
    agent = await home.start()
    await home.rules(rule("again", "agentReported", {"restart": "{agent}"}))
    await home.report(agent=agent.id)
    await until(lambda: len(home.factory.launched) == 2, "it is launched again")


async def test_what_cannot_be_done_is_told(home: Home) -> None:
    await home.rules(rule("r", "agentReported", {"send": "nobody", "message": "x"}))
    await home.report()
    (fired,) = await home.fired()
    assert fired.outcome == "failed"
    assert "nobody" in fired.problem


async def test_a_loop_over_an_agent_ends_by_depth(home: Home) -> None:
    """Each task that the rule sends is an event that the rule is for."""
    await home.start("talker", name="t")
    await home.rules(rule("loop", "taskStatus", {"send": "t", "message": "again"}, match={"state": "submitted"}))
    await home.send(home.manager.directory.resolve("t"))
    fired = await home.fired(DEPTH_MAX + 1)
    assert [one.outcome for one in fired] == ["done"] * DEPTH_MAX + ["held"]
    assert len(home.store._tasks) == DEPTH_MAX + 1


async def test_a_flood_ends_by_rate_and_is_told_once(home: Home) -> None:
    await home.rules(rule("n", "agentReported", {"notify": "x"}))
    for _ in range(RATE_MAX + 5):
        await home.report()
    await until(lambda: home.rulers[-1].cursor == home.store.events.last_id)
    assert [one.outcome for one in home.told(RuleFired)] == ["done"] * RATE_MAX + ["held"]
    home.clock.advance(61)
    await home.report()
    assert (await home.fired(RATE_MAX + 2))[-1].outcome == "done"


# --- webhooks ---

HOOK = {"ci": WebhookConfig(url=URL, secret_env="HOOK")}
TELL = rule("tell", "agentReported", {"webhook": "ci"})


async def test_a_signed_webhook(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    home.clock.jump(time.time() - home.clock.wall())
    await home.rules(TELL, webhooks=HOOK)
    await until(lambda: "webhook:ci" in home.store._followers)
    await home.report()
    await until(lambda: len(home.poster.sent) == 1)
    body, headers = home.poster.sent[0]
    told = Webhook(SECRET).verify(body, headers)
    assert (told["type"], told["rule"], told["data"]["id"], told["data"]["data"]["message"]) == (
        "agentReported", "tell", 1, "hello",
    )  # fmt: skip
    assert headers["webhook-id"] == "tell_1"


async def test_a_receiver_that_fails_is_told_again_under_the_same_id(home: Home) -> None:
    await home.rules(TELL, webhooks=HOOK)
    await until(lambda: "webhook:ci" in home.store._followers)
    home.poster.receipts = [Receipt(accepted=False, problem="it answered 500")]
    await home.report()
    await until(lambda: home.store._followers["webhook:ci"].attempt == 1)
    await home.hooks[-1].close()
    hooks = Webhooks(home.hooks[-1]._kernel)
    hooks.reconfigure(HOOK)
    home.hooks.append(hooks)
    await until(lambda: any(0.9 < wait <= 1 for wait in home.clock.pending()), "the pause is kept over a restart")
    home.clock.advance(1)
    await until(lambda: home.store._followers["webhook:ci"].attempt == 0)
    assert {headers["webhook-id"] for _, headers in home.poster.sent} == {"tell_1"}


async def test_a_dead_receiver_is_told_of_once(home: Home) -> None:
    await home.rules(TELL, webhooks=HOOK)
    await until(lambda: "webhook:ci" in home.store._followers)
    home.poster.receipts = [Receipt(accepted=False, problem="it answered 500")] * 3
    await home.report()
    for attempt in (1, 2):
        await until(lambda n=attempt: home.store._followers["webhook:ci"].attempt == n)
        await until(lambda: any(wait > 0 for wait in home.clock.pending()))
        home.clock.advance(10)
    await until(lambda: home.told(AgentAlert))
    told = await home.fired(2)
    assert [(one.cause, one.outcome) for one in told] == [(1, "done"), (1, "failed")], "it was not told after all"
    await home.report()
    last = (await home.fired(3))[-1]
    assert (last.outcome, last.webhook) == ("failed", "ci")
    assert "it is not told anything: it answered 500" in last.problem
    (alert,) = home.told(AgentAlert)
    assert alert.code == GIVEN_UP
    assert len(home.poster.sent) == 3
    home.hooks[-1].reconfigure(HOOK)
    await until(lambda: home.store._followers["webhook:ci"].state == "active")
    await home.report("new")
    await until(lambda: len(home.poster.sent) == 4)
    assert b'"new"' in home.poster.sent[-1][0], "it begins with what is new"


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (WebhookConfig(url=URL, secret_env="NONE"), "the variable NONE is not set"),
        (WebhookConfig(url=URL, secret_file="missing"), "No such file"),
        (WebhookConfig(url="http://10.0.0.1/x", secret_env="HOOK"), "network"),
    ],
)
async def test_a_receiver_that_cannot_be_told(home: Home, config: WebhookConfig, why: str) -> None:
    await home.rules(TELL, webhooks={"ci": config})
    await until(lambda: home.told(AgentAlert))
    (alert,) = home.told(AgentAlert)
    assert why in alert.message
    assert SECRET not in alert.message
    await home.report()
    (fired,) = await home.fired()
    assert (fired.outcome, why in fired.problem) == ("failed", True)
