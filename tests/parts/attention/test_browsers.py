"""Browsers as sinks: whom, of what, once and taken back, over kills, on a push service that the test has."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import InvalidRequest, UnknownSink
from synapsed.interfaces import PushPlace
from synapsed.model.attention import AttentionItem
from synapsed.model.events import Origin
from synapsed.model.task import PromptOption
from synapsed.outgoing.poster import HttpPoster
from synapsed.outgoing.screening import AddressScreen
from synapsed.parts.attention.browsers import Browsers
from synapsed.parts.attention.notification_policy import QUESTION_MAX, notice, trial
from synapsed.parts.attention.notifier import Notifier, NotifyMeans
from synapsed.parts.attention.notify import NotifyConfig
from synapsed.parts.attention.running import Presence
from synapsed.parts.attention.sent_notices import Mark, Marks
from synapsed.parts.attention.sinks.base import SinkPort
from synapsed.parts.attention.sinks.browser import SHOWN, contact_of, fitted, told, topic
from synapsed.parts.attention.vapid import PushKey
from synapsed.parts.attention.webpush import PLAIN_MAX
from synapsed.parts.web.book import AccessBook
from tests.fakes.clock import PATIENCE_S, until
from tests.parts.attention.test_inbox import Home, turns
from tests.parts.attention.test_notifier import Killed
from tests.support.kernels import posting_kernel
from tests.support.pushservice import PushService

PHONE = frozenset({"look", "answer"})


class House(Home):
    """A daemon whose devices' browsers are at `service`."""

    def __init__(self, root: Path, service: PushService) -> None:
        super().__init__(root)
        self.service = service
        self.root = root
        self.key = PushKey.new()
        self.notifiers: list[Notifier] = []
        self.allow = ["loopback"]
        service.now = self.clock.wall

    async def comes_up(self, **notify: Any) -> Notifier:
        await self.up()
        await self.start()
        return await self.notifier(**notify)

    async def notifier(self, **notify: Any) -> Notifier:
        self.book = AccessBook(self.root / "access.json", self.clock)
        await self.book.load()
        kernel = posting_kernel(lambda: HttpPoster(AddressScreen(self.allow), timeout=30), clock=self.clock)
        self.browsers = Browsers(self.book, lambda: self.key, kernel)
        made = Notifier(
            NotifyMeans(
                inbox=self.inboxes[-1], control=self.manager, store=self.store,
                idle=lambda: Presence(self.manager.terminals, self.clock).idle, make=self._none, clock=self.clock,
                timers=self.clock, zone=lambda: UTC, browsers=self.browsers,
            )
        )  # fmt: skip
        self.config = NotifyConfig.model_validate(notify)
        made.reconfigure(self.config)
        self.notifiers.append(made)
        await turns()
        return made

    async def _none(self, sink: object) -> SinkPort:
        raise InvalidRequest("there are no others in this test")

    async def device(self, name: str = "phone", rights: frozenset[Any] = PHONE) -> str:
        """A paired device whose browser has notifications on; its id."""
        made, _ = await self.book.pair(name, rights)
        await self.book.subscribe(made.id, self.place(name))
        await turns()
        return made.id

    def place(self, name: str = "phone") -> PushPlace:
        given = self.service.subscribe(name)
        return PushPlace(endpoint=given["endpoint"], **given["keys"], page="https://box.example.net")

    async def again(self, **notify: Any) -> Notifier:
        """The daemon was killed, and the next one is there."""
        for notifier in self.notifiers:
            for _, task in notifier._running.values():
                task.cancel()
            notifier._running.clear()
        await self.kill()
        await self.inbox()
        return await self.notifier(**notify)

    async def passes(self, seconds: float) -> None:
        for _ in range(int(seconds / 0.25) + 1):
            self.clock.advance(0.25)
            await turns()

    async def answered(self, task: Any) -> None:
        await self.manager.tasks.provide_input(task.id, "1")
        await turns()

    async def told(self, state: str, *, to: str = "phone", count: int = 1) -> list[dict[str, Any]]:
        """What that browser was told, once it is so much."""

        def said() -> list[dict[str, Any]]:
            return self.service.said(state, to=f"/push/{to}")

        await self.until(lambda: len(said()) >= count)
        assert len(said()) == count, (state, self.service.taken, self.service.refused)
        return said()

    async def until(self, so: Callable[[], bool]) -> None:
        """Time passes until it is so, as long as a busy machine may take for what goes over a real connection."""
        deadline = time.monotonic() + PATIENCE_S
        while not so() and time.monotonic() < deadline:
            self.clock.advance(0.25)
            await turns()
            await pause()

    async def close(self) -> None:
        for notifier in self.notifiers:
            await notifier.close()
        await super().close()


