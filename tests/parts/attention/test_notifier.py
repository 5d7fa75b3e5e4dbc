"""Who is told of what, when, how often: on scripted agents, with sinks that the test makes fail, over kills."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import InvalidRequest, NotInInbox, UnknownSink
from synapsed.interfaces import NewEvent
from synapsed.model.agent import Activity
from synapsed.model.events import AgentAlert, AttentionChanged, InputAnswered, InputRequired
from synapsed.model.link import LinkAlert
from synapsed.model.task import Task
from synapsed.parts.attention import notifier as notifier_module
from synapsed.parts.attention.notification_policy import HOLD_S, Notice
from synapsed.parts.attention.notifier import FAILING_AFTER, RETRY_MAX_S, Notifier, NotifyMeans
from synapsed.parts.attention.notify import NotifyConfig, Sink
from synapsed.parts.attention.running import Presence
from synapsed.parts.attention.sent_notices import Mark, Marks, digest
from synapsed.parts.attention.sinks.base import Buttons, SinkPort, Untold
from tests.fakes.clock import JUMPS, until
from tests.parts.attention.test_inbox import AGENT, Home, turns
from tests.support.world import PERMISSION

ANSWERS = "https://me.example.com"


class Port:
    """A sink in memory. `fails` are what the next calls raise; `killed`: the daemon dies once it was told."""

    withdraws = True

    def __init__(self, *, once: bool = False, sure: bool = False) -> None:
        self.once, self.sure = once, sure
        self.told: list[Notice] = []
        self.buttons: list[Buttons | None] = []
        self.taken_back: list[tuple[str, str, Mapping[str, Any]]] = []
        self.fails: list[Exception] = []
        self.killed = False
        self.keeps = False
        """Nothing can be taken back."""
        self.gate = asyncio.Event()
        """A call returns once it is open."""
        self.gate.set()

    async def tell(self, notice: Notice, buttons: Buttons | None) -> str:
        self._fail()
        await self.gate.wait()
        self.told.append(notice)
        self.buttons.append(buttons)
        if self.killed:
            self.killed = False
            raise Killed
        return f"ref {len(self.told)}"

    async def withdraw(self, item_id: str, ref: str, outcome: Mapping[str, Any]) -> None:
        self._fail()
        if self.keeps:
            raise Untold("nobody is there")
        self.taken_back.append((item_id, ref, outcome))

    async def close(self) -> None:
        pass

    def _fail(self) -> None:
        if self.fails:
            raise self.fails.pop(0)

    @property
    def titles(self) -> list[str]:
        return [notice.title for notice in self.told]


class Killed(BaseException):
    """The daemon was killed here."""


class House(Home):
    """A daemon with sinks. `ports` are theirs, by their names."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.ports: dict[str, Port] = {}
        self.notifiers: list[Notifier] = []
        self.notify: dict[str, Any] = {}
        self.presence: Presence

    async def sinks(self, *names: str, **notify: Any) -> Notifier:
        """A daemon with these sinks comes up."""
        await self.up()
        await self.start()
        for name in names:
            self.ports[name] = Port()
        self.notify = {"sinks": {name: {"type": "desktop"} for name in names}} | notify
        return await self.notifier()

    async def notifier(self) -> Notifier:
        self.presence = Presence(self.manager.terminals, self.clock)
        made = Notifier(
            NotifyMeans(
                inbox=self.inboxes[-1], control=self.manager, store=self.store,
                idle=lambda: self.presence.idle, make=self._make, clock=self.clock, timers=self.clock, zone=lambda: UTC,
            )
        )  # fmt: skip
        config = NotifyConfig.model_validate(self.notify)
        self._names = {id(sink): name for name, sink in config.sinks.items()}
        made.reconfigure(config)
        self.notifiers.append(made)
        await turns()
        return made

    async def _make(self, sink: Sink) -> SinkPort:
        name = self._names[id(sink)]
        if name not in self.ports:
            raise InvalidRequest(f"the variable of {name} is not set")
        return self.ports[name]

    async def again(self) -> Notifier:
        """The daemon was killed, and the next one is there."""
        for notifier in self.notifiers:
            for _, task in notifier._running.values():
                task.cancel()
            notifier._running.clear()
        await self.kill()
        await self.inbox()
        return await self.notifier()

    async def passes(self, seconds: float) -> None:
        for _ in range(int(seconds / 0.25) + 1):
            self.clock.advance(0.25)
            await turns()

    async def answered(self, task: Task) -> None:
        await self.manager.tasks.provide_input(task.id, "1")
        await turns()

    async def close(self) -> None:
        for notifier in self.notifiers:
            await notifier.close()
        await super().close()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    yield house
    await house.close()


