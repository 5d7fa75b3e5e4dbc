"""Replies: asked for, given, taken from the answer, failed, too late; told once, whatever is killed when."""

import itertools
from typing import Any

import pytest

from synapsed.errors import (
    AmbiguousAddress,
    Forbidden,
    HopLimit,
    InvalidRequest,
    NotWaiting,
    StoreError,
    TaskNotCancelable,
    TaskNotFound,
    WouldDeadlock,
)
from synapsed.interfaces import SendRequest
from synapsed.model.link import LinkTurnFailed
from synapsed.model.records import ReplyRecord
from synapsed.model.sender import Sender, Tier
from synapsed.model.task import Message, Task, TaskState
from synapsed.supervisor.reply_broker import AWAITED_MAX
from synapsed.tasks import replies, transitions
from synapsed.tasks.replies import circle
from tests.fakes.clock import JUMPS, until
from tests.fakes.link import FakeLink
from tests.support.gated import one_each
from tests.support.world import World

A, B, C = "synapse-fake-8190", "synapse-fake-8191", "synapse-fake-8192"


def of(agent: str) -> dict[str, Any]:
    return {"sender": Sender(id=agent, tier=Tier.AGENT, type="fake").metadata()}


class Pair:
    """Two agents, and what they do to each other."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def start(self, count: int = 2) -> "Pair":
        for _ in range(count):
            await self.world.start()
        return self

    def link(self, agent: str) -> FakeLink:
        launched = [record.id for record, _ in self.world.factory.launched]
        return self.world.factory.links[launched.index(agent)]

    async def own(self, agent: str = A, *, wait: bool = False, limit: float | None = None) -> Task:
        request = SendRequest(message=Message.of("what?"), metadata=of(agent), wait=wait)
        return await self.world.manager.tasks.expect_reply(agent, request, limit)

    async def ask(self, own: Task, to: str = B, text: str = "what?", **metadata: Any) -> Task:
        given = {**of(own.agent_id), "sender_task_id": own.id, **metadata}
        return await self.world.send(to, text, metadata=given)

    async def reply(self, named: str | None, text: str, by: str = B, **metadata: Any) -> Task:
        given = {**of(by), **metadata, **({"in_reply_to": named} if named else {})}
        return await self.world.manager.tasks.reply(by, SendRequest(message=Message.of(text), metadata=given))

    async def turn(self, agent: str, number: int, answer: str) -> None:
        """The agent's turn number `number`, from 1, ends with `answer`."""
        link = self.link(agent)
        await self.world.delivered(number, link)
        link.submit()
        link.end(answer)

    def typed(self, agent: str) -> list[str]:
        return [delivery.text for delivery in self.link(agent).deliveries]


@pytest.fixture
async def pair(world: World) -> Pair:
    return await Pair(world).start()


# --- the table -------------------------------------------------------------------------------------------------------


def record(state: Any) -> ReplyRecord:
    return ReplyRecord(task_id="1" * 36, asker=A, asked=B, request="r", state=state, limit=60.0, due=0.0)


@pytest.mark.parametrize("state", ["open", "asked", "over"])
@pytest.mark.parametrize("step", ["asked", "replied", "ended", "expired", "canceled", "told", "collected"])
def test_what_is_not_in_the_table_is_refused(state: Any, step: Any) -> None:
    if (state, step) in replies.TRANSITIONS:
        assert replies.moved(record(state), step) == replies.TRANSITIONS[state, step]
    else:
        with pytest.raises(NotWaiting):
            replies.moved(record(state), step)


def test_every_state_can_end() -> None:
    """From each there is a way to where nothing is kept."""
    reached: set[Any] = {None}
    for _ in range(3):
        reached |= {state for (state, _), after in replies.TRANSITIONS.items() if after in reached}
    assert reached == {None, "open", "asked", "over"}


@pytest.mark.parametrize(
    ("edges", "wait", "expected"),
    [
        ([], "aa", "aa"),
        ([], "ab", None),
        (["ab"], "ba", "bab"),
        (["ab", "bc"], "ca", "cabc"),
        (["ab", "bd", "da", "ac"], "cd", "cdac"),
        (["ab", "bd", "da"], "cd", None),
        (["ab", "bc", "ca"], "dc", None),
        (["ab", "ab"], "ab", None),
    ],
)
def test_circles(edges: list[str], wait: str, expected: str | None) -> None:
    found = circle([(edge[0], edge[1]) for edge in edges], wait[0], wait[1])
    assert found == (list(expected) if expected else None)


