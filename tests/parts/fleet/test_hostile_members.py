"""A member whose key is right and whose words are not: nothing that it says stops the mail, or is done by halves."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.model.task import TaskState
from synapsed_fleet import streams
from synapsed_fleet.names import MailKind
from tests.parts.fleet.world import World

DEEP = b'{"task":' * 3000 + b"1" + b"}" * 3000
BODIES: list[bytes] = [
    b"",
    b"null",
    b"[]",
    b"7",
    b'"x"',
    b"\xff\xfe\x00",
    b"{}",
    DEEP,
    b'{"tenant": "codex"}',
    b'{"tenant": "codex", "message": 7}',
    b'{"tenant": ["codex"], "message": {}}',
    b'{"tenant": "codex", "message": {"messageId": "1", "role": "ROLE_USER", "parts": []}}',
    b'{"tenant": "codex", "message": {"messageId": "1", "role": 99, "parts": [{"text": 1}], "metadata": 3}}',
    b'{"tenant": "codex", "message": {"messageId": "1", "parts": [{"raw": "!"}], "metadata": {"synapsed": 1}}}',
    (
        b'{"tenant": "codex", "message": {"messageId": "1", "parts": [{"text": "a"}], '
        b'"metadata": {"synapsed": {"priority": 1e400}}}}'
    ),
    b'{"task": null}',
    b'{"task": {"id": 1, "status": 2}}',
    b'{"task": {"id": "x", "status": {"state": "TASK_STATE_NONE"}, "artifacts": [1, 2]}}',
    b'{"task": {"id": "x", "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "never"}, "artifacts": {}}}',
    b'{"gone": false}',
    b'{"ids": "abc"}',
    b'{"ids": [1]}',
    b'{"ids": ["../..", "", "/", "x/y", "x/-1", "x/99999999999999999999999999"]}',
    b'{"ids": ["aaaaaaaa"], "refused": {"aaaaaaaa": {"code": 1}, "b": 7}}',
    b'{"do": 1}',
    b'{"do": "tell", "tasks": [null]}',
    b'{"do": "tell", "tasks": ["x", "x"]}',
    b'{"do": "unknown", "tasks": {"a": 1}}',
    b'{"do": "unknown", "tasks": ["x"]}',
    b'{"do": "cancel"}',
    b'{"do": "cancel", "task": "\\u0000"}',
    b'{"do": "cancel", "task": "\\ud800"}',
    b'{"do": "cancel", "task": "aaaaaaaa/999999999999"}',
    b'{"do": "cancel", "task": "aaaaaaaa/9999999999999"}',
    b'{"ids": ["aaaaaaaa/999999999999"]}',
    (
        b'{"do": "answer", "task": "aaaaaaaa", "message": {"role": "user", '
        b'"parts": [{"type": "text", "text": "\\ud800"}]}}'
    ),
    b'{"tenant": "codex", "message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "\\ud800"}]}}',
    b'{"tenant": "codex", "message": {"messageId": "\\ud800", "role": "ROLE_USER", "parts": [{"text": "a"}]}}',
    b'{"tenant": "\\ud800", "message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "a"}]}}',
    b'{"do": "answer", "task": "x", "message": {"role": "god"}}',
    b'{"do": "answer", "task": "x", "message": {"parts": [{"type": "text", "text": ""}]}, "prompt_id": 1}',
]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    yield made
    await made.close()


@pytest.mark.parametrize("kind", list(MailKind))
async def test_whatever_a_member_signs_the_mail_goes_on(world: World, kind: MailKind) -> None:
    laptop, box = await world.host("laptop"), await world.host("box")
    for n, body in enumerate(BODIES):
        named = f"{kind}-aaaaaaaa-{n}" + ("/1" if kind is MailKind.UPDATE else "")
        said: Any = laptop.outgoing.sign(f"syn.to.box.laptop.{kind}", named, body)
        await laptop.wire.publish(said)
        given = await box.wire.next(streams.IN, "box", wait=0)
        assert given is not None
        await box.incoming.take(given)
        assert world.broker.streams[streams.IN].messages == [], body
    assert await box.store.open_tasks() == [] or kind is MailKind.MESSAGE
    sent = await laptop.send("codex@box", "hello", key="after")
    await world.rest()
    told = await laptop.store.task(sent.id)
    assert told is not None
    assert told.status is TaskState.COMPLETED
