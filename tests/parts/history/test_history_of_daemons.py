"""The history of a real daemon: searched by the verb and over HTTP, over `kill -9`, and what an agent sees of it."""

import asyncio
import csv
import io
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from synapsed.interfaces import NewEvent
from synapsed.model.events import TokensUsed
from synapsed.store.store import SqliteStore
from tests.daemon.test_agents_and_shells import inside, token_of
from tests.store.samples import Hands, a_task
from tests.support.daemon import NO_PORTS, Daemon, eventually
from tests.support.threaded import real_one


@pytest.fixture
def daemon(tmp_path: Path, kind: type[Daemon]) -> Iterator[Daemon]:
    daemon = kind(tmp_path, config=NO_PORTS)
    yield daemon
    daemon.end()


def texts(daemon: Daemon, *arguments: str) -> list[str]:
    done = daemon.ctl("history", "--json", *arguments)
    assert done.code == 0, done.err
    assert "missing" not in done.err
    return [item["text"] for item in done.json]


@pytest.mark.night
@real_one
def test_it_is_searched_exported_and_survives_a_kill(daemon: Daemon) -> None:
    daemon.start("--log-level", "debug")
    daemon.start_agent()
    first = daemon.ended(daemon.send("echo 議事録の要約"))
    daemon.ended(daemon.send('echo =HYPERLINK("x")'))
    assert texts(daemon) == ['=HYPERLINK("x")', 'echo =HYPERLINK("x")', "議事録の要約", "echo 議事録の要約"]
    assert texts(daemon, "要約") == ["議事録の要約", "echo 議事録の要約"]
    daemon.kill9()
    daemon.start()
    daemon.ready()
    assert texts(daemon, "議事録", "--kind", "answer", "--agent", "dummy", "--since", "1h") == ["議事録の要約"]
    daemon.ended(daemon.send("echo after the kill"))
    assert texts(daemon, "--limit", "1") == ["after the kill"]
    assert texts(daemon, "--until", "1h") == []
    context = first["context_id"]
    table = daemon.ctl("history", "echo 議").out.splitlines()
    assert [row.split("\t")[1:] for row in table] == [["", "dummy", "message", first["id"], "echo 議事録の要約"]]
    rows = list(csv.DictReader(io.StringIO(daemon.ctl("history", "--format", "csv", "--context", context).out)))
    assert [row["text"] for row in rows if row["kind"] == "answer"][1] == '\'=HYPERLINK("x")'
    document = daemon.ctl("history", "--format", "markdown", "--context", context).out
    assert document.startswith(f"# Thread {context}\n\n## ")
    assert "person → dummy (message, task " in document
    transcript = daemon.ctl("history", "--context", context).out
    assert transcript.index("議事録") < transcript.index("after the kill")
    stats = daemon.ctl("history", "--stats", "--json").json
    assert stats["by_kind"] == {"message": 3, "answer": 3}
    assert "kind\tmessage\t3" in daemon.ctl("history", "--stats").out.splitlines()
    assert daemon.ctl("history", "nothing like it").out == ""


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("q=" + "x" * 1001, "q: must be at most 1000 characters"),
        ("q=a%00b", "q: must be"),
        ("since=yesterday", "since: must be a time such as"),
        ("until=2026-01-01", "until: must be a time such as"),
        ("limit=0", "limit: must be an integer from 1 to 200"),
        ("kind=word", "kind: must be of message, answer, tool"),
        ("agent=nobody", "nobody"),
        ("quer=x", "no such parameter"),
        ("q=" + "+".join(f"w{n}" for n in range(40)), "has 40 words"),
    ],
)
def test_what_is_wrong_is_named(daemon: Daemon, query: str, says: str) -> None:
    daemon.start()
    answer = daemon.get(f"/control/history?{query}")
    assert answer.status in (400, 404), answer
    assert says in answer.json["error"]["message"]
    assert daemon.ctl("history", "x" * 48 * 1024).code == 2
    assert daemon.ctl("history", "--since", "someday").code == 2


def test_an_agent_sees_its_own(daemon: Daemon) -> None:
    daemon.start()
    daemon.start_agent()
    daemon.start_agent(name="other")
    daemon.ended(daemon.send("echo for the dummy"))
    daemon.ended(daemon.send("echo for the other", "other"))
    used = {"event": "toolExecution", "data": {"tool_name": "shell", "status": "completed"}}
    assert daemon.post("/agents/other/events", used).status == 200
    token = token_of(daemon, daemon.agent("other"))

    def asked(path: str) -> Any:
        answer = daemon.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        assert answer.status == 200, answer
        return answer.json

    other = daemon.agent("other")["id"]
    assert {item["agent"] for item in asked("/control/history")["items"]} == {other}
    assert len(asked("/control/history")["items"]) == 3
    assert asked("/control/history?agent=dummy")["items"] == []
    assert asked("/control/history/stats")["by_agent"] == {other: 3}
    assert asked("/control/usage")["rows"] == []
    assert len(daemon.get("/control/history").json["items"]) == 5


def test_it_can_be_switched_off(daemon: Daemon) -> None:
    daemon.start()
    daemon.start_agent()
    eventually((daemon.home / "state" / "history.db").exists, "the history of the first agent begins")
    daemon.end()
    daemon.config_file.write_text(f"{NO_PORTS}[history]\nenabled = false\n")
    daemon.start()
    assert not (daemon.home / "state" / "history.db").exists()
    done = daemon.ctl("history")
    assert done.code == 6
    assert "[history]" in done.err
    assert daemon.ctl("usage").code == 6