async def test_told_once_at_each_sink_and_taken_back_everywhere(house: House) -> None:
    await house.sinks("desk", "phone")
    task = await house.asks()
    await house.passes(5)
    assert [port.titles for port in house.ports.values()] == [["fake asks for a permission"]] * 2
    await house.answered(task)
    (item,) = {port.told[0].id for port in house.ports.values()}
    for port in house.ports.values():
        await until(lambda port=port: port.taken_back, "it is taken back")
        ((taken, ref, outcome),) = port.taken_back
        assert (taken, ref) == (item, "ref 1")
        assert (outcome["state"], outcome["by"]) == ("answered", "person")
    await house.passes(5)
    assert [len(port.told) for port in house.ports.values()] == [1, 1]


async def test_what_is_over_at_once_is_told_to_nobody(house: House) -> None:
    await house.sinks("desk")
    task = await house.asks()
    await house.passes(HOLD_S / 2)
    await house.answered(task)
    await house.passes(10)
    assert (house.ports["desk"].told, house.ports["desk"].taken_back) == ([], [])


async def test_whoever_looks_at_the_screen_is_told_when_they_have_left(house: House) -> None:
    await house.sinks("desk")
    house.link.writers = 1
    await house.asks()
    await house.passes(30)
    assert house.ports["desk"].told == []
    house.link.writers = 0
    await house.passes(2)
    assert len(house.ports["desk"].told) == 1


async def test_only_once_the_person_has_done_nothing_for_a_while(house: House) -> None:
    await house.sinks("desk", idle=60)
    await house.asks()
    await house.passes(50)
    house.presence.acted()
    await house.passes(50)
    house.link.writers, house.link.hands_at = 1, house.clock.monotonic()  # a key at another agent's terminal
    assert house.presence.idle == 0
    house.link.writers = 0
    house.presence.acted()
    await house.passes(55)
    assert house.ports["desk"].told == []
    await house.passes(10)
    assert len(house.ports["desk"].told) == 1


async def test_quiet_hours_put_it_off(house: House) -> None:
    await house.sinks("desk", quiet=["00:00-00:00"])
    await house.asks()
    await house.passes(30)
    assert house.ports["desk"].told == []
    config = NotifyConfig.model_validate(house.notify | {"quiet": []})
    house._names |= {id(sink): name for name, sink in config.sinks.items()}
    house.notifiers[-1].reconfigure(config)
    await house.passes(2)
    assert len(house.ports["desk"].told) == 1


@pytest.mark.parametrize("jump", JUMPS)
async def test_quiet_hours_go_by_what_clocks_show(house: House, jump: float) -> None:
    shown = datetime.fromtimestamp(house.clock.wall(), UTC)
    ends = shown + timedelta(hours=2)
    await house.sinks("desk", quiet=[f"{shown:%H:%M}-{ends:%H:%M}"])
    await house.asks()
    await house.passes(30)
    house.clock.jump(jump)
    await house.passes(30)
    assert house.ports["desk"].told == [], "another day, and the same hour"
    house.clock.jump(3 * 3600.0 - jump)
    await house.passes(2)
    assert len(house.ports["desk"].told) == 1


@pytest.mark.parametrize("jump", JUMPS)
async def test_what_waits_is_told_whatever_the_date(house: House, jump: float) -> None:
    await house.sinks("desk")
    await house.asks()
    house.clock.jump(jump)
    await house.passes(5)
    assert len(house.ports["desk"].told) == 1
    house.clock.jump(-jump)
    await house.passes(5)
    assert len(house.ports["desk"].told) == 1


async def test_kinds_and_agents_of_a_sink(house: House) -> None:
    desk = {"type": "desktop", "kinds": ["finished"]}
    other = {"type": "desktop", "agents": ["another"]}
    await house.sinks("desk", "other", sinks={"desk": desk, "other": other})
    await house.asks()
    await house.passes(5)
    assert [port.told for port in house.ports.values()] == [[], []]


