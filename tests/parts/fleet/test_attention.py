"""Who waits for a person on other hosts, as their records tell it."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from synapsectl.inbox.items import is_asked, table
from synapsectl.output import as_json
from synapsed.model.attention import AttentionItem
from synapsed.model.task import Message, Task
from synapsed_fleet.attention import Waiting, inbox
from synapsed_fleet.fleet_rows import KEY
from synapsed_fleet.host_record import WAITS_MAX, HostRecord, WaitRecord, digest, read, written

AT = "2026-01-01T00:00:00.000Z"
QUESTION = "may I remove it?"


class Tasks:
    """One task, which laptop has sent."""

    async def task(self, task_id: str) -> Task | None:
        return Task(
            id=task_id,
            agent_id="synapse-codex-1",
            message=Message.of("hello"),
            metadata={KEY: {"src": "laptop", "id": "aaaaaaaa-1"}},
            created_at=AT,
            updated_at=AT,
        )


def item(n: int = 1, **change: Any) -> AttentionItem:
    right = {"id": f"synapse-codex-1:{n}", "agent": "codex", "agent_id": "synapse-codex-1", "cwd": "/home/me/secret"}
    right |= {"kind": "permission", "question": QUESTION, "command": "rm -rf x", "since": AT, "prompt_id": "p1"}
    return AttentionItem.model_validate({**right, **change})


async def told(items: Sequence[AttentionItem], **config: Any) -> HostRecord:
    waiting = Waiting(Tasks(), lambda name: name != "private", **{"publish": True, "content": False, **config})
    waiting.source = lambda: items
    waits = await waiting.told()
    found = read(written(HostRecord(v=1, host="box", jwt="x", boot="1", n=1, waits=waits.items, more=waits.more)))
    assert found is not None
    return found


def on_laptop(record: HostRecord, state: str = "up") -> tuple[list[AttentionItem], list[Any]]:
    return inbox([record, HostRecord(v=1, host="laptop", jwt="x", boot="1", n=1)], lambda _: state, own="laptop")


async def test_who_waits_is_told_and_not_what_is_asked() -> None:
    record = await told([item(), item(2, agent="private")])
    assert not [secret for secret in (QUESTION, "rm -rf", "secret", "private") if secret in record.model_dump_json()]
    items, (said,) = on_laptop(record)
    assert [(one.agent, one.host, one.kind, one.since) for one in items] == [("codex@box", "box", "permission", AT)]
    assert "not told here" in items[0].question
    assert (said.name, said.items, said.left_out, said.error) == ("box", 1, 0, None)
    assert not is_asked(items[0].model_dump()), "it is answered there"


async def test_what_is_asked_is_told_where_the_host_says_so() -> None:
    items, _ = on_laptop(await told([item(question=QUESTION * 100)], content=True))
    assert items[0].question.startswith(QUESTION)
    assert len(items[0].question) <= 300


async def test_a_question_about_a_message_from_here_names_its_task_here() -> None:
    record = await told([item(task="there-0001", kind="question")])
    ((mine,), _) = on_laptop(record)
    assert mine.task == "aaaaaaaa-1"
    assert "synapsectl input aaaaaaaa" in mine.question
    ((others,), _) = inbox([record], lambda _: "up", own="attic")
    assert others.task is None


async def test_a_host_that_tells_nothing_or_is_away_is_named() -> None:
    _, (said,) = on_laptop(await told([item()], publish=False))
    assert said.error == "box does not tell who waits there"
    items, (said,) = on_laptop(await told([item()]), "away")
    assert (items, said.error, said.state.value) == ([], "box is away", "down")


async def test_of_many_the_oldest_are_told_and_the_rest_counted() -> None:
    items, (said,) = on_laptop(await told([item(n) for n in range(WAITS_MAX + 7)]))
    assert (len(items), said.left_out) == (WAITS_MAX, 7)


async def test_what_comes_or_goes_is_worth_a_record_at_once() -> None:
    one, two = await told([item()]), await told([item(), item(2)])
    assert digest([], one.waits) != digest([], two.waits)
    assert digest([], one.waits) != digest([], None)


WAIT = WaitRecord(id="a:1", agent="codex", kind="question", since=AT).model_dump()


@pytest.mark.parametrize(
    "change",
    [
        {"agent": "codex@laptop"},
        {"agent": "\x1b[2J"},
        {"id": "a\x1b"},
        {"id": ""},
        {"task": "\x07"},
        {"kind": 7},
        {"question": "x" * 301},
        {"src": "x" * 32},
    ],
)
def test_a_record_with_what_is_no_item_is_none(change: dict[str, Any]) -> None:
    document = {"v": 1, "host": "box", "jwt": "x", "boot": "1", "n": 1, "waits": [{**WAIT, **change}]}
    assert read(json.dumps(document).encode()) is None


def test_hostile_words_are_shown_harmless() -> None:
    hostile = {"question": "\x1b]52;c;aGk=\x07\u202e\x9b2J", "since": "9999-99-99T99:99:99Z", "kind": "question"}
    document = {
        "v": 1,
        "host": "box",
        "jwt": "x",
        "boot": "1",
        "n": 1,
        "waits": [{**WAIT, **hostile}, {**WAIT, "kind": "\x1b"}],
    }
    record = read(json.dumps(document).encode())
    assert record is not None
    items, (said,) = on_laptop(record)
    assert (len(items), said.left_out) == (1, 1), "a kind that is not known here is left out"
    shown = [one.model_dump(mode="json") for one in items]
    for row in table(shown):
        for cell in row:
            assert str(cell).isprintable() or cell == hostile["question"], "the table makes each cell harmless"
    assert as_json(shown).isprintable()
