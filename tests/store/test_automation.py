"""What the store keeps of rules, webhooks and moods, asked of the real one and of the fake."""

from collections.abc import AsyncIterator

import pytest

from synapsed.model.records import FollowerState
from synapsed.model.task import EXCERPT_END_MAX, DataPart, Message, Part, TextPart
from synapsed.store.store import SqliteStore
from tests.fakes.store import MemoryStore
from tests.store.conftest import OpenStore
from tests.store.samples import Hands, a_task, news


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, hands: Hands, open_store: OpenStore) -> AsyncIterator:
    store = await open_store() if request.param == "sqlite" else MemoryStore(hands)
    yield store
    await store.close()


async def test_followers_come_back(store: SqliteStore | MemoryStore) -> None:
    assert await store.follower("rules") is None
    await store.keep_follower("rules", FollowerState(cursor=3, partly=("a",)), events=[news()])
    assert await store.follower("rules") == FollowerState(cursor=3, partly=("a",))
    assert store.events.last_id == 1


async def test_followers_go_together(store: SqliteStore | MemoryStore) -> None:
    one, other = FollowerState(cursor=3, secret='{"at": 1.0}'), FollowerState(cursor=2)
    await store.keep_follower("moods", one, others={"mood:a": other, "mood:b": one})
    assert [await store.follower(name) for name in ("moods", "mood:a", "mood:b")] == [one, other, one]
    await store.forget_follower("mood:a")
    await store.forget_follower("mood:a")
    assert [await store.follower(name) for name in ("moods", "mood:a", "mood:b")] == [one, None, one]


MESSAGES = [
    [TextPart(text="hello")],
    [TextPart(text="one"), DataPart(data={"text": "x"}), TextPart(text="two " * 400), TextPart(text="")],
    [TextPart(text=f"begin {'x' * 300_000} end"), TextPart(text=f"again {'y' * 3000} over")],
    [TextPart(text="é疲れた" * 100_000)],
    [TextPart(text=f"part {number}") for number in range(60)],
    [DataPart(data={"large": "z" * 300_000})],
]


@pytest.mark.parametrize("parts", MESSAGES, ids=range(len(MESSAGES)))
@pytest.mark.parametrize("recent", [True, False], ids=["recent", "read"])
async def test_what_was_said(
    open_store: OpenStore, hands: Hands, monkeypatch: pytest.MonkeyPatch, parts: list[Part], *, recent: bool
) -> None:
    """The same from memory, from the database, and of the fake."""
    task = a_task(1, message=Message(parts=parts), metadata={"sender": "x"}, priority=3)
    store = await open_store()
    await store.commit(tasks=[task])
    if not recent:
        await store.close()
        store = await open_store()
    fake = MemoryStore(hands)
    await fake.commit(tasks=[task])
    said = await store.said(task.id)
    assert said == await fake.said(task.id)
    assert said is not None
    assert (said.metadata, said.priority) == ({"sender": "x"}, 3)
    assert len(said.text) <= 2 * EXCERPT_END_MAX + 1
    assert await store.said("no such task") is None


async def test_a_secret_of_a_follower_is_not_in_the_file(open_store: OpenStore, tmp_path) -> None:
    store = await open_store()
    await store.keep_follower("mood:a", FollowerState(cursor=1, secret='{"sketch": [4711]}'))
    await store.close()
    files = [path for path in (tmp_path / "state").iterdir() if path.name.startswith("synapsed.db")]
    assert files
    for secret in (b"sketch", b"4711"):
        assert not [path.name for path in files if secret in path.read_bytes()]