# --- the ways of a reply ---------------------------------------------------------------------------------------------


async def test_the_answer_is_the_reply_and_the_asker_is_told(world: World, pair: Pair) -> None:
    own = await pair.own()
    assert (own.status, own.metadata["direction"]) == (TaskState.WORKING, "outgoing")
    request = await pair.ask(own)
    assert request.metadata["response_expected"] is True
    await pair.turn(B, 1, "forty-two")
    assert pair.typed(B) == [f"[A2A:{own.id[:8]}:{A}:R] what?"]
    done = await world.task_is(own.id, TaskState.COMPLETED)
    assert (done.answer, done.exact) == ("forty-two", True)
    reply = done.metadata["reply"]
    assert (reply["implicit"], reply["task_id"], reply["sender"]["verified"]) == (True, request.id, True)
    await world.delivered(1, pair.link(A))
    assert pair.typed(A) == [f"[A2A:reply:{own.id[:8]}:{B}] forty-two"]
    assert await world.store.replies() == []
    assert world.statuses(own.id) == ["working", "completed"]


async def test_words_of_its_own_come_before_the_answer(world: World, pair: Pair) -> None:
    own = await pair.own()
    request = await pair.ask(own)
    await world.delivered(1, pair.link(B))
    done = await pair.reply(own.id[:8], "my own words")
    assert (done.id, done.status, done.answer) == (own.id, TaskState.COMPLETED, "my own words")
    assert done.metadata["reply"]["implicit"] is False
    await pair.turn(B, 1, "said otherwise")
    await world.task_is(request.id, TaskState.COMPLETED)
    await pair.turn(A, 1, "thanks")
    await until(lambda: world.manager.directory.view(A).queue == 0 and world.manager.directory.view(A).task is None)
    assert pair.typed(A) == [f"[A2A:reply:{own.id[:8]}:{B}] my own words"]


async def test_a_reply_names_the_task_or_the_request_or_nothing(world: World, pair: Pair) -> None:
    for named in (lambda own, _: own.id, lambda _, request: request.id[:8], lambda *_: None):
        own = await pair.own()
        request = await pair.ask(own)
        await world.delivered(len(pair.typed(B)) or 1, pair.link(B))
        await until(lambda one=request: any(d.task_id == one.id for d in pair.link(B).deliveries))
        assert (await pair.reply(named(own, request), "so")).id == own.id
        pair.link(B).submit()
        pair.link(B).end("x")
        await world.task_is(request.id, TaskState.COMPLETED)


async def test_a_reply_after_the_turn_takes_the_place_of_the_answer(world: World, pair: Pair) -> None:
    own = await pair.own()
    await pair.ask(own)
    await pair.turn(B, 1, "wait…")
    await world.task_is(own.id, TaskState.COMPLETED)
    await pair.turn(A, 1, "hm")
    done = await pair.reply(None, "here it is")
    assert (done.id, done.answer) == (own.id, "here it is")
    await world.delivered(2, pair.link(A))
    assert pair.typed(A)[1] == f"[A2A:reply:{own.id[:8]}:{B}] here it is"
    assert (await pair.reply(own.id, "here it is")).id == own.id, "said again, by one that did not hear the answer"
    with pytest.raises(NotWaiting):
        await pair.reply(own.id, "another")
    with pytest.raises(NotWaiting):
        await pair.reply(None, "another")
    assert len([task for task in world.store._tasks.values() if "reply_to" in task.metadata]) == 2


