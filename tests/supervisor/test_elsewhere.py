"""Agents elsewhere: found after our own, and their messages and tasks handed on."""

from dataclasses import replace
from typing import Any

import pytest

from synapsed.api.problems import problem
from synapsed.errors import InvalidRequest, NotKnownYet, TaskNotCancelable, UnknownAgent
from synapsed.interfaces import PERSON, OutboundQuestion, SendRequest
from synapsed.model.events import Origin
from synapsed.model.external import external_id
from synapsed.model.sender import KEY
from synapsed.model.task import Message, Task, TaskState
from synapsed.store.idempotency import task_id_of
from tests.support.world import World

AGENT = "synapse-fake-8190"


class Far:
    """A carrier that knows `far` and `far@host`, and writes down what it is asked."""

    hint = ""

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls: list[tuple[Any, ...]] = []

    def find(self, address: str) -> str | None:
        return {"far": external_id("far"), "far@host": "far@host"}.get(address)

    def carries(self, task: Task) -> bool:
        return True

    async def send(
        self, alias: str, request: SendRequest, asking: OutboundQuestion, *, sender: str | None = None
    ) -> Task:
        self.calls.append(("send", alias, request.message.text, sender))
        task = Task(agent_id=external_id(alias), message=request.message, created_at="", updated_at="")
        with asking(task, wait=False) as record:
            assert record is None
        await self.world.store.commit(tasks=[task])
        return task

    async def cancel(self, task: Task) -> Task:
        self.calls.append(("cancel", task.id))
        return task

    async def answer(self, task: Task, message: Message, prompt_id: str | None = None, origin: Origin = PERSON) -> Task:
        self.calls.append(("answer", task.id, message.text, prompt_id))
        return task


@pytest.fixture
async def far(quiet_world: World) -> Far:
    far = Far(quiet_world)
    quiet_world.carriers = {"elsewhere": far}
    await quiet_world.daemon()
    return far


def said(text: str, **metadata: Any) -> SendRequest:
    return SendRequest(message=Message.of(text), metadata=metadata)


async def test_our_own_come_first(far: Far, quiet_world: World) -> None:
    directory = quiet_world.manager.directory
    assert directory.resolve("far") == "external:far"
    await quiet_world.start(name="far")
    assert directory.resolve("far") == AGENT
    with pytest.raises(UnknownAgent):
        directory.resolve("nobody")


async def test_what_is_asked_of_a_task_there_is_handed_on(far: Far, quiet_world: World) -> None:
    tasks = quiet_world.manager.tasks
    task = await tasks.send("external:far", said("hi"))
    await tasks.provide_input(task.id, "yes", "p1")
    await tasks.cancel(task.id[:8])
    assert far.calls == [("send", "far", "hi", None), ("answer", task.id, "yes", "p1"), ("cancel", task.id)]


async def test_another_host_is_told_who_of_ours_sends(far: Far, quiet_world: World) -> None:
    await quiet_world.start(name="bob")
    tasks = quiet_world.manager.tasks
    await tasks.send("far@host", said("by an agent", **{KEY: {"sender_id": AGENT, "tier": "agent"}}))
    await tasks.send("far@host", said("by the person"))
    assert [call[3] for call in far.calls] == ["bob", None]
    await tasks.send("external:far", said("by an agent", **{KEY: {"sender_id": AGENT, "tier": "agent"}}))
    assert far.calls[-1][3] is None


async def test_without_any_there_is_nobody_elsewhere(world: World) -> None:
    with pytest.raises(UnknownAgent, match="elsewhere"):
        await world.manager.tasks.send("external:far", said("hi"))


async def test_a_task_whose_part_is_not_there_stays_and_says_so(world: World) -> None:
    """It is found as it is by the next daemon, can be canceled, and takes no answer."""
    far = Task(agent_id="external:far", message=Message.of("hi"), created_at="", updated_at="")
    by_other = {"external": {"via": "pigeons"}}
    other = Task(agent_id="far@host", message=Message.of("hi"), created_at="", updated_at="", metadata=by_other)
    await world.store.commit(tasks=[far, other])
    await world.daemon()
    tasks = world.manager.tasks
    for task, part in ((far, "elsewhere"), (other, "pigeons")):
        found = await tasks.find(task.id)
        assert found.waits_behind is not None
        assert (found.status, found.waits_behind.held) == (TaskState.SUBMITTED, f"part {part} is not there")
        with pytest.raises(UnknownAgent, match=f"is reached by the part {part}, which is not there"):
            await tasks.provide_input(task.id, "yes")
        assert (await tasks.cancel(task.id)).status is TaskState.CANCELED
        with pytest.raises(TaskNotCancelable):
            await tasks.cancel(task.id)
        assert (await tasks.find(task.id)).waits_behind is None


