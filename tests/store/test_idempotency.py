"""Messages that may come more than once are one task."""

import pytest

from synapsed.errors import InvalidRequest
from synapsed.interfaces import SendRequest
from synapsed.model.task import Message
from synapsed.store.idempotency import Idempotency, task_id_of
from tests.fakes.clock import FakeClock
from tests.fakes.store import MemoryStore
from tests.store.samples import a_task


@pytest.mark.parametrize("text", ["small", 'large “quoted" \\ and\n\x7f\u2028 ' * 10_000])
async def test_the_id_of_a_large_message_is_made_of_the_same(text: str) -> None:
    """It is made piece by piece; how must not show."""
    request = SendRequest(message=Message.of(text), named=True)
    async with Idempotency(MemoryStore(FakeClock())).once(request, "a") as (task_id, known):
        assert (task_id, known) == (task_id_of(request, "a"), None)


@pytest.mark.parametrize(
    ("to", "text", "refused"),
    [("a", "one", None), ("b", "one", "another agent, a:"), ("a", "two", "another message:")],
    ids=["the same", "another agent", "another message"],
)
async def test_a_key_stands_for_one_message_to_one_agent(to: str, text: str, refused: str | None) -> None:
    """Else the answer to the first would be taken for that to the second, which nobody ever got."""
    store = MemoryStore(FakeClock())
    idempotency = Idempotency(store)
    request = SendRequest(message=Message.of("one"), key="k")
    async with idempotency.once(request, "a") as (task_id, known):
        assert known is None
        first = a_task(id=task_id, agent_id="a", message=request.message)
        await store.commit(tasks=[first])
    again = idempotency.once(SendRequest(message=Message.of(text), key="k"), to)
    if refused is None:
        async with again as (_, known):
            assert known == first
        return
    with pytest.raises(InvalidRequest) as told:
        async with again:
            raise AssertionError("it was taken")
    assert f"stands for task {task_id}, which has {refused}" in told.value.message
    assert told.value.details == {"field": "Idempotency-Key", "task": task_id, "agent": "a"}
