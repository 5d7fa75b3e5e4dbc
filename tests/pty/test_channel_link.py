"""The link of a program that takes messages over a channel; what it does at its terminal is a fake's."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from synapsed.errors import ChannelAway, InvalidChoice, NotTaken
from synapsed.interfaces import Delivering, Delivery, SideChannel
from synapsed.model.agent import Activity
from synapsed.model.facts import (
    AssistantSaying,
    Choice,
    PermissionAsked,
    PermissionOver,
    ToolBegan,
    TurnEnded,
    TurnInterrupted,
)
from synapsed.model.link import (
    LinkAlert,
    LinkEvent,
    LinkExited,
    LinkObserved,
    LinkTurnAccepted,
    LinkTurnEnded,
    LinkTurnInterrupted,
    LinkTurnRecord,
    LinkTurnSaid,
)
from synapsed.model.records import LaunchRecord, TurnRecord
from synapsed.profiles.profile import Profile
from synapsed.pty.answering import Answering
from synapsed.pty.channel_way import CHANNEL_AWAY
from synapsed.pty.keyboard import Steps
from synapsed.pty.output_times import OutputTimes
from synapsed.pty.pty_link import PtyLink
from synapsed.pty.shared_timer import Rounds
from synapsed.pty.turn_worker import TurnWorker
from synapsed.pty.window import LastSeen
from tests.fakes.clock import FakeClock, until
from tests.fakes.link import FakeLink
from tests.fakes.stage import LocalStage
from tests.fakes.store import MemoryStore
from tests.pty.test_channel_delivery import FakeChannel

READY = LinkObserved(Activity.READY, "composer", None, can_receive=True)
ASKED = PermissionAsked(
    channel="server",
    at_ns=1,
    turn="turn-1",
    request="r1",
    question="Run it?",
    options=(Choice(key="yes", label="Yes", aliases=("approve",)), Choice(key="no", label="No")),
)


class FakeTerminal(FakeLink):
    """What the link does at its terminal, as far as it is asked for that."""

    def __init__(self, launch: LaunchRecord) -> None:
        super().__init__(launch)
        self.seen = READY
        self.told: list[Any] = []
        self.order: list[Any] = []
        """What the channels told it, and what the link has told."""

    async def open_for(self, link: PtyLink, emit: Callable[[LinkEvent], None]) -> None:
        link._program.emit = emit
        await self.open(emit)
        for channel in link._channels:
            await channel.open(link._beside.on_fact if link._beside is not None else link._on_fact)
        self.emit(self.seen)

    def hear(self, fact: Any) -> None:
        self.told.append(fact)
        self.order.append(fact)

    def answer_for(self, answering: Answering, text: str, prompt_id: str | None) -> Steps[bool]:
        """An answer `no` is a refusal."""
        yield from answering._refuse(refuses=text == "no")
        self.answers.append((text, prompt_id))
        return False


class Linked:
    def __init__(self, tmp_path: Path, patch: pytest.MonkeyPatch, *, adopted: bool = False) -> None:
        self.channel, self.durable = FakeChannel(), True
        self.events: list[LinkEvent] = []
        fields = dict.fromkeys(("keeper_pid", "keeper_start", "pid", "pid_start"), 1)
        launch = LaunchRecord(launch_id="l", socket="/none", spool_start=0, started_at=0, **fields)
        self.terminal = FakeTerminal(launch)
        for name in ("prepare", "deliver"):
            patch.setattr(TurnWorker, name, _without_link(getattr(self.terminal, name)))
        for name in ("signal", "screen_text"):
            patch.setattr(PtyLink, name, _without_link(getattr(self.terminal, name)))
        patch.setattr(PtyLink, "_observed", _without_link(self.terminal.observe))
        patch.setattr(PtyLink, "_press_stop", _without_link(self.terminal.interrupt))
        patch.setattr(PtyLink, "_on_fact", _without_link(self.terminal.hear))
        patch.setattr(PtyLink, "_open", _plain(self.terminal.open_for))
        patch.setattr(Answering, "answer", _plain(self.terminal.answer_for))
        clock, profile = FakeClock(), Profile(name="x", command="x")
        self.link = PtyLink(
            way=cast("Delivering", self.channel),
            adopted=adopted,
            agent_id="agent",
            profile=profile,
            launch=launch,
            stage=LocalStage(profile, launch, (80, 24), None, 0.0),
            channels=[cast("SideChannel", self.channel)],
            times=OutputTimes(tmp_path / "times"),
            store=MemoryStore(clock),
            clock=clock,
            seen=LastSeen(),
            rounds=Rounds(clock),
            own_size=(80, 24),
        )

        assert self.link._beside is not None
        self.way = self.link._beside

    def emit(self, event: LinkEvent) -> None:
        self.events.append(event)
        self.terminal.order.append(event)
        if isinstance(event, LinkTurnRecord) and self.durable:
            asyncio.get_running_loop().call_soon(self.link.recorded, event.record)

    def seen(self) -> LinkObserved:
        return [event for event in self.events if isinstance(event, LinkObserved)][-1]

    def alerts(self) -> list[tuple[str, str]]:
        return [(event.code, event.state) for event in self.events if isinstance(event, LinkAlert)]

    def move(self, reach: Any) -> None:
        self.channel.now = reach
        self.channel._changed()

    async def begin(self, *, command: bool = False) -> TurnRecord:
        record = self.link.prepare(TurnRecord(task_id="task", launch_id="l"), command=command)
        await self.link.deliver(Delivery(task_id="task", text="hello", record=record, fresh=True, command=command))
        return record


def _plain(done: Callable[..., Any]) -> Callable[..., Any]:
    """A function, which as a class's attribute is given the link."""

    def plain(*given: Any, **more: Any) -> Any:
        return done(*given, **more)

    return plain