async def test_failure_and_cancellation_travel_back(world: World, pair: Pair) -> None:
    failing, canceled = await pair.own(), await pair.own()
    first = await pair.ask(failing)
    second = await pair.ask(canceled)
    await world.delivered(1, pair.link(B))
    await world.manager.tasks.cancel(second.id)
    assert (await world.task_is(canceled.id, TaskState.CANCELED)).metadata["reason"] == "canceled"
    pair.link(B).emit(LinkTurnFailed(first.id, "MODEL_ERROR", "no model", "fake"))
    failed = await world.task_is(failing.id, TaskState.FAILED)
    assert failed.error is not None
    assert (failed.error.code, failed.error.message) == ("MODEL_ERROR", "no model")
    await pair.turn(A, 1, "oh")
    await world.delivered(2, pair.link(A))
    assert pair.typed(A) == [
        f"[A2A:reply:{canceled.id[:8]}:{B}] There is no reply: the request was canceled (canceled)",
        f"[A2A:reply:{failing.id[:8]}:{B}] There is no reply: MODEL_ERROR: no model",
    ]
    with pytest.raises(NotWaiting):
        await pair.reply(failing.id, "too late")


async def test_the_time_limit(world: World, pair: Pair) -> None:
    own, never = await pair.own(limit=60.0), await pair.own()
    await pair.ask(own)
    await world.delivered(1, pair.link(B))
    world.clock.advance(59.0)
    assert (await world.store.task(own.id)).status is TaskState.WORKING  # type: ignore[union-attr]
    world.clock.advance(2.0)
    late = await world.task_is(own.id, TaskState.FAILED)
    assert late.error is not None
    assert late.error.code == "TIMEOUT"
    await world.delivered(1, pair.link(A))
    assert "TIMEOUT: no reply came within 60 seconds" in pair.typed(A)[0]
    await pair.turn(A, 1, "a pity")
    world.clock.advance(replies.UNASKED_S)
    await world.task_is(never.id, TaskState.FAILED)
    await until(lambda: not world.manager._reply_broker._work)
    assert len(pair.typed(A)) == 1, "nobody was asked, so nobody is told"
    assert await world.store.replies() == []


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_clock_that_is_set_ends_no_reply(world: World, pair: Pair, jump: float) -> None:
    own = await pair.own(limit=7200.0)
    await pair.ask(own)
    await world.delivered(1, pair.link(B))
    world.clock.jump(jump)
    world.clock.advance(60.0)
    await until(lambda: not world.manager._reply_broker._work, "what was due is settled")
    assert (await world.store.task(own.id)).status is TaskState.WORKING  # type: ignore[union-attr]
    world.clock.sleep(7200.0)
    world.clock.advance(60.0)
    late = await world.task_is(own.id, TaskState.FAILED)
    assert late.error is not None
    assert late.error.code == "TIMEOUT"


async def test_the_caller_that_waits_gets_it_and_the_agent_is_not_told(world: World, pair: Pair) -> None:
    own = await pair.own(wait=True)
    await pair.ask(own)
    with world.manager.tasks.waiting(None, own):
        await pair.turn(B, 1, "42")
        await world.task_is(own.id, TaskState.COMPLETED)
        world.clock.advance(10 * replies.COLLECT_S)
        await until(lambda: not world.manager._reply_broker._work)
        assert pair.typed(A) == [], "the caller is still there"
    await world.manager.tasks.collected(own.id)
    world.clock.advance(10 * replies.COLLECT_S)
    await until(lambda: not world.manager._reply_broker._work)
    assert (pair.typed(A), await world.store.replies()) == ([], [])


async def test_the_caller_is_gone_so_the_agent_is_told(world: World, pair: Pair) -> None:
    own = await pair.own(wait=True)
    await pair.ask(own)
    await pair.turn(B, 1, "42")
    await world.task_is(own.id, TaskState.COMPLETED)
    assert pair.typed(A) == []
    await until(lambda: not world.manager._reply_broker._work)
    world.clock.advance(replies.COLLECT_S + 1)
    await world.delivered(1, pair.link(A))
    assert pair.typed(A) == [f"[A2A:reply:{own.id[:8]}:{B}] 42"]
    await world.manager.tasks.collected(own.id)


async def test_the_asker_does_not_want_it_any_more(world: World, pair: Pair) -> None:
    own = await pair.own()
    request = await pair.ask(own)
    assert (await world.manager.tasks.cancel(own.id)).status is TaskState.CANCELED
    await world.task_is(request.id, TaskState.CANCELED)
    with pytest.raises(TaskNotCancelable):
        await world.manager.tasks.cancel(own.id)
    assert (pair.typed(A), await world.store.replies()) == ([], [])


