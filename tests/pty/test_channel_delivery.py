"""Turns over a channel, performed: in the order in which they were decided, and never before the record is durable."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from synapsed.errors import ChannelAway, MessageRefused, NotReady, StoreError
from synapsed.interfaces import Delivering, Delivery, FoundTurn, Reach, Submitted
from synapsed.keepers.keeper_messages import KeeperBusy
from synapsed.model.facts import AssistantSaid, AssistantSaying, ChannelFact, PromptAccepted, TurnEnded, TurnInterrupted
from synapsed.model.link import (
    LinkEvent,
    LinkTurnAccepted,
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnInterrupted,
    LinkTurnProgress,
    LinkTurnRecord,
    LinkTurnSaid,
    LinkUndelivered,
)
from synapsed.model.records import TurnRecord
from synapsed.profiles.profile import Profile
from synapsed.pty.channel_delivery import ChannelDelivery
from synapsed.pty.stopping import WayStopping
from tests.fakes.clock import JUMPS, FakeClock, until


class FakeChannel:
    """A program that takes messages; the test says what it does with them."""

    name = "server"
    coming = False
    settles_s = 0.0

    def __init__(self) -> None:
        self.now: Reach = "idle"
        self.gone: str | None = None
        self.given: list[tuple[str, str]] = []
        self.looked_for: list[str] = []
        self.new: list[bool] = []
        self.stopped: list[str | None] = []
        self.answers: list[tuple[str, str]] = []
        self.fails: list[Exception] = []
        self.knows: dict[str, FoundTurn] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self._changed: Callable[[], None] = lambda: None
        self._emit: Callable[[ChannelFact], None] = lambda _fact: None
        self._keys = 0
        self.stops = True
        self.joined = False

    def watch(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def reach(self) -> Reach:
        return self.now

    def key(self, task_id: str, leg: int) -> str:
        self._keys += 1
        return f"{task_id}.{leg}.{self._keys}"

    async def submit(self, key: str, text: str, *, new: bool = False) -> Submitted:
        self.given.append((key, text))
        self.new.append(new)
        await self.gate.wait()
        if self.fails:
            raise self.fails.pop(0)
        return Submitted(turn=f"turn-{len(self.given)}", joined=self.joined)

    async def find(self, key: str, turn: str | None = None) -> FoundTurn | None:
        self.looked_for.append(key)
        if self.fails:
            raise self.fails.pop(0)
        return self.knows.get(key)

    async def interrupt(self, turn: str | None) -> bool:
        self.stopped.append(turn)
        return self.stops

    async def answer(self, request: str, option: str) -> bool:
        self.answers.append((request, option))
        return True

    async def open(self, emit: Callable[[ChannelFact], None]) -> None:
        self._emit = emit

    async def poll(self) -> None: ...

    async def last_answer(self, since_ns: int, is_ours: Callable[[str], bool]) -> str | None:
        return None

    async def reply(self, request: str, answer: dict[str, Any]) -> bool:
        return True

    async def rests(self) -> None: ...

    async def settled(self, at_ns: int) -> None: ...

    async def close(self) -> None: ...


class Played:
    def __init__(self, *, durable: bool = True) -> None:
        self.channel = FakeChannel()
        self.events: list[LinkEvent] = []
        self.clock = FakeClock()
        self.durable = durable
        self.pressed = 0
        self.touched_at: float | None = None
        self.shown = ""
        self.no_screen: StoreError | None = None
        self.fails: Exception | None = None
        self.given_when_durable: list[int] = []
        self.turns = ChannelDelivery(
            "agent",
            Profile.model_validate(
                {
                    "name": "x",
                    "command": "x",
                    "channels": {"server": {"adapter": "session-server", "new_when": "^Home$"}},
                }
            ),
            self.channel,
            clock=self.clock,
            emit=self._emit,
            over=lambda: None,
            person_at=lambda: self.touched_at,
            press=self._press,
            screen=self._screen,
        )
        self.stopping = WayStopping(self.turns, self.channel)

    async def _screen(self) -> str:
        if self.no_screen is not None:
            raise self.no_screen
        return self.shown

    async def _press(self) -> bool:
        self.pressed += 1
        if self.fails is not None:
            raise self.fails
        return True

    def _emit(self, event: LinkEvent) -> None:
        self.events.append(event)
        if isinstance(event, LinkTurnRecord) and self.durable:
            asyncio.get_running_loop().call_soon(self.turns.recorded)

    def begin(self, *, fresh: bool = True, **link: Any) -> None:
        record = self.turns.record(TurnRecord(task_id="task", launch_id="launch"))
        record.link.update(link)
        self.turns.begin(Delivery(task_id="task", text="the message", record=record, fresh=fresh))

    def tell(self, kind: type[ChannelFact], **fields: Any) -> None:
        self.turns.told(kind(**{"channel": "server", "at_ns": 1, "turn": "turn-1", **fields}))

    async def until(self, kind: type[Any]) -> Any:
        await until(lambda: any(isinstance(event, kind) for event in self.events))
        return next(event for event in self.events if isinstance(event, kind))

    def news(self) -> list[type[Any]]:
        return [type(event) for event in self.events if not isinstance(event, LinkTurnRecord)]


@pytest.fixture
async def played() -> AsyncIterator[Played]:
    it = Played()
    worker = asyncio.create_task(it.turns.run())
    yield it
    worker.cancel()
    await asyncio.wait([worker])


def test_the_fake_is_a_channel_that_delivers() -> None:
    async def check() -> None:
        assert isinstance(FakeChannel(), Delivering)

    asyncio.run(check())


async def test_a_message_begins_a_conversation_where_the_terminal_shows_none(played: Played) -> None:
    played.shown = "above\nHome\nbelow"
    played.begin()
    await played.until(LinkTurnAccepted)
    assert played.channel.new == [True]


async def test_a_screen_that_is_not_to_be_had_holds_no_message_up(played: Played) -> None:
    played.no_screen = StoreError("its process has just ended")
    played.begin()
    await played.until(LinkTurnAccepted)
    assert played.channel.new == [False]


async def test_a_turn(played: Played) -> None:
    played.begin()
    await played.until(LinkTurnAccepted)
    assert [text for _, text in played.channel.given] == ["the message"]
    played.tell(TurnEnded, answer="done")
    ended: LinkTurnEnded = await played.until(LinkTurnEnded)
    assert (ended.answer, ended.exact) == ("done", True)
    assert played.turns.turn is None


async def test_all_that_was_told_at_once_is_told_on_in_its_order(played: Played) -> None:
    """The end is decided before what came ahead of it was performed: nothing of it gets lost."""
    played.channel.gate.clear()
    played.begin()
    await until(lambda: bool(played.channel.given))
    key = played.channel.given[0][0]
    played.tell(PromptAccepted, key=key)
    played.tell(AssistantSaid, message_id="m1", text="first")
    played.tell(TurnEnded, answer="done")
    played.channel.gate.set()
    await played.until(LinkTurnEnded)
    assert played.news() == [LinkTurnAccepted, LinkTurnProgress, LinkTurnEnded]


async def test_two_turns_are_not_begun_at_once(played: Played) -> None:
    played.begin()
    with pytest.raises(NotReady):
        played.begin()


async def test_nothing_is_given_under_a_new_key_before_that_is_durable(played: Played) -> None:
    played.durable = False
    played.begin(fresh=False, minted_at=0.0)
    await until(lambda: bool(played.channel.looked_for))
    record: LinkTurnRecord = await played.until(LinkTurnRecord)
    assert played.channel.given == []
    played.turns.recorded()
    await until(lambda: bool(played.channel.given))
    assert played.channel.given[0][0] == record.record.link["key"]


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_clock_that_is_set_is_not_time_in_which_the_channel_was_away(played: Played, jump: float) -> None:
    began = played.turns._now()
    played.clock.jump(jump)
    played.clock.sleep(7200.0)
    assert played.turns._now() == began
    played.clock.advance(30.0)
    assert played.turns._now() == began + 30.0


async def test_a_connection_that_breaks_while_it_is_given(played: Played) -> None:
    played.channel.fails = [ChannelAway("reset", sent=True)]
    played.channel.now = "away"
    played.begin()
    await until(lambda: len(played.channel.given) == 1)
    await until(lambda: not played.channel.fails)
    key = played.channel.given[0][0]
    over = TurnEnded(channel="server", at_ns=1, turn="turn-1", answer="it had it")
    played.channel.knows[key] = FoundTurn(turn="turn-1", over=over)
    played.channel.now = "idle"
    played.turns.changed()
    assert (await played.until(LinkTurnEnded)).answer == "it had it"
    assert len(played.channel.given) == 1


async def test_a_refusal(played: Played) -> None:
    played.channel.fails = [MessageRefused("too long")]
    played.begin()
    assert (await played.until(LinkUndelivered)).reason == "too long"


async def test_a_server_that_is_gone(played: Played) -> None:
    played.begin()
    await played.until(LinkTurnAccepted)
    played.channel.gone = "its server has ended"
    played.turns.changed()
    assert (await played.until(LinkTurnFailed)).code == "AGENT_EXITED"


async def test_an_interrupt_is_confirmed_by_the_program(played: Played) -> None:
    played.begin()
    await played.until(LinkTurnAccepted)
    stopping = asyncio.create_task(played.stopping.stop(10))
    await until(lambda: played.channel.stopped == ["turn-1"])
    assert not stopping.done()
    played.tell(TurnInterrupted)
    assert await stopping
    assert (await played.until(LinkTurnInterrupted)).reason == "interrupted"


async def test_an_interrupt_that_is_not_confirmed_lets_the_turn_go_on(played: Played) -> None:
    played.begin()
    await played.until(LinkTurnAccepted)
    assert not await played.stopping.stop(0.01)
    played.tell(TurnEnded, answer="all the same")
    assert (await played.until(LinkTurnEnded)).answer == "all the same"


async def test_a_message_that_a_busy_program_takes_late_is_stopped_then(played: Played) -> None:
    played.channel.gate.clear()
    played.begin()
    await until(lambda: bool(played.channel.given))
    stopping = asyncio.create_task(played.stopping.stop(10))
    await until(lambda: played.turns.turn is not None and played.turns.turn.state.interrupting)
    played.channel.gate.set()
    await until(lambda: played.channel.stopped == ["turn-1"])
    played.tell(TurnInterrupted)
    assert await stopping
    assert (await played.until(LinkTurnInterrupted)).reason == "interrupted"


async def test_an_interrupt_waits_while_a_busy_program_takes_the_message(played: Played) -> None:
    """Its time begins when the program has the message."""
    played.channel.gate.clear()
    played.begin()
    await until(lambda: bool(played.channel.given))
    stopping = asyncio.create_task(played.stopping.stop(0.05))
    given_up, _ = await asyncio.wait({stopping}, timeout=0.2)
    assert not given_up
    played.channel.gate.set()
    await until(lambda: played.channel.stopped == ["turn-1"])
    await stopping


async def test_pieces_of_the_answer_are_told(played: Played) -> None:
    played.begin()
    await played.until(LinkTurnAccepted)
    for piece in ("Hello", " there"):
        played.tell(AssistantSaying, message_id="m1", piece=piece)
    said: LinkTurnSaid = await played.until(LinkTurnSaid)
    assert (said.text, said.append) == ("Hello there", True)


async def test_pieces_of_another_turn_are_not(played: Played) -> None:
    played.begin()
    await played.until(LinkTurnAccepted)
    played.tell(AssistantSaying, message_id="m0", piece="of another", turn="turn-0")
    played.tell(AssistantSaying, message_id="m1", piece="mine")
    assert (await played.until(LinkTurnSaid)).text == "mine"


@pytest.mark.parametrize("joined", [True, False])
async def test_what_is_said_before_its_prompt_is_no_piece_of_the_answer(played: Played, joined: bool) -> None:
    """Of a person's turn that runs meanwhile, also where the message joins it."""
    played.channel.joined = joined
    played.channel.gate.clear()
    played.begin()
    await until(lambda: played.channel.given != [])
    theirs = "turn-1" if joined else "turn-0"
    played.tell(AssistantSaying, message_id="m0", piece="to the person", turn=theirs)
    played.channel.gate.set()
    await played.until(LinkTurnAccepted)
    played.tell(AssistantSaying, message_id="m0", piece=", all of it", turn=theirs)
    played.turns._tell_pieces()
    played.clock.advance(1.0)
    if joined:
        played.tell(PromptAccepted, key=played.channel.given[0][0])
    played.tell(AssistantSaying, message_id="m1", piece="mine")
    assert (await played.until(LinkTurnSaid)).text == "mine"