def _without_link(done: Callable[..., Any]) -> Callable[..., Any]:
    return _plain(lambda _link, *given, **more: done(*given, **more))


@pytest.fixture
async def linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Linked]:
    it = Linked(tmp_path, monkeypatch)
    await it.link.open(it.emit)
    yield it
    await it.link.close()


@pytest.mark.parametrize("pressed", [True, False])
async def test_a_person_stopped_the_turn_only_where_one_pressed_a_key(linked: Linked, pressed: bool) -> None:
    await linked.begin()
    await until(lambda: any(isinstance(event, LinkTurnAccepted) for event in linked.events))
    if pressed:
        linked.link._session.pressed(1e9)
    linked.channel._emit(TurnInterrupted(channel="server", at_ns=1, turn="turn-1"))
    await until(lambda: any(isinstance(event, LinkTurnInterrupted) for event in linked.events))
    (stopped,) = [event for event in linked.events if isinstance(event, LinkTurnInterrupted)]
    assert stopped.reason == ("person" if pressed else "program")


async def test_a_message_goes_over_the_channel_and_none_is_typed(linked: Linked) -> None:
    record = await linked.begin()
    assert record.link["by"] == "channel"
    await until(lambda: any(isinstance(event, LinkTurnAccepted) for event in linked.events))
    assert linked.terminal.deliveries == []
    assert linked.seen().activity is Activity.BUSY
    linked.channel._emit(TurnEnded(channel="server", at_ns=1, turn="turn-1", answer="done"))
    assert [type(fact) for fact in linked.terminal.told] == [TurnEnded], "the terminal hears of it, too"
    await until(lambda: linked.seen().can_receive)


async def test_what_was_said_before_a_tool_call_is_told_before_it(linked: Linked) -> None:
    """All of it, although a last word waits otherwise for what follows it; not where a subagent calls something."""
    await linked.begin()
    await until(lambda: any(isinstance(event, LinkTurnAccepted) for event in linked.events))
    said = AssistantSaying(channel="server", at_ns=1, turn="turn-1", message_id="m", piece="I will look at it.")
    call = ToolBegan(channel="server", at_ns=1, turn="turn-1", call="c", tool="shell", input={})
    for fact in (said, replace(call, turn=None), call):
        linked.channel._emit(fact)
    kinds = (LinkTurnSaid, ToolBegan)
    assert [event for event in linked.terminal.order if isinstance(event, kinds)] == [
        replace(call, turn=None),
        LinkTurnSaid("task", "I will look at it.", append=True),
        call,
    ]


async def test_a_command_is_typed(linked: Linked) -> None:
    record = await linked.begin(command=True)
    assert "by" not in record.link
    assert len(linked.terminal.deliveries) == 1
    assert linked.alerts() == []


async def test_a_channel_that_is_away_has_messages_typed_which_is_said_once(linked: Linked) -> None:
    linked.move("away")
    for _ in range(2):
        await linked.begin()
    assert len(linked.terminal.deliveries) == 2
    assert linked.alerts() == [(CHANNEL_AWAY, "begins")]
    linked.move("idle")
    assert linked.alerts() == [(CHANNEL_AWAY, "begins"), (CHANNEL_AWAY, "over")]
    await linked.begin()
    await until(lambda: len(linked.channel.given) == 1)


async def test_a_turn_goes_on_the_way_in_which_it_began(linked: Linked) -> None:
    """The next daemon has nothing but the record."""
    record = linked.link.prepare(TurnRecord(task_id="task", launch_id="l"))
    linked.move("away")
    await linked.link.deliver(Delivery(task_id="task", text="hello", record=record))
    assert linked.terminal.deliveries == []
    linked.move("idle")
    await until(lambda: bool(linked.channel.looked_for))
    assert set(linked.channel.looked_for) == {record.link["key"]}