async def test_after_a_kill_nothing_is_told_again(house: House) -> None:
    await house.sinks("desk")
    task = await house.asks()
    await house.passes(5)
    await house.again()
    await house.passes(10)
    assert len(house.ports["desk"].told) == 1
    await house.answered(task)
    await until(lambda: house.ports["desk"].taken_back, "the next daemon takes it back")
    assert house.ports["desk"].taken_back[0][1] == "ref 1"


@pytest.mark.parametrize(("once", "times"), [(True, 1), (False, 2)], ids=["once", "under the same id"])
async def test_a_kill_between_telling_and_writing_it_down(house: House, once: bool, times: int) -> None:
    await house.sinks("desk")
    port = house.ports["desk"]
    port.once, port.killed = once, True
    await house.asks()
    await house.passes(3)
    await house.again()
    await house.passes(10)
    assert len(port.told) == times
    assert len({notice.id for notice in port.told}) == 1


async def test_a_sink_that_fails_holds_up_no_other(house: House) -> None:
    await house.sinks("desk", "phone")
    house.ports["phone"].fails = [Untold("it answered 503")] * (FAILING_AFTER + 2)
    await house.asks()
    await house.passes(5)
    assert len(house.ports["desk"].told) == 1
    assert "it answered 503" in house.notifiers[-1].states()["phone"]
    assert house.notifiers[-1].states()["desk"] == ""
    await house.passes(120)
    assert len(house.ports["phone"].told) == 1
    assert house.notifiers[-1].states()["phone"] == ""
    alerts = [told for told in (event.data for event in house.store.events.all) if isinstance(told, AgentAlert)]
    assert [(told.code, told.details["state"], told.details["sink"]) for told in alerts] == [
        ("NOTIFY_FAILING", "begins", "phone"),
        ("NOTIFY_FAILING", "over", "phone"),
    ]


async def test_a_fault_within_a_sink_does_not_end_it(house: House) -> None:
    notifier = await house.sinks("phone")
    port = house.ports["phone"]
    port.fails = [UnicodeEncodeError("utf-8", "sk-secret", 0, 1, "surrogates not allowed")]
    await house.asks()
    await house.passes(3)
    await house.passes(2)
    assert len(port.told) == 1
    assert notifier.states() == {"phone": ""}


async def test_a_fault_beside_a_sink_does_not_end_it_and_is_said(house: House) -> None:
    notifier = await house.sinks("desk")
    presence, house.presence = house.presence, None  # type: ignore[assignment]  # a defect
    await house.asks()
    await house.passes(HOLD_S + 1)
    assert notifier.states() == {"desk": "a fault within synapsed (AttributeError)"}
    house.presence = presence
    await house.passes(RETRY_MAX_S + 1)
    assert house.ports["desk"].titles == ["fake asks for a permission"]
    assert notifier.states() == {"desk": ""}


async def test_what_is_over_before_a_sink_could_be_reached_is_not_told(house: House) -> None:
    await house.sinks("phone")
    house.ports["phone"].fails = [Untold("down")]
    task = await house.asks()
    await house.passes(1.5)
    await house.answered(task)
    await house.passes(60)
    assert house.ports["phone"].told == []


async def test_what_is_over_while_a_slow_sink_is_told_of_another_is_not_told(house: House) -> None:
    await house.sinks("phone")
    phone = house.ports["phone"]
    phone.gate.clear()
    await house.asks()
    house.link.emit(LinkAlert("DISK_FULL", "the disk is full", "begins"))
    await house.passes(5)
    house.link.emit(LinkAlert("DISK_FULL", "there is room", "over"))
    await house.passes(1)
    phone.gate.set()
    await house.passes(5)
    assert [notice.kind for notice in phone.told] == ["permission"]


async def test_a_sink_that_does_not_answer_holds_up_no_other(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier_module, "ACT_S", 0.01)
    await house.sinks("desk", "phone")
    house.ports["phone"].gate.clear()
    await house.asks()
    await house.passes(2)
    assert len(house.ports["desk"].told) == 1
    await until(lambda: "it took more than 0.01 s" in house.notifiers[-1].states()["phone"])
    house.ports["phone"].gate.set()
    await house.passes(70)
    assert len(house.ports["phone"].told) == 1


@pytest.mark.parametrize("jump", [-7200.0, 7200.0])
async def test_once_however_the_clock_is_set(house: House, jump: float) -> None:
    await house.sinks("desk")
    task = await house.asks()
    house.clock.jump(jump)
    await house.passes(3)
    house.clock.jump(-jump)
    await house.passes(3)
    assert len(house.ports["desk"].told) == 1
    await house.answered(task)
    await house.passes(3)
    assert len(house.ports["desk"].taken_back) == 1