async def test_a_refusal_after_which_it_goes_on_counts_no_more(played: Played) -> None:
    """What stops it later is a person's Esc."""
    played.begin()
    await played.until(LinkTurnAccepted)
    played.touched_at = played.clock.monotonic()
    played.turns.refuse(True)
    played.tell(AssistantSaying, message_id="m1", piece="Then I will do without.")
    played.tell(TurnInterrupted)
    assert (await played.until(LinkTurnInterrupted)).reason == "person"


async def test_a_program_that_has_no_command_for_it_is_stopped_by_keys(played: Played) -> None:
    played.begin()
    await played.until(LinkTurnAccepted)
    played.channel.stops, played.channel.now = False, "busy"
    stopping = asyncio.create_task(played.stopping.stop(10))
    await until(lambda: played.pressed == 1)
    played.tell(TurnInterrupted)
    assert await stopping


@pytest.mark.parametrize("touched", [True, False])
async def test_a_turn_that_stops_later_than_it_was_asked_to_was_stopped_by_that_or_by_a_person(
    played: Played, touched: bool
) -> None:
    played.begin()
    await played.until(LinkTurnAccepted)
    assert not await played.stopping.stop(0.01)
    played.touched_at = played.clock.monotonic() if touched else None
    played.tell(TurnInterrupted)
    assert (await played.until(LinkTurnInterrupted)).reason == ("person" if touched else "interrupted")