USED = [
    # agent, task, day and hour (UTC), input, output, cost, the program's id of the turn
    ("dummy", "t1", "2026-03-01T14:00", 100, 10, 0.5, "a"),
    ("dummy", "t1", "2026-03-01T14:59", 1, 1, None, "b"),
    ("dummy", "t2", "2026-03-01T15:00", 1000, 100, None, "c"),
    ("dummy", "t2", "2026-03-01T15:01", 1000, 100, None, "c"),  # told twice
    ("other", None, "2026-03-02T00:00", 7, None, None, "a"),
]


async def written(path: Path) -> None:
    """A database of before: nobody has made a history of it."""
    hands = Hands()
    store = await SqliteStore.open(path, clock=hands)
    await store.commit(tasks=[a_task(id=task, agent_id="dummy") for task in ("t1", "t2")])
    for agent, task, at, given, said, cost, turn in USED:
        hands.now = datetime.fromisoformat(f"{at}Z").timestamp()
        used = TokensUsed(input_tokens=given, output_tokens=said, cost_usd=cost, turn_id=turn)
        await store.commit(events=[NewEvent(agent, used, task, None)])
    await store.close()


@pytest.mark.night
@real_one
def test_what_was_used_is_added_up_over_a_kill(daemon: Daemon) -> None:
    """By agent, by day of the local zone, by task; nothing twice."""
    daemon.environ = {**daemon.environ, "TZ": "Asia/Tokyo"}
    daemon.start()
    assert daemon.ctl("usage").err == "synapsectl: no program has reported its usage\n"
    daemon.end()
    asyncio.run(written(daemon.home / "state" / "synapsed.db"))
    for _ in range(2):
        daemon.start()

        def sums(by: str) -> list[tuple[Any, ...]]:
            rows = daemon.ctl("usage", "--by", by, "--json").json["rows"]
            return [(row[by], row["turns"], row["input_tokens"], row["output_tokens"], row["cost_usd"]) for row in rows]

        assert sums("agent") == [("dummy", 3, 1101, 111, 0.5), ("other", 1, 7, None, None)]
        assert sums("day") == [("2026-03-02", 2, 1007, 100, None), ("2026-03-01", 2, 101, 11, 0.5)]
        assert sums("task") == [(None, 1, 7, None, None), ("t2", 1, 1000, 100, None), ("t1", 2, 101, 11, 0.5)]
        daemon.kill9()
    daemon.start()
    total = daemon.ctl("usage", "--json", "--since", "2026-03-02T00:00+09:00").json["total"]
    assert (total["turns"], total["input_tokens"], total["priced"]) == (2, 1007, 0)
    assert daemon.ctl("usage", "--by", "task").out.splitlines()[-1] == "all\t\t4\t1108\t111\t-\t-\t$0.5000 (of 1 turns)"
    assert daemon.ctl("usage", "--agent", "other").out.splitlines()[0] == "other\t1\t7\t-\t-\t-\t-"
    first = daemon.ctl("usage", "--limit", "1")
    assert len(first.out.splitlines()) == 2
    assert "more than 1 rows" in first.err


@pytest.mark.parametrize("options", [("--wait",), ("--wait", "--response"), ("--response",)])
def test_a_conversation_of_several_agents_is_one_thread(daemon: Daemon, options: tuple[str, ...]) -> None:
    """What an agent asks another by the verb is part of what it was asked, whichever way the reply comes to it."""
    daemon.start()
    ann, bob = daemon.start_agent(name="ann"), daemon.start_agent(name="bob")
    asked = daemon.ended(daemon.send("echo I shall ask bob", "ann"))
    daemon.ended(daemon.send("echo a conversation of its own", "bob"))
    sent = daemon.ctl("send", "bob", *options, "--json", "--", "echo what bob says", env=inside(daemon, ann))
    assert sent.code == 0, sent.err

    def thread(**env: str) -> list[tuple[str | None, str, str]]:
        done = daemon.ctl("history", "--context", asked["context_id"], "--json", env=env)
        assert done.code == 0, done.err
        return [(item["by"], item["kind"], item["text"]) for item in done.json]

    expected = [
        (None, "message", "echo I shall ask bob"),
        (ann["id"], "answer", "I shall ask bob"),
        (ann["id"], "message", "echo what bob says"),
        (bob["id"], "answer", "what bob says"),
    ]
    headings = ["person → ann", "ann → person", "ann → bob", "bob → ann"]
    if "--wait" not in options:  # the reply comes to ann as a message: the same words, which are in it once
        expected.append((ann["id"], "answer", "You said: what bob says"))
        headings.append("ann → bob")
    eventually(lambda: len(thread()) >= len(expected), "all has been said")
    assert thread() == expected
    assert thread(**inside(daemon, ann)) == expected, "ann has said or heard all of it"
    assert thread(**inside(daemon, bob)) == expected[2:]
    document = daemon.ctl("history", "--context", asked["context_id"], "--format", "markdown").out
    sections = [line for line in document.splitlines() if line.startswith("## ")]
    assert [section.split(" ", 3)[3].partition(" (")[0] for section in sections] == headings
