"""Full text over what was said and done: what is found, what is not in it, what becomes of it over a kill."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from synapsed.clock import iso
from synapsed.config.paths import Paths
from synapsed.errors import Busy, InvalidRequest, StoreError
from synapsed.interfaces import NewEvent
from synapsed.kernel import Kernel
from synapsed.model.events import EventData, TaskStatusChanged, TokensUsed, ToolExecution, TurnSeen
from synapsed.model.sender import KEY, Sender, Tier
from synapsed.model.task import Artifact, Message, Task, TaskError, TaskState, TextPart
from synapsed.parts.config import config_with
from synapsed.parts.history import indexing, searching, service
from synapsed.parts.history.answers import HistoryItem
from synapsed.parts.history.face import FACE
from synapsed.parts.history.interface import HistoryFilter
from synapsed.parts.history.service import SqliteHistory
from synapsed.parts.history.service import opened as opened_part
from synapsed.parts.history.texts import READ_MAX, TEXT_MAX
from synapsed.store.store import SqliteStore
from tests.store.conftest import OpenStore
from tests.store.samples import DEADLINE, Hands, a_task
from tests.support.secrets import planted

CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"
OpenHistory = Callable[..., Awaitable[SqliteHistory]]


@pytest.fixture
async def store(open_store: OpenStore) -> SqliteStore:
    return await open_store()


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[OpenHistory]:
    """Opens the history of a store; all are closed in the end."""
    found: list[SqliteHistory] = []

    async def opened(store: SqliteStore) -> SqliteHistory:
        state = tmp_path / "state"
        found.append(await SqliteHistory(state / "synapsed.db", state / "history.db", store.events).open())
        return found[-1]

    yield opened
    for history in found:
        await history.close()


@pytest.fixture
async def history(store: SqliteStore, opened: OpenHistory) -> SqliteHistory:
    return await opened(store)


async def said(store: SqliteStore, message: str, answer: str | None = None, **fields: Any) -> Task:
    """A task with its events, as the supervisor writes them; over, where there is an `answer`."""
    task = a_task(**({"message": Message.of(message)} | fields))
    await store.commit(tasks=[task], events=[NewEvent.of(task, TaskStatusChanged(state=TaskState.SUBMITTED))])
    return task if answer is None else await answered(store, task, answer)


async def answered(store: SqliteStore, task: Task, *answer: str, state: TaskState = TaskState.COMPLETED) -> Task:
    artifacts = [
        Artifact.answer(answer[0]),
        *(Artifact.block(n, parts=[TextPart(text=a)]) for n, a in enumerate(answer[1:], 1)),
    ]
    task = task.model_copy(update={"status": state, "artifacts": artifacts})
    await store.commit(tasks=[task], events=[NewEvent.of(task, TaskStatusChanged(state=state))])
    return task


async def told(store: SqliteStore, data: EventData, agent: str = CLAUDE, task: Task | None = None) -> None:
    await store.commit(events=[NewEvent(agent, data) if task is None else NewEvent.of(task, data)])


async def found(history: SqliteHistory, query: str = "", **which: Any) -> list[HistoryItem]:
    """All pages of it, once the newest events are in it."""
    items: list[HistoryItem] = []
    before: int | None = None
    async with asyncio.timeout(DEADLINE):
        while True:
            page = await history.search(HistoryFilter(query=query, before=before, **which))
            if not page.complete:
                continue
            items += page.items
            if (before := page.next) is None:
                return items


async def texts(history: SqliteHistory, query: str = "", **which: Any) -> list[str | None]:
    return [item.text for item in await found(history, query, whole=True, **which)]


@contextmanager
def raw_file(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, autocommit=True)) as connection:
        yield connection


async def test_messages_answers_and_tool_calls_are_found(store: SqliteStore, history: SqliteHistory) -> None:
    task = await said(store, "Why does the parser fail?")
    await told(store, ToolExecution(tool_name="shell", status="started", input={"command": "pytest -x"}), task=task)
    done = ToolExecution(
        tool_name="shell", status="completed", input={"command": "pytest -x"}, output={"text": "1 failed: parser"}
    )
    await told(store, done, task=task)
    await answered(store, task, "It reads past the end.")
    items = await found(history, whole=True)
    assert [(item.kind, item.text) for item in items] == [
        ("answer", "It reads past the end."),
        ("tool", "shell\ncommand: pytest -x\n1 failed: parser"),
        ("message", "Why does the parser fail?"),
    ]
    assert [item.by for item in items] == [CLAUDE, CLAUDE, None]
    assert [item.state for item in items] == ["completed", "completed", None]
    assert {(item.task, item.context, item.thread) for item in items} == {(task.id, task.context_id, task.context_id)}
    assert items[1].tool == "shell"
    assert [item.kind for item in await found(history, "parser")] == ["tool", "message"]
    assert [item.kind for item in await found(history, "PARSER fail")] == ["tool", "message"]
    assert [item.kind for item in await found(history, '"parser fail"')] == ["message"]
    assert await found(history, "parser nothing") == []


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("議事録の要約を作成してください", ["議事録", "要約", "録", "要約 作成", "作成してください", "\u8981\u7d04を"]),
        ("ガイドを読む", ["ガイド", "か\u3099イド".replace("か", "カ"), "読む"]),
        ("Grüße aus Köln", ["köln", "GRÜSSE"[:3], "ö"]),
        ("a 100% sure_thing \\ here", ["100%", "0%", "e_t", "\\", "a"]),
    ],
)
async def test_words_of_any_length_and_language(
    store: SqliteStore, history: SqliteHistory, text: str, queries: list[str]
) -> None:
    await said(store, text)
    await said(store, "zzz")
    for query in queries:
        assert [message.startswith(text[:2]) for message in await texts(history, query) if message] == [True], query


@pytest.mark.parametrize(
    "query",
    [
        '"', '""', '"""', '*', "a*", "^abc", "NEAR(", "NEAR(abc def, 2)", "abc AND", "abc OR def", "NOT abc", "(", ")",
        "text : abc", "{text} : abc", "-abc", "abc\0def", "'; DROP TABLE docs; --", "%", "_", "\\", "%%%", "___",
        "\ud7ff\U0010ffff", "\u202eabc", "abc\n\ndef", "+ abc", "x" * 1000,
        " ".join(f"abc{n}" for n in range(32)),
    ],
)  # fmt: skip
async def test_no_query_is_taken_for_more_than_words(store: SqliteStore, history: SqliteHistory, query: str) -> None:
    await said(store, "nothing of this kind")
    assert await texts(history, query) in ([], ["nothing of this kind"])
    # It is found where it stands, whatever it is.
    words = query.replace('"', " ").replace("\0", " ")
    await said(store, f"before {words} after")
    if words.split():
        assert f"before {words} after".replace("\n", " ").split() in [
            (text or "").split() for text in await texts(history, words)
        ]