@pytest.mark.parametrize(("first", "reason"), [(True, "person"), (False, "interrupted")])
async def test_a_key_at_its_terminal_that_asks_for_the_stop_is_a_persons(
    played: Played, first: bool, reason: str
) -> None:
    """Not where somebody has asked for it through synapsed too: whoever did waits for that."""
    played.begin()
    await played.until(LinkTurnAccepted)
    if not first:
        assert not await played.stopping.stop(0.01)
    stopping = asyncio.create_task(played.stopping.stop(10, by_person=True))
    await until(lambda: len(played.channel.stopped) == 2 - first)
    played.tell(TurnInterrupted)
    assert await stopping
    assert (await played.until(LinkTurnInterrupted)).reason == reason


@pytest.mark.parametrize("error", [KeeperBusy("the program does not read", reason="busy"), MessageRefused("unknown")])
async def test_a_stop_that_fails_leaves_the_turn_to_its_end(played: Played, error: Exception) -> None:
    """The worker of all turns goes on: the program may still end the turn, and another one may come."""
    played.begin()
    await played.until(LinkTurnAccepted)
    played.channel.now, played.fails = "busy", error
    played.channel.stops = False
    assert not await played.stopping.stop(0.01)
    played.tell(TurnEnded, answer="all the same")
    assert (await played.until(LinkTurnEnded)).answer == "all the same"
