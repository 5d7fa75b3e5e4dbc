"""Messages that may come more than once are one task."""

import pytest

from synapsed.interfaces import SendRequest
from synapsed.model.task import Message
from synapsed.store.idempotency import Idempotency, task_id_of
from tests.fakes.clock import FakeClock
from tests.fakes.store import MemoryStore


@pytest.mark.parametrize("text", ["small", 'large “quoted" \\ and\n\x7f\u2028 ' * 10_000])
async def test_the_id_of_a_large_message_is_made_of_the_same(text: str) -> None:
    """It is made piece by piece; how must not show."""
    request = SendRequest(message=Message.of(text), named=True)
    async with Idempotency(MemoryStore(FakeClock())).once(request, "a") as (task_id, known):
        assert (task_id, known) == (task_id_of(request, "a"), None)