async def pause() -> None:
    """For what goes over a real connection."""
    await asyncio.sleep(0.01)


@pytest.fixture
def service() -> Iterator[PushService]:
    with PushService() as service:
        yield service


@pytest.fixture
async def house(tmp_path: Path, service: PushService) -> AsyncIterator[House]:
    house = House(tmp_path, service)
    yield house
    await house.close()


async def test_told_once_and_taken_back(house: House) -> None:
    await house.comes_up()
    await house.device()
    task = await house.asks()
    (said,) = await house.told("opened")
    assert said["title"] == "fake asks for a permission"
    assert set(said) == {"id", "state", "kind", "agent", "title", "body"}, "agent and kind, and no more"
    assert said["body"] == ""
    (told,) = house.service.taken
    assert (told["headers"]["Urgency"], told["headers"]["Topic"]) == ("high", topic(said["id"]))
    assert told["key"] == house.key.public
    assert told["claims"]["sub"] == "https://box.example.net"
    await house.answered(task)
    (gone,) = await house.told("gone")
    assert gone == {"id": said["id"], "state": "gone"}
    assert house.service.taken[1]["headers"]["Topic"] == topic(said["id"]), "it takes the place of what waits there"
    await house.passes(5)
    assert len(house.service.said()) == 2


async def test_with_what_is_asked_it_can_be_answered_there(house: House) -> None:
    await house.comes_up(content="full", contact="mailto:ann@example.com")
    await house.device()
    await house.device("reader", frozenset({"look"}))
    task = await house.asks()
    (said,) = await house.told("opened")
    assert [option["label"] for option in said["options"]] == ["Approve", "Deny"]
    assert said["task"] == task.id
    assert said["prompt_id"]
    (other,) = await house.told("opened", to="reader")
    assert "options" not in other
    assert "prompt_id" not in other
    assert other["body"] == said["body"]
    assert house.service.taken[0]["claims"]["sub"] == "mailto:ann@example.com"


async def test_one_that_may_not_look_is_told_nothing(house: House) -> None:
    await house.comes_up()
    await house.device("blind", frozenset({"answer"}))
    await house.device()
    await house.asks()
    await house.told("opened")
    assert house.service.said(to="/push/blind") == []


async def test_rules_by_device(house: House) -> None:
    await house.comes_up(
        sinks={
            "mine": {"type": "web", "devices": ["phone*"], "content": "question"},
            "others": {"type": "web", "quiet": ["00:00-00:00"]},
        }
    )
    await house.device("phone-of-ann")
    await house.device("tablet")
    await house.asks()
    (said,) = await house.told("opened", to="phone-of-ann")
    assert said["body"]
    await house.passes(5)
    assert house.service.said(to="/push/tablet") == []


async def test_turned_on_while_something_waits(house: House) -> None:
    await house.comes_up()
    await house.asks()
    await house.passes(3)
    await house.device()
    await house.told("opened")


async def test_turned_off_and_on_again_it_begins_with_what_is_open(house: House) -> None:
    await house.comes_up()
    device = await house.device()
    await house.asks()
    await house.told("opened")
    await house.book.subscribe(device, None)
    await until(lambda: not len(house.notifiers[-1]._forgetting), "what it was told is forgotten")
    assert await house.store.follower(f"notify:web:{device}") is None
    await house.book.subscribe(device, house.place())
    await house.told("opened", count=2)


async def test_a_new_address_of_the_browser_is_not_told_again(house: House) -> None:
    await house.comes_up()
    device = await house.device()
    task = await house.asks()
    await house.told("opened")
    await house.book.subscribe(device, house.place("renewed"))
    await house.passes(3)
    await house.answered(task)
    await house.told("gone", to="renewed")
    assert house.service.said("opened", to="/push/renewed") == []
    assert house.service.said("gone") == []


async def test_a_removed_device_is_told_nothing(house: House) -> None:
    await house.comes_up()
    device = await house.device()
    task = await house.asks()
    await house.told("opened")
    await house.book.remove_device(device)
    await house.answered(task)
    await house.passes(5)
    assert house.service.said("gone") == []
    await until(lambda: not len(house.notifiers[-1]._forgetting), "what it was told is forgotten")
    assert await house.store.follower(f"notify:web:{device}") is None
    assert house.notifiers[-1].states() == {}