async def test_too_many_words_are_refused(history: SqliteHistory) -> None:
    with pytest.raises(InvalidRequest, match="at most 32"):
        await history.search(HistoryFilter(query=" ".join(f"w{n}" for n in range(33))))


async def test_what_is_asked_for(store: SqliteStore, history: SqliteHistory, hands: Hands) -> None:
    first = await said(store, "alpha one", "beta one", context_id="c1")
    hands.now += 3600
    await said(store, "alpha two", "beta two", agent_id=CODEX, context_id="c2")
    assert await texts(history, agent_id=CODEX) == ["beta two", "alpha two"]
    assert await texts(history, context="c1") == ["beta one", "alpha one"]
    assert await texts(history, kinds=frozenset({"message"})) == ["alpha two", "alpha one"]
    assert await texts(history, since=hands.now - 60) == ["beta two", "alpha two"]
    assert await texts(history, until=hands.now - 60) == ["beta one", "alpha one"]
    assert await texts(history, "alpha", until=hands.now - 60) == ["alpha one"]
    assert (await found(history, "alpha one"))[0].time == iso(hands.now - 3600)
    assert (await found(history))[0].text is None
    assert await history.knows(CODEX)
    assert not await history.knows("nobody")
    stats = await history.stats(HistoryFilter(query="alpha"))
    assert (stats.items, stats.tasks, stats.contexts) == (2, 2, 2)
    assert stats.by_kind == {"message": 2}
    assert stats.by_agent == {CLAUDE: 1, CODEX: 1}
    assert sum(stats.by_day.values()) == 2
    assert (stats.first, stats.last) == (iso(hands.now - 3600), iso(hands.now))
    assert (await history.stats(HistoryFilter())).items == 4
    assert (await history.stats(HistoryFilter(query="zzz"))).first is None
    assert first.context_id == "c1"