async def test_an_agent_that_is_removed_waits_for_nothing(world: World, pair: Pair) -> None:
    own, other = await pair.own(), await pair.own(B)
    await pair.ask(own)
    await world.manager.stop(A, remove=True)
    await world.task_is(own.id, TaskState.CANCELED)
    await world.manager.stop(B, remove=True)
    await world.task_is(other.id, TaskState.CANCELED)
    assert await world.store.replies() == []


# --- who may ---------------------------------------------------------------------------------------------------------


async def test_only_who_was_asked_replies(world: World, pair: Pair) -> None:
    await world.start()
    own = await pair.own()
    request = await pair.ask(own)
    for by in (C, A):
        with pytest.raises(Forbidden):
            await pair.reply(own.id, "I am B", by=by)
    with pytest.raises(TaskNotFound):
        await world.send(C, "x", metadata={"in_reply_to": own.id})
    with pytest.raises(TaskNotFound):
        await pair.reply("0" * 8, "x")
    with pytest.raises(InvalidRequest):
        await world.send(A, "x", metadata={"in_reply_to": 7})
    done = await world.send(A, "of a person", metadata={"in_reply_to": request.id})
    assert (done.id, done.metadata["reply"]["sender"]["tier"]) == (own.id, "claimed")


async def test_ambiguous_short_ids_are_refused_with_candidates(world: World, pair: Pair) -> None:
    own = await pair.own()
    twin = own.model_copy(update={"id": own.id[:-1] + ("0" if own.id[-1] != "0" else "1")})
    await world.store.commit(tasks=[twin])
    with pytest.raises(AmbiguousAddress) as caught:
        await pair.reply(own.id[:8], "x")
    assert caught.value.details["candidates"] == sorted([own.id, twin.id])


async def test_a_task_asks_once_and_is_its_own_agents(world: World, pair: Pair) -> None:
    await world.start()
    own = await pair.own()
    with pytest.raises(Forbidden):
        await pair.ask(own.model_copy(update={"agent_id": C}))
    await pair.ask(own)
    with pytest.raises(InvalidRequest):
        await pair.ask(own, C)
    foreign = await world.send(B, "x", metadata={**of("bob@elsewhere"), "sender_task_id": "elsewhere-1234"})
    assert foreign.metadata["sender_task_id"] == "elsewhere-1234", "of another host: it is only shown"


async def test_a_refused_request_leaves_the_task_for_another(world: World, pair: Pair) -> None:
    own = await pair.own()
    with pytest.raises(InvalidRequest):
        await world.manager.tasks.send(
            B, SendRequest(message=Message.of("x"), metadata={**of(A), "sender_task_id": own.id}, priority=9)
        )
    world.store.refuse = StoreError("full", reason="full")
    with pytest.raises(StoreError):
        await pair.ask(own)
    world.store.refuse = None
    await pair.ask(own)
    await pair.turn(B, 1, "yes")
    await world.task_is(own.id, TaskState.COMPLETED)


async def test_clients_do_not_make_tasks_look_like_replies(world: World, pair: Pair) -> None:
    task = await world.send(B, "x", metadata={"direction": "outgoing", "reply_to": "1" * 36, "reply": {}})
    assert task.metadata == {}


async def test_replies_that_are_awaited_are_bounded(world: World, pair: Pair) -> None:
    from synapsed.errors import QueueFull

    for _ in range(AWAITED_MAX):
        await pair.own()
    with pytest.raises(QueueFull):
        await pair.own()
    await pair.own(B)


# --- circles and loops -----------------------------------------------------------------------------------------------


async def test_a_wait_that_would_close_a_circle(world: World, pair: Pair) -> None:
    await world.start()

    async def send_and_wait(one: str, other: str) -> Task:
        request = SendRequest(message=Message.of("?"), metadata=of(one), wait=True)
        return await world.manager.tasks.send(other, request)

    with pytest.raises(WouldDeadlock):
        await send_and_wait(A, A)
    first = await send_and_wait(A, B)
    await send_and_wait(B, C)
    for waiter, waited in ((B, A), (C, A), (C, B)):
        with pytest.raises(WouldDeadlock) as caught:
            await send_and_wait(waiter, waited)
        assert caught.value.details["agents"][0] == waiter
    await send_and_wait(A, C)
    own = await pair.own(C)
    with pytest.raises(WouldDeadlock):
        await pair.ask(own, A)
    pair.link(B).submit()
    pair.link(B).end("done")
    await world.task_is(first.id, TaskState.COMPLETED)
    await send_and_wait(B, A)