async def test_a_notice_that_cannot_be_taken_back_holds_up_nothing(house: House) -> None:
    await house.sinks("phone")
    task = await house.asks()
    await house.passes(3)
    house.ports["phone"].fails = [Untold("405", refused=True)] * 100
    await house.answered(task)
    await house.passes(60)
    assert len(house.ports["phone"].fails) == 95
    house.ports["phone"].fails = []
    assert await house.store.follower("notify:phone") is not None
    await house.passes(5)
    assert house.ports["phone"].taken_back == []


async def test_a_sink_that_is_away_as_it_is_answered_is_told_when_it_is_back(house: House) -> None:
    await house.sinks("phone")
    phone = house.ports["phone"]
    task = await house.asks()
    await house.passes(3)
    phone.fails = [Untold("nobody is there")] * 8
    await house.answered(task)
    await house.passes(120)
    assert len(phone.fails) == 1, "with pauses that grow: 1, 2, 4, …, 60 s"
    assert phone.taken_back == []
    phone.fails = []
    await house.passes(60)
    assert [taken for taken, _, _ in phone.taken_back] == [phone.told[0].id]


async def test_what_is_to_be_told_does_not_wait_for_what_cannot_be_taken_back(house: House) -> None:
    await house.sinks("phone", kinds=["permission", "alert"])
    phone = house.ports["phone"]
    phone.keeps = True
    task = await house.asks()
    await house.passes(3)
    await house.answered(task)
    for code in ("DISK_FULL", "DISK_SLOW"):
        house.link.emit(LinkAlert(code, "the disk has a fault", "begins"))
        await house.passes(3)
        house.link.emit(LinkAlert(code, "the disk is well", "over"))
    assert (len(phone.told), phone.taken_back) == (3, [])
    phone.keeps = False
    await house.passes(60)
    assert {taken for taken, _, _ in phone.taken_back} == {notice.id for notice in phone.told}


async def test_a_sink_that_cannot_be_made(house: House) -> None:
    await house.sinks("desk", sinks={"desk": {"type": "desktop"}, "gone": {"type": "desktop"}})
    await house.passes(1)
    assert house.notifiers[-1].states() == {"desk": "", "gone": "the variable of gone is not set"}
    told = await house.notifiers[-1].test(None)
    assert [(one.sink, one.ok) for one in told] == [("desk", True), ("gone", False)]
    assert told[1].detail == "the variable of gone is not set"
    with pytest.raises(UnknownSink, match="no sink 'another'; there are desk"):
        await house.notifiers[-1].test("another")


async def test_secrets_are_masked(house: House) -> None:
    await house.sinks("desk", content="full")
    await house.asks()
    command = "curl -H 'Authorization: Bearer sk-ant-REDACTED'"
    told = PERMISSION.model_copy(update={"command": command, "diff": f"+{command}"})
    await house.store.commit(events=[NewEvent(AGENT, InputRequired(prompt=told))])
    await house.passes(3)
    (notice,) = house.ports["desk"].told
    assert notice.body.count("curl") == 2
    assert "sk-ant-api03" not in notice.body
    assert "sk-ant-api03" not in str(notice.data)


async def test_secrets_in_options_are_masked(house: House) -> None:
    await house.sinks("phone", content="full")
    await house.asks()
    secret = "sk-ant-api03-" + "a" * 40
    options = [
        PERMISSION.options[0].model_copy(update={"label": f"Yes, always: curl {secret}"}),
        *PERMISSION.options[1:],
    ]
    other = PERMISSION.model_copy(update={"prompt_id": "p2", "options": options})
    house.link.observe_as(Activity.WAITING, prompt=other)
    await house.passes(3)
    (notice,) = house.ports["phone"].told
    assert "Yes, always: curl" in notice.body
    assert secret not in f"{notice.body}{notice.data}"


def told_of(house: House, kind: type[Any]) -> list[Any]:
    return [event.data for event in house.store.events.all if isinstance(event.data, kind)]


PHONE = {"type": "ntfy", "topic": "t", "answers": ANSWERS, "content": "full"}


def token(url: str) -> str:
    return url.removeprefix(f"{ANSWERS}/answers/")