async def test_what_it_asks_is_answered_over_the_channel(linked: Linked) -> None:
    linked.channel._emit(ASKED)
    prompt = linked.seen().prompt
    assert prompt is not None
    with pytest.raises(InvalidChoice):
        await linked.link.answer("perhaps", prompt.prompt_id)
    assert not await linked.link.answer("approve", prompt.prompt_id)
    assert linked.channel.answers == [("r1", "yes")]
    assert linked.terminal.answers == []
    assert linked.seen().prompt is None


async def test_one_that_is_answered_at_the_terminal_closes(linked: Linked) -> None:
    linked.channel._emit(ASKED)
    assert linked.seen().prompt is not None
    linked.channel._emit(PermissionOver(channel="server", at_ns=2, request="r1"))
    assert linked.seen().prompt is None


async def test_an_answer_that_comes_second_is_refused(linked: Linked) -> None:
    linked.channel._emit(ASKED)
    prompt = linked.seen().prompt
    assert prompt is not None

    async def second(request: str, option: str) -> bool:
        return False

    linked.channel.answer = second  # type: ignore[method-assign]
    with pytest.raises(NotTaken, match="somebody else"):
        await linked.link.answer("yes", prompt.prompt_id)


async def test_an_answer_that_the_program_does_not_hear_is_not_taken(linked: Linked) -> None:
    linked.channel._emit(ASKED)

    async def away(request: str, option: str) -> bool:
        raise ChannelAway("reset", sent=True)

    linked.channel.answer = away  # type: ignore[method-assign]
    with pytest.raises(NotTaken, match="reset"):
        await linked.link.answer("yes", None)
    assert linked.seen().prompt is not None


async def test_another_prompt_is_the_terminal_s(linked: Linked) -> None:
    linked.channel._emit(ASKED)
    await linked.link.answer("1", "another")
    assert linked.terminal.answers == [("1", "another")]


async def test_a_refusal_on_the_terminal_that_stops_the_turn_is_told_to_the_model(linked: Linked) -> None:
    await linked.begin()
    await until(lambda: len(linked.channel.given) == 1)
    await linked.link.answer("no", "a question of the terminal's")
    linked.channel._emit(TurnInterrupted(channel="server", at_ns=3, turn="turn-1"))
    await until(lambda: len(linked.channel.given) == 2)
    assert "refused" in linked.channel.given[1][1]


async def test_a_person_s_turn_is_stopped_without_a_key(linked: Linked) -> None:
    assert not await linked.link.interrupt(), "nothing runs"
    linked.move("busy")
    stopping = asyncio.create_task(linked.link.interrupt())
    await until(lambda: linked.channel.stopped == [None])
    linked.move("idle")
    assert await stopping
    assert linked.terminal.interrupts == 0


async def test_what_was_typed_is_stopped_by_keys(linked: Linked) -> None:
    linked.link._session.turn = cast("Any", object())
    await linked.link.interrupt()
    assert linked.terminal.interrupts == 1


async def test_a_server_that_is_gone_ends_the_program(linked: Linked) -> None:
    linked.channel.gone = "its server has ended"
    linked.move("away")
    await until(lambda: linked.terminal.signals == [9])
    assert linked.alerts() == [(CHANNEL_AWAY, "happened")]
    linked.terminal.emit(LinkExited(-9, "the program ended"))
    assert isinstance(linked.events[-1], LinkExited)


async def test_a_program_that_ends_drops_its_turn(linked: Linked) -> None:
    await linked.begin()
    await until(lambda: bool(linked.channel.given))
    linked.terminal.emit(LinkExited(1, "the program ended"))
    assert linked.way.turns.turn is None


async def test_an_answer_that_has_come_is_told_before_the_end_of_the_program(linked: Linked) -> None:
    """Its turn's record may not be durable yet."""
    linked.durable = False
    await linked.begin()
    await until(lambda: any(isinstance(event, LinkTurnRecord) for event in linked.events))
    linked.channel._emit(TurnEnded(channel="server", at_ns=1, turn="turn-1", answer="done"))
    await linked.link.last_words()
    assert [type(event) for event in linked.events if isinstance(event, LinkTurnAccepted | LinkTurnEnded)] == [
        LinkTurnAccepted,
        LinkTurnEnded,
    ]


async def test_an_adopted_program_is_told_of_when_its_channel_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Linked(tmp_path, monkeypatch, adopted=True)
    it.channel.now = "away"
    opening = asyncio.create_task(it.link.open(it.emit))
    await until(lambda: it.terminal.opened)
    assert [event for event in it.events if isinstance(event, LinkObserved)] == []
    it.move("busy")
    await opening
    assert it.seen().activity is Activity.BUSY
    await it.link.close()