async def test_who_is_asked_does_not_ask_back(world: World, pair: Pair) -> None:
    """While it works on the request; before, both may ask each other, since neither waits in its turn."""
    mine, yours, again = await pair.own(A), await pair.own(B), await pair.own(B)
    busy = await world.send(B, "a person's")
    await pair.ask(mine, B)
    await pair.ask(yours, A)
    await world.task_is(busy.id, TaskState.WORKING)
    await pair.turn(B, 1, "done")
    await world.delivered(2, pair.link(B))
    with pytest.raises(WouldDeadlock):
        await pair.ask(again, A)


async def test_a_stream_of_an_agent_that_waits(world: World, pair: Pair) -> None:
    task = await world.send(B, "a person's")
    with world.manager.tasks.waiting(A, task):
        other = await world.send(A, "another")
        with pytest.raises(WouldDeadlock), world.manager.tasks.waiting(B, other):
            pass
    with world.manager.tasks.waiting(B, other):
        pass
    with pytest.raises(WouldDeadlock), world.manager.tasks.waiting(B, task):
        pass


async def test_a_loop_stops_at_the_hop_limit(world: World, pair: Pair) -> None:
    await world.send(A, "a person's")
    agents = itertools.cycle([(A, B), (B, A)])
    hops = []
    for sender, receiver in itertools.islice(agents, 8):
        link = pair.link(receiver)
        before = len(link.deliveries)
        task = await world.send(receiver, "ping", metadata=of(sender))
        hops.append(task.metadata["hops"])
        await pair.turn(sender, len(pair.link(sender).deliveries), "pong")
        await world.delivered(before + 1, link)
    assert hops == list(range(1, 9))
    with pytest.raises(HopLimit):
        await world.send(B, "ping", metadata=of(A))
    with pytest.raises(HopLimit):
        await world.send(B, "ping", metadata={"hops": 9})
    for wrong in (-1, True, "1", 1.5):
        with pytest.raises(InvalidRequest):
            await world.send(B, "ping", metadata={"hops": wrong})


async def test_a_reply_keeps_the_count(world: World, pair: Pair) -> None:
    own = await pair.own()
    await pair.ask(own, hops=6)
    await pair.turn(B, 1, "so")
    await world.delivered(1, pair.link(A))
    assert (await world.send(B, "again", metadata=of(A))).metadata["hops"] == 7


async def test_one_elsewhere_is_asked(world: World, pair: Pair) -> None:
    """Its task is not in any mailbox here: what becomes of it is looked for."""
    own = await pair.own()
    given = {**of(A), "sender_task_id": own.id}
    task = Task(agent_id="external:far", message=Message.of("?"), metadata=given, created_at="2026", updated_at="2026")
    with world.manager.tasks.asking(task, wait=False) as reply:
        assert (task.metadata["hops"], task.metadata["response_expected"]) == (1, True)
        await world.store.commit(tasks=[task], reply=reply)
    world.clock.advance(5.0)
    await until(lambda: not world.manager._reply_broker._work)
    assert pair.typed(A) == []
    await world.store.commit(tasks=[transitions.completed(task, answer="from afar", exact=True, now=1.0).task])
    world.clock.advance(2.0)
    await world.delivered(1, pair.link(A))
    assert pair.typed(A) == [f"[A2A:reply:{own.id[:8]}:far] from afar"]
    done = await world.task_is(own.id, TaskState.COMPLETED)
    assert done.metadata["reply"]["sender"] == {"sender_id": "far", "verified": False, "tier": "external"}


# --- kills -----------------------------------------------------------------------------------------------------------