async def test_pages_have_everything_once(store: SqliteStore, history: SqliteHistory) -> None:
    for number in range(25):
        await said(store, f"number {number}")
    for query in ("", "number", "nu"):
        assert await texts(history, query, limit=7) == [f"number {number}" for number in reversed(range(25))]


async def test_short_words_are_looked_for_page_by_page(
    store: SqliteStore, history: SqliteHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No page looks through more than so many texts, and what is further back is found all the same."""
    monkeypatch.setattr(searching, "SCAN", 10)
    await said(store, "会議 the first")
    for number in range(34):
        await said(store, f"other {number}")
    await found(history)
    page = await history.search(HistoryFilter(query="会議"))
    assert page.items == []
    assert page.next is not None
    assert await texts(history, "会議") == ["会議 the first"]


async def test_an_agent_sees_what_is_its_own(store: SqliteStore, history: SqliteHistory) -> None:
    mine = await said(store, "to claude of a person")
    await told(store, ToolExecution(tool_name="shell", status="completed"), task=mine)
    by_claude = Sender(id=CLAUDE, tier=Tier.AGENT).metadata()
    asked = await said(store, "claude asks codex", agent_id=CODEX, metadata={KEY: by_claude})
    await told(store, ToolExecution(tool_name="grep", status="completed"), CODEX, task=asked)
    await answered(store, asked, "codex answers")
    await said(store, "to codex of a person", "to a person", agent_id=CODEX)
    assert await texts(history, visible_to=CLAUDE) == [
        "codex answers", "claude asks codex", "shell", "to claude of a person",
    ]  # fmt: skip
    assert await texts(history, "codex", visible_to=CLAUDE) == ["codex answers", "claude asks codex"]
    assert (await history.stats(HistoryFilter(visible_to=CLAUDE))).items == 4
    assert "grep" in await texts(history, visible_to=CODEX)
    assert await texts(history, visible_to="somebody else") == []


async def test_a_conversation_of_several_agents_is_one_thread(store: SqliteStore, history: SqliteHistory) -> None:
    """What an agent asks others while it works on a message, with what they answer, to any depth."""
    first = await said(store, "please build it", context_id="c-claude")
    by = {KEY: Sender(id=CLAUDE, tier=Tier.AGENT).metadata()}
    second = await said(store, "codex, test it", agent_id=CODEX, context_id="c-codex", metadata=by)
    by = {KEY: Sender(id=CODEX, tier=Tier.AGENT).metadata()}
    await said(store, "gemini, read it", "I have read it", agent_id="synapse-gemini-8110", metadata=by)
    await answered(store, second, "it is tested")
    await answered(store, first, "it is built")
    await said(store, "something else", "yes", agent_id=CODEX, context_id="c-codex")
    thread = ["please build it", "codex, test it", "gemini, read it", "I have read it", "it is tested", "it is built"]
    assert list(reversed(await texts(history, context="c-claude"))) == thread
    assert list(reversed(await texts(history, context="c-codex"))) == [thread[1], thread[4], "something else", "yes"]
    assert {item.thread for item in await found(history, context="c-claude")} == {"c-claude"}


async def test_a_reply_is_in_it_once(store: SqliteStore, history: SqliteHistory) -> None:
    """The asker's own task, which the reply completes, and the message that tells of the reply have the same text."""
    await said(store, "ask codex", context_id="c-claude")
    own = await said(store, "what do you think?", context_id="c-claude", metadata={"direction": "outgoing"})
    by = {KEY: Sender(id=CLAUDE, tier=Tier.AGENT).metadata(), "sender_task_id": own.id}
    asked = await said(store, "what do you think?", "it is fine", agent_id=CODEX, context_id="c-codex", metadata=by)
    reply = {"implicit": True, "task_id": asked.id, KEY: Sender(id=CODEX, tier=Tier.AGENT).metadata()}
    own = own.model_copy(update={"metadata": {**own.metadata, "reply": reply}})
    await answered(store, own, "it is fine")
    notice = {KEY: Sender(id=CODEX, tier=Tier.AGENT).metadata(), "reply_to": own.id}
    await said(store, "it is fine", context_id="c-claude", metadata=notice)
    expected = ["ask codex", "what do you think?", "it is fine"]
    assert list(reversed(await texts(history, context="c-claude"))) == expected
    # words of its own count in place of its turn's answer for the asker, and are not elsewhere
    own = own.model_copy(update={"metadata": {**own.metadata, "reply": reply | {"implicit": False}}})
    await answered(store, own, "no, it is not")
    items = await found(history, context="c-claude", whole=True)
    assert (items[0].text, items[0].by, items[0].to, items[0].agent) == ("no, it is not", CODEX, CLAUDE, CLAUDE)
    assert len(items) == 4


async def test_an_answer_that_is_told_again_counts_in_place_of_the_other(
    store: SqliteStore, history: SqliteHistory
) -> None:
    task = await said(store, "go", "first words")
    assert await texts(history, "words") == ["first words"]
    await answered(store, task, "second words")
    assert await texts(history, "words") == ["second words"]
    await store.commit(tasks=[task], events=[NewEvent.of(task, TaskStatusChanged(state=TaskState.SUBMITTED))])
    assert [item.kind for item in await found(history)] == ["answer", "message"]


async def test_blocks_are_no_second_answer_and_failures_are_told(store: SqliteStore, history: SqliteHistory) -> None:
    await answered(store, await said(store, "go"), "with `code`", "code")
    failed = await said(store, "fail", error=TaskError(code="MODEL_ERROR", message="the model is away"))
    failed = failed.model_copy(update={"status": TaskState.FAILED})
    await store.commit(tasks=[failed], events=[NewEvent.of(failed, TaskStatusChanged(state=TaskState.FAILED))])
    assert await texts(history, kinds=frozenset({"answer"})) == ["the model is away", "with `code`"]


async def test_a_turn_that_a_person_typed(store: SqliteStore, history: SqliteHistory) -> None:
    await told(store, TurnSeen(text="typed at the terminal", answer="and answered"))
    items = await found(history, whole=True)
    assert [(item.kind, item.text, item.by, item.task) for item in items] == [
        ("answer", "and answered", CLAUDE, None),
        ("message", "typed at the terminal", None, None),
    ]


async def test_no_secret_is_in_the_file_or_in_an_answer(
    store: SqliteStore, history: SqliteHistory, tmp_path: Path
) -> None:
    secrets = planted("history")
    for text, _ in secrets.values():
        task = await said(store, f"see {text}", f"I saw {text}")
        await told(store, ToolExecution(tool_name="t", status="completed", input={"command": text}), task=task)
        await told(store, TurnSeen(text=text, answer=text))
    shown = "\n".join(item.model_dump_json() for item in await found(history, whole=True, limit=200))
    assert shown.count("***") >= len(secrets) * 5
    files = [path for path in (tmp_path / "state").iterdir() if path.name != "synapsed.key"]
    assert any(path.name == "history.db-wal" for path in files)
    for name, (_, secret) in secrets.items():
        assert secret not in shown, name
        assert [path.name for path in files if secret.encode() in path.read_bytes()] == [], name


async def test_rows_of_an_older_program_are_masked_too(
    store: SqliteStore, history: SqliteHistory, opened: OpenHistory, tmp_path: Path
) -> None:
    """One that did not seal secrets; also where a secret stands across the end of what is looked at."""
    secret = planted("old")["github"][1]
    task = await said(store, "x" * 40 + " " + secret)
    ends = await said(store, "y" * (READ_MAX - 20) + " " + secret)
    await history.close()
    with raw_file(tmp_path / "state" / "synapsed.db") as raw:
        for one, text in ((task, f"old {secret}"), (ends, "y" * (READ_MAX - 20) + " " + secret)):
            raw.execute(
                "UPDATE tasks SET data = json_set(data, '$.message.parts[0].text', ?) WHERE id = ?", (text, one.id)
            )
    (tmp_path / "state" / "history.db").unlink()
    again = await opened(store)
    shown = [text or "" for text in await texts(again)]
    await again.close()
    assert shown[1] == "old ***"
    assert all(secret[:12] not in text for text in shown)
    assert secret[:12].encode() not in (tmp_path / "state" / "history.db").read_bytes()


@pytest.mark.slow
async def test_a_huge_answer_is_kept_by_its_beginning_and_holds_nothing_up(
    store: SqliteStore, history: SqliteHistory
) -> None:
    answer = "beginning " + "schlüsselwort " * 700_000
    await said(store, "write a lot", answer)
    (item,) = await found(history, "beginning", whole=True)
    assert item.truncated
    assert item.text is not None
    assert len(item.text) == TEXT_MAX
    assert item.snippet.startswith("beginning schlüsselwort")
    await told(store, ToolExecution(tool_name="cat", status="completed", output={"lines": ["z" * 100] * 20_000}))
    (tool,) = await found(history, "cat zzz", whole=True)
    assert tool.truncated
    assert len(tool.text or "") <= TEXT_MAX


async def test_what_only_moves_a_terminal_is_not_kept(store: SqliteStore, history: SqliteHistory) -> None:
    secret = planted("moved")["anthropic"][1]
    output = {"text": f"\x1b[31mred\x1b[0m\0 {secret[:9]}\x1b[1m{secret[9:]} end \\u0000"}
    await told(store, ToolExecution(tool_name="sh", status="completed", output=output))
    assert await texts(history, "red") == ["sh\nred  *** end \\u0000"]


async def test_what_retention_removes_leaves_the_history(
    store: SqliteStore, history: SqliteHistory, hands: Hands, tmp_path: Path
) -> None:
    for number in range(20):
        task = await said(store, f"old message {number}", f"old answer {number}", updated_at=iso(100.0))
        await told(store, TokensUsed(input_tokens=5, turn_id=str(number)), task=task)
    hands.now += 10
    kept = await said(store, "new message", updated_at=iso(hands.now), status=TaskState.WORKING)
    assert len(await found(history)) == 41
    cut = await store.find_cut(keep=0, oldest=iso(200.0), newest=iso(hands.now))
    assert cut is not None
    while (await store.prune(cut)).rows:
        pass
    assert await texts(history) == ["new message"], "what is gone is not shown from now on"
    indexer = history._indexer
    while await asyncio.get_running_loop().run_in_executor(history._writing, indexer.tidy):
        pass
    assert (await history.stats(HistoryFilter())).items == 1
    assert (await history.usage(HistoryFilter(), "agent")).total.turns == 0
    await history.close()
    with raw_file(tmp_path / "state" / "history.db") as raw:
        raw.execute("INSERT INTO found (found) VALUES ('integrity-check')")
        assert raw.execute("SELECT count(*) FROM docs").fetchone() == (1,)
        assert raw.execute("""SELECT count(*) FROM found WHERE found MATCH '"old"'""").fetchone() == (0,)
    assert kept.id


async def test_what_happens_while_it_is_tidied_does_not_wait(
    store: SqliteStore, history: SqliteHistory, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many documents are looked at when retention has removed something."""
    monkeypatch.setattr(indexing, "SWEEP_ROWS", 1)
    monkeypatch.setattr(service, "TIDY_S", 0.01)
    for number in range(20):
        await said(store, f"message {number}", updated_at=iso(100.0 + number), status=TaskState.COMPLETED)
    await found(history)
    done: list[str] = []
    for name in ("step", "tidy"):
        whole = getattr(history._indexer, name)

        def act(name: str = name, whole: Callable[[], bool] = whole) -> bool:
            done.append(name)
            return whole()

        monkeypatch.setattr(history._indexer, name, act)
    hands.now += 10
    cut = await store.find_cut(keep=10, oldest=None, newest=iso(hands.now))
    assert cut is not None
    while (await store.prune(cut)).rows:
        pass
    async with asyncio.timeout(DEADLINE):
        while (await history.stats(HistoryFilter())).items > 10:
            pass
    assert done.count("tidy") >= 9, "each removes one, and one of them was under way before they were counted"
    assert "tidy tidy" not in " ".join(done)


async def test_an_existing_database_is_taken_up_and_nothing_twice(
    store: SqliteStore, opened: OpenHistory, tmp_path: Path
) -> None:
    for number in range(30):
        await said(store, f"earlier {number}", f"answer {number}")
    history = await opened(store)
    assert len(await found(history)) == 60
    await history.close()
    await said(store, "while it was closed")
    again = await opened(store)
    assert (await texts(again))[0] == "while it was closed"
    assert len(await found(again)) == 61


async def test_a_database_that_was_put_back_is_taken_up_from_its_beginning(
    open_store: OpenStore, opened: OpenHistory, tmp_path: Path, hands: Hands
) -> None:
    store = await open_store()
    for number in range(5):
        await said(store, f"first life {number}")
    history = await opened(store)
    assert len(await found(history)) == 5
    await history.close()
    await store.close()
    for end in ("", "-wal", "-shm"):
        (tmp_path / "state" / f"synapsed.db{end}").unlink(missing_ok=True)
    hands.now += 60
    store = await open_store()
    for number in range(6):
        await said(store, f"second life {number}")
    assert await texts(await opened(store)) == [f"second life {number}" for number in reversed(range(6))]


@pytest.mark.parametrize("damage", ["other form", "no database", "torn"])
async def test_a_file_that_cannot_be_used_is_made_again(
    store: SqliteStore, opened: OpenHistory, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "RETRY_S", 0.0)
    path = tmp_path / "state" / "history.db"
    await said(store, "still there", "in the database")
    history = await opened(store)
    assert len(await found(history)) == 2
    await history.close()
    if damage == "other form":
        with raw_file(path) as raw:
            raw.execute("PRAGMA user_version = 99")
    elif damage == "no database":
        path.write_bytes(b"this is no database" * 1000)
    else:
        whole = path.read_bytes()
        path.write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))
    history = await opened(store)
    await said(store, "and after it")
    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                if await texts(history) == ["and after it", "in the database", "still there"]:
                    break
            except StoreError:
                await asyncio.sleep(0)


@pytest.mark.parametrize("error", [StoreError("the disk is full"), ValueError("a defect")])
async def test_one_question_is_one_attempt_while_the_indexing_fails(
    store: SqliteStore, opened: OpenHistory, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(service, "FRESH_S", 0.3)
    monkeypatch.setattr(service, "BEGIN_S", 0.0)
    monkeypatch.setattr(service, "RETRY_ASKED_S", 0.0)
    attempts: list[int] = []

    def step(_: indexing.Indexer) -> bool:
        attempts.append(1)
        raise error

    await said(store, "a word to find")
    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(indexing.Indexer, "step", step)
        history = await opened(store)
        for _ in range(3):
            assert not (await history.search(HistoryFilter(query="word"))).complete
    assert len(attempts) <= 4, "the first, and one for each question"
    level = "warning" if isinstance(error, StoreError) else "error"
    assert level in {entry["log_level"] for entry in logs if "behind" in entry["event"]}
    monkeypatch.setattr(service, "FRESH_S", DEADLINE)
    assert len(await found(history, "word")) == 1, "it goes on once it can"


async def test_it_can_be_switched_off(store: SqliteStore, opened: OpenHistory, tmp_path: Path) -> None:
    path = tmp_path / "state" / "history.db"
    await found(history := await opened(store))
    await history.close()
    assert path.stat().st_mode & 0o077 == 0
    config = config_with([FACE]).model_validate({"history": {"enabled": False}})
    kernel = cast("Kernel", SimpleNamespace(paths=Paths.from_environ({"SYNAPSED_HOME": str(tmp_path)}), config=config))
    async with opened_part(kernel) as running:
        assert (running.provides, "switched off" in running.off) == ({}, True)
    assert [one.name for one in path.parent.glob("history*")] == []


async def test_questions_are_bounded(
    store: SqliteStore, history: SqliteHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "OPERATIONS", 10)
    await said(store, "there is something")
    await found(history)
    monkeypatch.setattr(service, "QUESTIONS_MAX", 2)
    asked = [history.search(HistoryFilter(query="something")) for _ in range(8)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, Busy) for answer in answers) == 6
    assert not [answer for answer in answers if isinstance(answer, BaseException) and not isinstance(answer, Busy)]
    monkeypatch.setattr(searching, "SEARCH_S", -1.0)
    with pytest.raises(Busy, match="ask for less"):
        await history.stats(HistoryFilter(query="something"))
    monkeypatch.setattr(searching, "SEARCH_S", 60.0)
    assert len((await history.search(HistoryFilter(query="something"))).items) == 1
    await history.close()
    with pytest.raises(StoreError):
        await history.search(HistoryFilter())


_WRITER = """
import asyncio, sys
from pathlib import Path
from synapsed.clock import SystemClock
from synapsed.store.store import SqliteStore
from synapsed.parts.history import indexing, service

class Told(indexing.Indexer):
    def step(self):
        more = super().step()
        print(self.cursor, flush=True)
        return more

service.BEGIN_S = 0.0
service.Indexer, indexing.EVENTS = Told, 40

async def main(state):
    store = await SqliteStore.open(state / "synapsed.db", clock=SystemClock())
    history = await service.SqliteHistory(state / "synapsed.db", state / "history.db", store.events).open()
    await asyncio.Event().wait()

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.slow
async def test_a_kill_in_between_neither_loses_nor_doubles_anything(
    open_store: OpenStore, opened: OpenHistory, tmp_path: Path
) -> None:
    store = await open_store()
    for number in range(400):
        await said(store, f"message {number} " + "words " * 50, f"answer {number} " + "words " * 50)
        await told(store, TokensUsed(input_tokens=1, turn_id=str(number)))
    newest = store.events.last_id
    await store.close()
    reached = [0]
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path / "state")], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(4):
            reached.append(int(process.stdout.readline()))
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE)
        process.stdout.close()
    assert reached == sorted(reached)
    assert reached[-1] < newest, "there is something left for the last one"
    store = await open_store()
    history = await opened(store)
    shown = [(text or "").partition(" words")[0] for text in await texts(history, limit=200)]
    expected = [f"{kind} {number}" for number in range(400) for kind in ("message", "answer")]
    assert list(reversed(shown)) == expected
    assert (await history.usage(HistoryFilter(), "agent")).total.input_tokens == 400
    await history.close()
    with raw_file(tmp_path / "state" / "history.db") as raw:
        raw.execute("INSERT INTO found (found) VALUES ('integrity-check')")