@pytest.mark.parametrize("status", [404, 410])
async def test_a_browser_that_is_gone_is_forgotten(house: House, status: int) -> None:
    await house.comes_up()
    device = await house.device()
    house.service.answers = [status]
    await house.asks()
    await house.until(lambda: house.book.subscribed() == [])
    kept = house.book.device(device)
    assert kept is not None
    assert kept.push is None
    await house.passes(5)
    assert len(house.service.refused) == 1, "it is not asked again"


async def test_one_that_subscribed_again_meanwhile_is_not_forgotten(house: House) -> None:
    await house.comes_up()
    device = await house.device()
    old = house.book.device(device).push  # type: ignore[union-attr]
    new = house.place()
    await house.book.subscribe(device, new)
    await house.book.unsubscribe(device, old)  # type: ignore[arg-type]
    assert house.book.device(device).push == new  # type: ignore[union-attr]


async def test_a_service_that_fails_is_tried_again_and_told_of(house: House) -> None:
    notifier = await house.comes_up()
    device = await house.device()
    house.service.answers = [500, 403, 429]
    await house.asks()
    await house.told("opened")
    assert house.service.refused == ["/push/phone"] * 3
    await house.until(lambda: notifier.states() == {f"phone ({device})": ""})  # the answer is on its way back
    assert notifier.states() == {f"phone ({device})": ""}


async def test_doctor_names_the_device(house: House) -> None:
    notifier = await house.comes_up()
    device = await house.device()
    house.service.answers = [403] * 50
    await house.asks()
    await house.until(lambda: bool(notifier.states()[f"phone ({device})"]))
    problem = notifier.states()[f"phone ({device})"]
    assert "it answered 403" in problem
    assert "turn notifications off and on again" in problem
    assert house.service.origin not in problem


async def test_killed_before_it_was_noted_it_is_told_again_and_taken_back(house: House) -> None:
    """Nobody knows whether the browser was told: the same again is the same there."""
    await house.comes_up()
    await house.device()
    notifier = house.notifiers[-1]
    ((teller, running),) = notifier._running.values()
    task_ended = running.done

    async def killed(*_: object) -> None:
        raise Killed

    teller.marks.told = killed  # type: ignore[method-assign]
    task = await house.asks()
    (first,) = await house.told("opened")
    await until(task_ended, "the daemon is killed")
    await house.again()
    opened = await house.told("opened", count=2)
    assert opened[1] == first
    await house.answered(task)
    await house.told("gone")


async def test_killed_before_it_was_noted_and_over_by_then(house: House) -> None:
    await house.comes_up()
    device = await house.device()
    await Marks(f"web:{device}", house.store).put("an item of before", Mark(state="telling"))
    await house.again()
    (gone,) = await house.told("gone")
    assert gone["id"] == "an item of before"


async def test_over_while_the_daemon_was_down(house: House) -> None:
    await house.comes_up()
    await house.device()
    task = await house.asks()
    await house.told("opened")
    for _, running in house.notifiers[-1]._running.values():
        running.cancel()
    house.notifiers[-1]._running.clear()
    await house.answered(task)
    await house.again()
    await house.told("gone")


async def test_who_has_answered_there_is_not_told_that_it_is_over(house: House) -> None:
    await house.comes_up()
    device = await house.device()
    await house.device("other")
    task = await house.asks()
    await house.told("opened")
    await house.told("opened", to="other")
    who = Origin("person", who=f"device:{device}", where="http")
    await house.manager.tasks.provide_input(task.id, "1", origin=who)
    await house.told("gone", to="other")
    await house.passes(3)
    assert house.service.said("gone") == []


async def test_the_test_of_sinks_tells_browsers_too(house: House) -> None:
    notifier = await house.comes_up(sinks={"mine": {"type": "web", "devices": ["phone"]}})
    assert [(one.ok, one.detail) for one in await notifier.test("mine")] == [(False, "no browser has notifications on")]
    phone = await house.device()
    tablet = await house.device("tablet")
    labels = {f"phone ({phone})", f"tablet ({tablet})"}
    assert {(one.sink, one.type, one.ok) for one in await notifier.test(None)} == {(one, "web", True) for one in labels}
    assert [one.sink for one in await notifier.test("mine")] == [f"phone ({phone})"]
    assert [one.sink for one in await notifier.test(f"tablet ({tablet})")] == [f"tablet ({tablet})"]
    with pytest.raises(UnknownSink, match="there are phone"):
        await notifier.test("pager")