class Mortal:
    """A store of a daemon that is killed after so many commits."""

    def __init__(self, store: Any, commits: int) -> None:
        self._store = store
        self._left = commits
        self.dead = False

    async def lived(self, condition: Any) -> None:
        """Until it is so; raises StoreError where the daemon is dead before."""
        await until(lambda: self.dead or condition())
        if self.dead:
            raise StoreError("killed", reason="killed")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, **what: Any) -> Any:
        if self._left <= 0:
            self.dead = True
            raise StoreError("killed", reason="killed")
        self._left -= 1
        return await self._store.commit(**what)


async def _course(pair: Pair, mortal: Mortal, own: list[Task], *, explicit: bool) -> None:
    own.append(await pair.own())
    request = await pair.ask(own[0])
    await mortal.lived(lambda: pair.link(B).deliveries)
    if explicit:
        await pair.reply(own[0].id, "the reply")
    pair.link(B).submit()
    pair.link(B).end("the answer")
    await mortal.lived(lambda: pair.world.store._tasks[request.id].terminal)
    await mortal.lived(lambda: pair.link(A).deliveries)


@pytest.mark.slow
@pytest.mark.parametrize("explicit", [False, True], ids=["answer", "reply"])
@pytest.mark.parametrize("commits", one_each(range(12), lambda n: -1 if n % 2 else n))
async def test_a_kill_at_any_commit_loses_and_doubles_nothing(quiet_world: World, commits: int, explicit: bool) -> None:
    """The daemon is killed after so many commits of the exchange; the next one finds the programs and goes on."""
    world, pair, own = quiet_world, Pair(quiet_world), []
    await world.daemon()
    await pair.start()
    store: Any = world.store
    manager: Any = world.manager
    mortal = Mortal(store, commits)
    for one in (manager._reply_broker, manager.tasks, *(agent.turns for agent in manager._agents.values())):
        one._store = mortal
    finished = False
    try:
        await _course(pair, mortal, own, explicit=explicit)
        finished = True
    except StoreError:
        pass
    await manager.close(keep_agents=True)

    await world.daemon()
    links = {
        record.id: link for (record, _), link in zip(world.factory.launched, world.factory.links[-2:], strict=True)
    }
    for link in links.values():
        link.ready()
    open_replies = await store.replies()
    asked = bool(own) and any(task.agent_id == B for task in store._tasks.values())
    if open_replies and asked:
        await until(lambda: links[B].deliveries, "B goes on with its turn")
        if explicit:
            await pair.reply(own[0].id, "the reply")
        links[B].submit()
        links[B].end("the answer")
    if asked:
        await world.task_is(own[0].id, TaskState.COMPLETED)
        notices = [task for task in store._tasks.values() if task.metadata.get("reply_to") == own[0].id]
        assert len(notices) == 1, (finished, notices)
        done = await store.task(own[0].id)
        assert notices[0].message.text == done.answer
    assert [reply.state for reply in await store.replies()] == ([] if asked or not own else ["open"])


async def test_a_caller_that_waits_over_a_restart(quiet_world: World) -> None:
    """It has its time to come back, and is not told of twice."""
    world, pair = quiet_world, Pair(quiet_world)
    await world.daemon()
    await pair.start()
    own = await pair.own(wait=True)
    await pair.ask(own)
    await pair.turn(B, 1, "42")
    await world.task_is(own.id, TaskState.COMPLETED)
    await world.manager.close(keep_agents=True)
    world.clock.advance(100.0)
    await world.daemon()
    world.factory.links[-2].ready()
    world.clock.advance(replies.COLLECT_S - 2)
    await until(lambda: not world.manager._reply_broker._work)
    assert len(await world.store.replies()) == 1
    await world.manager.tasks.collected(own.id)
    assert await world.store.replies() == []


async def test_an_open_reply_survives_a_restart(quiet_world: World) -> None:
    world, pair = quiet_world, Pair(quiet_world)
    await world.daemon()
    await pair.start()
    own = await pair.own()
    await world.manager.close(keep_agents=True)
    await world.daemon()
    assert (await world.manager.tasks.find(own.id)).status is TaskState.WORKING
    done = await world.send(A, "late", metadata={"in_reply_to": own.id[:8]})
    assert (done.status, done.answer) == (TaskState.COMPLETED, "late")
