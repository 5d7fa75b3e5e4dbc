"""What agents elsewhere ask, in the log and in the inbox: opened once, closed once, over kills of the daemon."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from synapsed.interfaces import NewEvent
from synapsed.model.events import AttentionChanged, Event, InputAnswered, InputRequired, TaskStatusChanged
from synapsed.model.task import Message, Prompt, Task, TaskState
from synapsed.parts.attention.inbox import PersonInbox
from synapsed.parts.elsewhere.questions import AskedElsewhere, ElsewhereAsking, follows
from synapsed.tasks import transitions
from tests.fakes.store import MemoryStore
from tests.support.world import World

FAR = "external:far"
COLOUR = Prompt(prompt_id="t:1", type="question", prompt="Which colour?", own_words=True)
SHAPE = Prompt(prompt_id="t:2", type="question", prompt="Which shape?", own_words=True)
SIGN_IN = Prompt(prompt_id="t:3", type="login", prompt="Sign in at https://x.example", own_words=True)


@dataclass
class Log:
    """Events as they come, and what followed from them."""

    agent: str = FAR
    open: dict[str, AskedElsewhere] = field(default_factory=dict)
    count: int = 0

    def tell(self, data: Any, task: str = "t") -> list[NewEvent]:
        self.count += 1
        told = follows(Event(id=self.count, at=0.0, agent_id=self.agent, data=data, task_id=task), self.open)
        if told is None:
            return []
        self.open = dict(told[1])
        return list(told[0])


def states(events: Sequence[NewEvent]) -> list[tuple[str, str]]:
    return [(event.data.state, event.data.kind) for event in events if isinstance(event.data, AttentionChanged)]


def asks(prompt: Prompt) -> TaskStatusChanged:
    state = TaskState.AUTH_REQUIRED if prompt.type == "login" else TaskState.INPUT_REQUIRED
    return TaskStatusChanged(state=state, prompt=prompt)


WORKS = TaskStatusChanged(state=TaskState.WORKING)


def test_a_question_is_opened_once_and_closed_with_its_answer() -> None:
    log = Log()
    begun = log.tell(asks(COLOUR))
    assert isinstance(begun[0].data, InputRequired)
    assert (states(begun), log.tell(asks(COLOUR))) == ([("opened", "question")], [])
    given = InputAnswered(prompt_id="t:1", answer="red", by="person", who="device:1", where="http")
    (over,) = log.tell(given)
    assert isinstance(over.data, AttentionChanged)
    assert (over.data.state, over.data.who, over.data.where) == ("answered", "device:1", "http")
    assert log.tell(WORKS) == []
    assert (states(log.tell(asks(COLOUR))), log.open != {}) == ([("opened", "question")], True), "it asks again"


def test_what_is_answered_over_there_is_gone() -> None:
    log = Log()
    assert states(log.tell(asks(SIGN_IN))) == [("opened", "sign_in")]
    assert states(log.tell(WORKS)) == [("gone", "sign_in")]
    assert (log.tell(TaskStatusChanged(state=TaskState.COMPLETED)), log.open) == ([], {})


def test_another_question_takes_the_place_of_one() -> None:
    log = Log()
    log.tell(asks(COLOUR))
    assert states(log.tell(asks(SHAPE))) == [("gone", "question"), ("opened", "question")]
    assert states(log.tell(TaskStatusChanged(state=TaskState.CANCELED))) == [("gone", "question")]


def test_more_that_is_said_of_a_question_is_told_without_opening_it_again() -> None:
    log = Log()
    log.tell(asks(COLOUR))
    more = COLOUR.model_copy(update={"command": "paint"})
    (told,) = log.tell(asks(more))
    assert told.data == InputRequired(prompt=more)
    assert log.tell(asks(more)) == []
    log.open = {"t": log.open["t"].model_copy(update={"said": ""})}
    assert [type(event.data) for event in log.tell(asks(more))] == [InputRequired], "as an older daemon kept it"


def test_tasks_are_told_apart() -> None:
    log = Log()
    log.tell(asks(COLOUR), "one")
    log.tell(asks(SHAPE), "two")
    assert states(log.tell(WORKS, "one")) == [("gone", "question")]
    assert list(log.open) == ["two"]


@pytest.mark.parametrize("agent", ["synapse-fake-8190", "claude@box", "any:build"])
def test_whose_question_stands_in_another_inbox_is_not_told_here(agent: str) -> None:
    assert Log(agent=agent).tell(asks(COLOUR)) == []


# --- kept ------------------------------------------------------------------------------------------------------------


def task_of(task_id: str = "task-1") -> Task:
    now = "2026-01-01T00:00:00.000Z"
    return Task(id=task_id, agent_id=FAR, message=Message.of("hi"), created_at=now, updated_at=now)


async def put(store: MemoryStore, commit: transitions.Commit) -> Task:
    await store.commit(events=commit.events, tasks=[commit.task], turn_ended=commit.turn_ended)
    return commit.task


def told(store: MemoryStore) -> list[str]:
    return [event.data.state for event in store.events.all if isinstance(event.data, AttentionChanged)]


async def test_a_daemon_that_is_killed_at_any_commit_tells_it_once() -> None:
    store = MemoryStore()
    followed = ElsewhereAsking(store)
    await followed.restore()
    task = await put(store, transitions.accepted(task_of()))
    task = await put(store, transitions.waiting(task, prompt=COLOUR, now=1.0))
    followed = ElsewhereAsking(store)  # the one before was killed before it looked
    await followed.restore()
    await followed.catch_up()
    assert told(store) == ["opened"]
    again = ElsewhereAsking(store)
    await again.restore()
    await again.catch_up()
    assert told(store) == ["opened"]
    await put(store, transitions.working_again(task, now=2.0))
    last = ElsewhereAsking(store)
    await last.restore()
    await last.catch_up()
    assert told(store) == ["opened", "gone"]


async def test_what_was_asked_before_there_was_such_a_thing_is_told() -> None:
    store = MemoryStore()
    task = await put(store, transitions.accepted(task_of()))
    await put(store, transitions.waiting(task, prompt=COLOUR, now=1.0))
    followed = ElsewhereAsking(store)
    await followed.restore()
    await followed.catch_up()
    assert told(store) == ["opened"]


# --- in the inbox ----------------------------------------------------------------------------------------------------


async def test_it_stands_in_the_inbox_and_stays_when_the_daemon_comes_back(tmp_path) -> None:
    world = World(tmp_path)
    await world.daemon()

    async def inbox() -> PersonInbox:
        one = PersonInbox(
            directory=world.manager.directory,
            terminals=world.manager.terminals,
            store=world.store,
            clock=world.clock,
            timers=world.clock,
        )
        await one.restore()
        return one

    first, followed = await inbox(), ElsewhereAsking(world.store)
    await followed.restore()
    task = await put(world.store, transitions.accepted(task_of()))
    task = await put(world.store, transitions.waiting(task, prompt=COLOUR, now=1.0))
    await followed.catch_up()
    await first._keeper.catch_up()
    for box in (first, await inbox()):
        (item,) = box.items()
        assert (item.agent, item.kind, item.question, item.task) == ("far", "question", "Which colour?", task.id)
        assert (item.prompt_id, item.own_words, item.terminal, item.looked_at) == ("t:1", True, False, False)
        assert box.get(item.id) is not None
    given = InputAnswered(prompt_id="t:1", answer="red", by="person", where="control")
    await world.store.commit(events=[NewEvent.of(task, given)])
    await followed.catch_up()
    await first._keeper.catch_up()
    assert (first.items(), (await inbox()).items()) == ([], [])
    assert first.outcome(item.id) == {"state": "answered", "by": "person", "who": None, "where": "control"}
    await world.close()