async def test_addresses_are_screened(house: House) -> None:
    await house.comes_up()
    given = house.place()
    house.allow = []
    with pytest.raises(InvalidRequest, match="network are not allowed"):
        await house.browsers.check(given)
    for endpoint, why in (
        ("http://push.example.net/a", "must begin with https://"),
        ("http://10.0.0.1/a", "must begin with https://"),
        ("https://169.254.169.254/latest", "network are not allowed"),
        ("https://127.0.0.1:8090/control/stop", "network are not allowed"),
        ("https://[::ffff:10.0.0.1]/a", "network are not allowed"),
        ("file:///etc/passwd", "must begin with https://"),
        ("https://push.example.net:22/a", "the port"),
        ("https://me@push.example.net/a", "user"),
    ):
        with pytest.raises(InvalidRequest, match=why):
            await house.browsers.check(given.model_copy(update={"endpoint": endpoint}))
    house.allow = ["loopback", "10.0.0.0/8"]
    with pytest.raises(InvalidRequest, match="must begin with https://"):
        await house.browsers.check(given.model_copy(update={"endpoint": "http://10.0.0.1/a"}))


async def test_an_address_that_became_forbidden_is_told_nothing(house: House) -> None:
    await house.comes_up()
    device = await house.device()
    house.allow = []
    notifier = await house.again()
    await house.asks()
    await house.passes(5)
    assert house.service.taken == []
    assert "network are not allowed" in notifier.states()[f"phone ({device})"]


# --- what is told, decided purely ------------------------------------------------------------------------------------


def item(**more: Any) -> AttentionItem:
    options = [PromptOption(key="1", label="Yes"), PromptOption(key="2", label="No")]
    given: dict[str, Any] = {
        "id": "i1", "agent": "api", "agent_id": "synapse-claude-8100", "cwd": "/home/me/api", "kind": "permission",
        "question": "Run it?", "command": "rm -rf build", "options": options, "since": "2026-01-01T00:00:00Z",
        "task": "t1", "prompt_id": "p1", "prompt_type": "permission",
    }  # fmt: skip
    return AttentionItem(**(given | more))


def test_what_is_asked_is_shown_before_it_can_be_answered() -> None:
    said = told(notice(item(), "full"), answers=True)
    assert "rm -rf build" in said["body"]
    assert [(one["key"], one["label"]) for one in said["options"]] == [("1", "Approve"), ("2", "Deny")]
    assert "options" not in told(notice(item(), "kind"), answers=True)
    assert "options" not in told(notice(item(), "full"), answers=False)
    long = told(notice(item(command="x" * SHOWN), "full"), answers=True)
    assert "options" not in long
    assert "prompt_id" not in long
    emoji = told(notice(item(command=None, question="\U0001f9d1" * (SHOWN - 100)), "full"), answers=True)
    assert "options" not in emoji, "a browser counts each of these twice, and cuts the text"
    assert "options" not in told(notice(item(kind="question", prompt_type="text", options=[]), "full"), answers=True)


def test_an_agent_elsewhere_is_told_as_that() -> None:
    far = told(notice(item(agent_id="external:api"), "full"), answers=True)
    assert (far["elsewhere"], far["task"]) == (True, "t1")
    assert "elsewhere" not in told(notice(item(), "full"), answers=True)


@pytest.mark.parametrize("char", ["x", "é", "日", "\U0001f9d1", '"', "\\", "\n"])
def test_whatever_is_asked_fits(char: str) -> None:
    said = told(notice(item(question=char * QUESTION_MAX, command=char * QUESTION_MAX), "full"), answers=True)
    body = fitted(said)
    assert len(body) <= PLAIN_MAX
    assert json.loads(body)["title"] == "api asks for a permission"
    if len(json.dumps(said, ensure_ascii=False).encode()) > PLAIN_MAX + 50:
        assert json.loads(body)["body"].endswith("…")
        assert len(body) > PLAIN_MAX - 10, "no more is lost than has to be"


def test_the_notice_of_a_test_is_told() -> None:
    said = told(trial(1.0), answers=True)
    assert said["title"] == "synapsed"


def test_whom_a_push_service_may_ask() -> None:
    def at(page: str) -> str:
        return contact_of(PushPlace(endpoint="https://x.example", p256dh="a", auth="b", page=page))

    assert at("https://box.tailnet.ts.net:8443") == "https://box.tailnet.ts.net"
    assert at("http://localhost:8090") == "https://localhost"
    assert at("https://[fd00::1]:8443") == "https://[fd00::1]"
    assert at("") == "https://localhost"


def test_topics_have_the_form_that_services_take() -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{32}", topic("synapse-claude-8100:p1:é/…"))
    assert topic("a") != topic("b")