@pytest.mark.parametrize(("button", "given"), [("approve", "1"), ("deny", "2")])
async def test_a_button_answers_once(house: House, button: str, given: str) -> None:
    notifier = await house.sinks("phone", sinks={"phone": PHONE})
    await house.asks()
    await house.passes(3)
    (buttons,) = house.ports["phone"].buttons
    assert buttons is not None
    item = await notifier.answer(token(getattr(buttons, button)))
    assert item == house.ports["phone"].told[0].id
    (told,) = told_of(house, InputAnswered)
    assert (told.answer, told.by, told.who) == (given, "person", "notify:phone")
    for one in (buttons.approve, buttons.deny, "nonsense"):
        with pytest.raises(NotInInbox):
            await notifier.answer(token(one))


async def test_both_buttons_at_once_and_each_twice(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    notifier = await house.sinks("phone", sinks={"phone": PHONE})
    await house.asks()
    await house.passes(3)
    (buttons,) = house.ports["phone"].buttons
    assert buttons is not None
    write_slowly(house, monkeypatch)
    pressed = [buttons.deny, buttons.approve, buttons.deny, buttons.approve]
    told = await asyncio.gather(*(notifier.answer(token(one)) for one in pressed), return_exceptions=True)
    assert told[0] == house.ports["phone"].told[0].id
    assert ["not valid" in str(one) for one in told[1:]] == [True] * 3
    assert [one.answer for one in told_of(house, InputAnswered)] == ["2"]


async def test_a_button_that_is_pressed_before_the_sink_has_told_stays_used(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    notifier = await house.sinks("phone", sinks={"phone": PHONE})
    port, kept = house.ports["phone"], list[Mark]()
    tell, told = port.tell, Marks.told

    async def press(notice: Notice, buttons: Buttons | None) -> str:
        assert buttons is not None
        await notifier.answer(token(buttons.approve))
        return await tell(notice, buttons)

    async def look(self: Marks, item_id: str, mark: Mark, ref: str) -> None:
        await told(self, item_id, mark, ref)
        kept.append(self._marks[item_id])

    monkeypatch.setattr(port, "tell", press)
    monkeypatch.setattr(Marks, "told", look)
    await house.asks()
    await house.passes(3)
    assert [(mark.state, mark.approve, mark.deny, mark.expires) for mark in kept] == [("told", "", "", 0)]


async def test_marks_that_are_written_at_once_are_all_kept(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.sinks()
    marks = Marks("phone", house.store)
    await marks.put("one", Mark(state="told", approve=digest("yes"), deny=digest("no"), expires=1e12))
    write_slowly(house, monkeypatch)
    await asyncio.gather(marks.spend("one"), marks.put("two", Mark(state="told")), marks.drop("three"))
    again = Marks("phone", house.store)
    await again.restore(once=False)
    for kept in (marks, again):
        assert "two" in kept
        assert await kept.take("yes", now=0) is None


def write_slowly(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store takes a few turns of the loop for a follower."""
    keep = house.store.keep_follower

    async def slowly(*args: Any, **more: Any) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        await keep(*args, **more)

    monkeypatch.setattr(house.store, "keep_follower", slowly)


async def test_a_button_works_over_a_kill_but_not_for_ever(house: House) -> None:
    await house.sinks("phone", sinks={"phone": PHONE | {"answer_within": 600}})
    await house.asks()
    await house.passes(3)
    (buttons,) = house.ports["phone"].buttons
    assert buttons is not None
    kept = await house.store.follower("notify:phone")
    assert kept is not None
    assert token(buttons.approve) not in kept.model_dump_json()
    notifier = await house.again()
    await house.passes(2)
    house.clock.jump(601)
    with pytest.raises(NotInInbox):
        await notifier.answer(token(buttons.approve))
    house.clock.jump(-601)
    assert await notifier.answer(token(buttons.approve))


async def test_the_button_of_a_question_that_is_answered(house: House) -> None:
    notifier = await house.sinks("phone", sinks={"phone": PHONE})
    task = await house.asks()
    await house.passes(3)
    (buttons,) = house.ports["phone"].buttons
    assert buttons is not None
    await house.answered(task)
    await house.passes(2)
    other = PERMISSION.model_copy(update={"prompt_id": "p2"})
    house.link.observe_as(Activity.WAITING, prompt=other)
    await until(lambda: told_of(house, AttentionChanged)[-1].prompt_id == "p2")
    with pytest.raises(NotInInbox):
        await notifier.answer(token(buttons.approve))
