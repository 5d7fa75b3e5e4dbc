"""Text while it is said on another host: what is told of it here, joined, is the answer, whatever is lost."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from synapsed.model.events import TaskArtifactAdded
from synapsed.model.task import ANSWER_ID, Task, TaskState
from synapsed.store.lookup import told_before
from synapsed.tasks import transitions
from synapsed_fleet.envelope import BODY_MAX, BadEnvelope
from synapsed_fleet.live_text_pieces import (
    ASK_EVERY_S,
    PIECE_MAX,
    TASKS_MAX,
    TEXT_MAX,
    Listened,
    SaidPiece,
    SayAgain,
    read,
)
from synapsed_fleet.nkey import KeyPair
from synapsed_fleet.ports import Stored
from synapsed_fleet.signing import signed
from tests.parts.fleet.world import Host, World

# --- what is decided -------------------------------------------------------------------------------------------------

TASK = "11111111-1111-4111-8111-111111111111"


def test_pieces_go_on_from_each_other_and_what_is_missing_is_asked_for() -> None:
    heard = Listened()
    assert heard.take(SaidPiece(TASK, 5, 0, "ab"), told=False) == ("ab", True)
    assert heard.take(SaidPiece(TASK, 5, 2, "cd"), told=True) == ("cd", True)
    assert heard.take(SaidPiece(TASK, 5, 2, "cd"), told=True) is None, "it came again"
    assert heard.take(SaidPiece(TASK, 5, 9, "x"), told=True) == "ask"
    assert heard.take(SaidPiece(TASK, 5, 0, "abcdefghix"), told=True) == ("efghix", True), (
        "all of it, which was asked for"
    )


def test_another_message_takes_the_place_of_the_one_before() -> None:
    heard = Listened()
    heard.take(SaidPiece(TASK, 5, 0, "first"), told=False)
    assert heard.take(SaidPiece(TASK, 8, 3, "ond"), told=True) == "ask", "its beginning is missing"
    assert heard.take(SaidPiece(TASK, 8, 0, "sec"), told=True) == ("sec", False)
    assert heard.take(SaidPiece(TASK, 5, 5, " late"), told=True) is None, "it is of the one before"


def test_the_next_daemon_takes_up_nothing_that_it_has_not_heard_from_its_beginning() -> None:
    heard = Listened()
    assert heard.take(SaidPiece(TASK, 5, 4, "more"), told=True) == "ask"
    assert heard.take(SaidPiece(TASK, 5, 0, "all more"), told=True) == ("all more", False), "in place of what was told"


def test_questions_are_not_asked_again_and_again() -> None:
    heard = Listened()
    assert [heard.may_ask(TASK, now) for now in (0.0, 0.1, ASK_EVERY_S, ASK_EVERY_S + 0.1)] == [
        True,
        False,
        True,
        False,
    ]


def test_what_is_known_of_tasks_is_bounded() -> None:
    heard = Listened()
    for n in range(TASKS_MAX + 5):
        heard.take(SaidPiece(f"{n:08d}", 1, 0, "x"), told=False)
    assert not heard.knows("00000000")
    assert heard.knows(f"{TASKS_MAX:08d}")


@pytest.mark.parametrize("character", ["a", "\x00", "\U0001f600", '"'])
def test_any_text_goes_in_pieces_that_fit_and_stops_at_its_bound(character: str) -> None:
    pieces = list(SaidPiece(TASK, 1, 0, character * (TEXT_MAX + 5)).split())
    assert all(len(piece.body()) <= BODY_MAX for piece in pieces)
    assert "".join(piece.text for piece in pieces) == character * TEXT_MAX
    assert [piece.at for piece in pieces] == [n * PIECE_MAX for n in range(len(pieces))]


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"begin": 1, "at": 0},
        {"begin": True, "at": 0, "text": "x"},
        {"begin": 1, "at": -1, "text": "x"},
        {"begin": 1, "at": TEXT_MAX, "text": "x"},
        {"begin": 1, "at": 0, "text": "x" * (PIECE_MAX + 1)},
        {"begin": 1.5, "at": 0, "text": "x"},
        {"again": 1},
    ],
)
def test_what_is_no_piece_is_not_read(document: dict[str, object]) -> None:
    with pytest.raises(BadEnvelope):
        read(TASK, document)


def test_a_question_is_read() -> None:
    assert read(TASK, {"again": True}) == SayAgain(TASK)


# --- two hosts -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World]:
    made = World(tmp_path)
    for name in ("laptop", "box", "other"):
        await made.host(name)
    for host in made.hosts.values():
        await host.peers.load()
        for other in made.hosts.values():
            await host.peers.learn(other.name, f"{other.name}|{other.pair.public}")
    yield made
    await made.close()


class Turn:
    """A task of the laptop for an agent of the box, which is working on it."""

    def __init__(self, world: World, here: Task, there: Task) -> None:
        self.world = world
        self.laptop, self.box = world.hosts["laptop"], world.hosts["box"]
        self.here, self.there = here, there

    @classmethod
    async def begin(cls, world: World) -> "Turn":
        laptop, box = world.hosts["laptop"], world.hosts["box"]
        here = await laptop.send("codex@box", "tell me", key="1")
        await laptop.turn(answers=False)
        await box.turn(answers=False)
        (there,) = await box.tasks()
        return cls(world, here, there)

    async def say(self, text: str, *, append: bool = True) -> None:
        await self.box.store.commit(events=[transitions.said(self.there, text=text, append=append)])

    async def go_round(self) -> None:
        """All that is told is heard, and what is asked for is told again."""
        for _ in range(3):
            await self.box.live()
            await self.laptop.live()

    async def told(self) -> str:
        return await told_before(self.laptop.store.events, self.here.id)

    async def end(self, answer: str) -> list[TaskArtifactAdded]:
        """The agent has answered; what was told of the answer on the laptop, from the beginning."""
        told = await told_before(self.box.store.events, self.there.id)
        commit = transitions.completed(self.there, answer=answer, exact=True, now=0.0, told=told)
        await self.box.store.commit(events=commit.events, tasks=[commit.task])
        await self.world.rest()
        now = await self.laptop.store.task(self.here.id)
        assert now is not None
        assert (now.status, now.answer) == (TaskState.COMPLETED, answer)
        events = await self.laptop.store.events.read(0, task_id=self.here.id)
        return [
            e.data for e in events if isinstance(e.data, TaskArtifactAdded) and e.data.artifact.artifact_id == ANSWER_ID
        ]


def joined(pieces: list[TaskArtifactAdded]) -> str:
    text = ""
    for piece in pieces:
        text = text + piece.artifact.text if piece.append else piece.artifact.text
    return text


async def test_what_is_said_there_is_told_here_and_the_end_is_the_rest_of_it(world: World) -> None:
    turn = await Turn.begin(world)
    for text in ("Once ", "upon ", "a"):
        await turn.say(text)
        await turn.go_round()
    assert await turn.told() == "Once upon a"
    pieces = await turn.end("Once upon a time.")
    assert [(piece.artifact.text, piece.append) for piece in pieces] == [
        ("Once ", True),
        ("upon ", True),
        ("a", True),
        (" time.", True),
    ]


async def test_another_answer_than_was_told_takes_its_place(world: World) -> None:
    turn = await Turn.begin(world)
    await turn.say("I think")
    await turn.go_round()
    pieces = await turn.end("It is 4.")
    assert [(piece.artifact.text, piece.append) for piece in pieces][-1] == ("It is 4.", False)
    assert joined(pieces) == "It is 4."


async def test_a_piece_that_is_lost_is_asked_for(world: World) -> None:
    turn = await Turn.begin(world)
    await turn.say("one ")
    await turn.go_round()
    world.broker.lose_live = 1
    await turn.say("two ")
    await turn.go_round()
    assert await turn.told() == "one "
    await turn.say("three")
    await turn.go_round()
    assert await turn.told() == "one two three"


async def test_all_of_it_lost_is_the_answer_at_the_end(world: World) -> None:
    turn = await Turn.begin(world)
    world.broker.lose_live = 1000
    await turn.say("one ")
    await turn.go_round()
    assert joined(await turn.end("one two")) == "one two"


@pytest.mark.parametrize("who", ["laptop", "box"])
async def test_a_daemon_killed_in_between_takes_it_up_again(world: World, who: str) -> None:
    turn = await Turn.begin(world)
    await turn.say("one ")
    await turn.go_round()
    await world.hosts[who].kill()
    await turn.say("two ")
    await turn.go_round()
    assert await turn.told() == "one two "
    await turn.say("three")
    await turn.go_round()
    assert joined(await turn.end("one two three.")) == "one two three."


async def test_the_next_message_of_the_agent_takes_the_place_of_the_one_before(world: World) -> None:
    turn = await Turn.begin(world)
    await turn.say("I look.")
    await turn.say("It", append=False)
    await turn.say(" is")
    await turn.go_round()
    assert await turn.told() == "It is"
    assert joined(await turn.end("It is so.")) == "It is so."


async def test_it_goes_to_the_host_that_has_asked_and_to_no_other(world: World) -> None:
    turn = await Turn.begin(world)
    await turn.say("for the laptop")
    await turn.box.live()
    assert list(world.broker.live) == ["laptop"]
    mine = world.hosts["box"]
    own = await mine.mailbox.send("synapse-codex-1", _local_request())
    world.broker.live.clear()
    await mine.store.commit(events=[transitions.said(own, text="for nobody elsewhere", append=True)])
    await mine.live()
    assert world.broker.live == {}


def _local_request():  # type: ignore[no-untyped-def]
    from synapsed.interfaces import SendRequest
    from synapsed.model.task import Message

    return SendRequest(message=Message.of("of this host"))


async def _told_by(host: Host, by: Host, task: str, piece: SaidPiece, *, pair: KeyPair | None = None) -> Stored:
    """What `by` tells `host`."""
    subject = f"syn.say.{host.name}.{by.name}"
    said = by.outgoing.sign(subject, f"{task}/{piece.at}", piece.body())
    if pair is not None:
        said = signed(replace(said, signature=""), by.world.trust.fleet, pair)
    return Stored(subject, said.headers(), said.body, 0)


async def test_what_its_host_has_not_said_is_not_told(world: World) -> None:
    turn = await Turn.begin(world)
    await turn.say("true")
    await turn.go_round()
    laptop, other = turn.laptop, world.hosts["other"]
    piece = SaidPiece(turn.here.id, 99, 0, "false")
    forged = await _told_by(laptop, turn.box, turn.here.id, piece, pair=other.pair)
    await laptop.hears.take(forged)  # the box's name, another's key
    assert [row.reason for row in await laptop.table.quarantined()] == ["its signature is not its sender's"]
    await laptop.hears.take(await _told_by(laptop, other, turn.here.id, piece))  # a member that does not have the task
    elsewhere = await _told_by(other, turn.box, turn.here.id, piece)
    await laptop.hears.take(Stored("syn.say.laptop.box", elsewhere.headers, elsewhere.body, 0))
    await laptop.hears.take(Stored("syn.say.laptop", {}, b"", 0))
    assert await turn.told() == "true"
    right = await _told_by(laptop, turn.box, turn.here.id, piece)
    await laptop.hears.take(right)
    assert await turn.told() == "false", "its host may say something else"


async def test_what_was_heard_is_not_told_again_nor_after_the_end(world: World) -> None:
    turn = await Turn.begin(world)
    await turn.say("once")
    await turn.box.live()
    (came,) = world.broker.live["laptop"]
    await turn.laptop.live()
    await turn.laptop.hears.take(came)
    assert await turn.told() == "once"
    pieces = await turn.end("once")
    last = turn.laptop.store.events.last_id
    await turn.laptop.hears.take(came)
    assert turn.laptop.store.events.last_id == last
    assert joined(pieces) == "once"


async def test_only_the_host_of_a_task_is_told_it_again(world: World) -> None:
    turn = await Turn.begin(world)
    await turn.say("mine")
    await turn.go_round()
    other = world.hosts["other"]
    asked = other.outgoing.sign("syn.say.box.other", turn.here.id, SayAgain.body())
    await turn.box.hears.take(Stored("syn.say.box.other", asked.headers(), asked.body, 0))
    assert world.broker.live == {}
    mine = turn.laptop.outgoing.sign("syn.say.box.laptop", turn.here.id, SayAgain.body())
    for _ in range(3):
        await turn.box.hears.take(Stored("syn.say.box.laptop", mine.headers(), mine.body, 0))
    assert len(world.broker.live["laptop"]) == 1, "once in a while"


async def test_what_is_wrong_with_live_text_is_kept_once_in_a_while(world: World) -> None:
    laptop = world.hosts["laptop"]
    for _ in range(5):
        await laptop.hears.take(Stored("syn.say.laptop.box", {}, b"", 0))
    assert len(await laptop.table.quarantined()) == 1
    world.clock.advance(2)
    await laptop.hears.take(Stored("syn.say.laptop.box", {}, b"", 0))
    assert len(await laptop.table.quarantined()) == 2