@pytest.mark.parametrize(
    ("address", "part"),
    [("any:review", "fleet"), ("@any:review", "fleet"), ("bob@box", "elsewhere"), ("external:far", "elsewhere")],
)
async def test_an_address_of_a_part_that_is_not_there(world: World, address: str, part: str) -> None:
    with pytest.raises(UnknownAgent, match=f"is reached by the part {part}, which is not there"):
        world.manager.directory.resolve(address)


class Reaching(Far):
    """One that reaches `bob@both` and one host more, and has sent the tasks that name it."""

    def __init__(self, world: World, name: str, host: str, hint: str = "") -> None:
        super().__init__(world)
        self.name = name
        self.known = ("bob@both", f"bob@{host}")
        self.hint = hint

    def find(self, address: str) -> str | None:
        if address in self.known:
            return address
        if not self.hint:
            raise UnknownAgent(f"{self.name} knows no {address}", host="nowhere")
        return None

    def carries(self, task: Task) -> bool:
        return task.metadata.get("external", {}).get("via") == self.name


async def test_the_last_of_those_that_reach_a_host_does(world: World) -> None:
    first, last = Reaching(world, "first", "one"), Reaching(world, "last", "two", hint="'last hosts' has others")
    world.carriers = {"first": first, "last": last}
    await world.daemon()
    tasks = world.manager.tasks
    for address in ("bob@one", "bob@both", "bob@two"):
        assert world.manager.directory.resolve(address) == address
        await tasks.send(address, said(address))
    assert [call[1] for call in first.calls] == ["bob@one"]
    assert [call[1] for call in last.calls] == ["bob@both", "bob@two"]
    with pytest.raises(UnknownAgent) as refused:
        world.manager.directory.resolve("bob@nowhere")
    assert refused.value.message == "first knows no bob@nowhere; 'last hosts' has others"
    assert refused.value.details == {"host": "nowhere"}


class Beginning(Reaching):
    """One that does not know all of its hosts yet."""

    def find(self, address: str) -> str | None:
        if address not in self.known:
            raise NotKnownYet(f"{address} is not known yet")
        return address


async def test_a_host_that_one_of_them_may_know_soon_is_asked_for_again(world: World) -> None:
    """Whom another one reaches is reached meanwhile."""
    first, last = Reaching(world, "first", "one"), Beginning(world, "last", "two")
    world.carriers = {"first": first, "last": last}
    await world.daemon()
    for address in ("bob@one", "bob@two"):
        assert world.manager.directory.resolve(address) == address
        await world.manager.tasks.send(address, said(address))
    assert [call[1] for call in (*first.calls, *last.calls)] == ["bob@one", "bob@two"]
    with pytest.raises(NotKnownYet, match="bob@nowhere is not known yet") as refused:
        world.manager.directory.resolve("bob@nowhere")
    answer = problem(refused.value)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")


async def test_what_was_taken_under_a_key_is_known_before_its_host_is(world: World) -> None:
    """It is asked for by whoever did not hear the answer, while the daemon is coming up."""
    world.carriers = {"last": Beginning(world, "last", "two")}
    await world.daemon()
    tasks, request = world.manager.tasks, SendRequest(message=Message.of("hi"), key="k")
    task_id = task_id_of(request, "")
    taken = Task(id=task_id, agent_id="bob@later", message=request.message, created_at="", updated_at="")
    await world.store.commit(tasks=[taken])
    for address in ("bob@later", "@bob@later"):
        found = await tasks.sent_before(address, request)
        assert found is not None
        assert found.id == task_id
    assert await tasks.sent_before("bob@other", request) is None
    assert await tasks.sent_before("bob@later", replace(request, key="another")) is None
    assert await tasks.sent_before("bob@later", replace(request, key=None)) is None
    somebody = {KEY: {"sender_id": "synapse-x-8100", "tier": "agent"}}
    assert await tasks.sent_before("bob@later", replace(request, metadata=somebody)) is None, "keys are their senders'"
    with pytest.raises(InvalidRequest, match="another message"):
        await tasks.sent_before("bob@later", replace(request, message=Message.of("ho")))


async def test_a_task_stays_with_the_carrier_that_it_began_with(world: World) -> None:
    """Also what answers it, where another carrier has come to reach its host."""
    first, last = Reaching(world, "first", "one"), Reaching(world, "last", "two", hint="'last hosts' has others")
    world.carriers = {"first": first, "last": last}
    await world.daemon()
    by_first = {"external": {"via": "first"}}
    task = Task(agent_id="bob@both", message=Message.of("hi"), created_at="", updated_at="", metadata=by_first)
    await world.store.commit(tasks=[task])
    tasks = world.manager.tasks
    await tasks.send("bob@both", SendRequest(message=Message.of("yes"), task_id=task.id))
    await tasks.provide_input(task.id, "no")
    await tasks.cancel(task.id)
    assert [call[0] for call in first.calls] == ["send", "answer", "cancel"]
    assert last.calls == []
