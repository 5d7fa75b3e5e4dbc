"""Agents that ask each other, groups and teams, with the scripted agent."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually
from tests.support.threaded import real_one

TEAMS = '\n[agents.ann]\nprofile = "dummy"\ncwd = "/"\n[teams.review]\nmembers = ["ann", "dummy", "gone"]\n'


@pytest.fixture
def daemon(tmp_path: Path, kind: type[Daemon]) -> Iterator[Daemon]:
    running = kind(tmp_path, config=ANY_PORTS).start()
    yield running
    running.end()


def text(words: str, **metadata: Any) -> dict[str, Any]:
    message = {"role": "user", "parts": [{"type": "text", "text": words}]}
    return {"message": message, **({"metadata": metadata} if metadata else {})}


def own_of(daemon: Daemon, agent: str) -> dict[str, Any]:
    """The task of the agent's own that waits for a reply."""
    tasks = daemon.ctl("tasks", agent, "--json").json
    return next(t for t in tasks if t["metadata"].get("direction") == "outgoing" and t["status"] == "working")


@real_one
def test_the_sequence_of_the_seeds_over_http(daemon: Daemon) -> None:
    """Document 003, as its clients send it; the daemon is killed in between."""
    bob, ann = daemon.start_agent(name="bob"), daemon.start_agent(name="ann")
    created = daemon.post("/agents/bob/tasks/create", text("分析して", direction="outgoing", response_expected=True))
    own = created.json["task"]
    assert (created.status, own["status"]) == (200, "working")
    sender = {"sender_id": "bob", "sender_type": "dummy", "sender_endpoint": bob["endpoint"]}
    asked = daemon.post(
        "/agents/ann/tasks/send-priority?priority=1",
        text("busy 60", sender=sender, sender_task_id=own["id"], response_expected=True),
    ).json["task"]
    daemon.task_in(asked["id"], "working")
    line = f"[A2A:{own['id'][:8]}:{bob['id']}:R] busy 60"  # a task is working before a byte of it is typed
    eventually(lambda: line in daemon.ctl("screen", "ann").out, "ann is shown the message")
    daemon.kill9()
    daemon.start()
    before = daemon.ctl("tasks", "bob", "--json").json
    reply = text("結果です", sender={"sender_id": ann["id"]}, in_reply_to=own["id"])
    done = daemon.post("/agents/bob/tasks/send", reply)
    assert (done.status, done.json["task"]["id"], done.json["task"]["status"]) == (200, own["id"], "completed")
    (artifact,) = done.json["task"]["artifacts"]
    assert artifact["parts"][0]["text"] == "結果です"
    told = eventually(lambda: _notice(daemon, "bob", own["id"]), "bob is told")
    assert len(daemon.ctl("tasks", "bob", "--json").json) == len(before) + 1, "the reply itself is typed to nobody"
    assert daemon.ended(told["id"])["artifacts"][0]["parts"][0]["text"] == "You said: 結果です"
    assert daemon.post("/agents/bob/tasks/send", reply).status == 200, "said twice, it counts once"
    refused = daemon.post("/agents/bob/tasks/send", text("another", in_reply_to=own["id"]))
    assert (refused.status, refused.json["error"]["code"]) == (400, "NOT_WAITING")
    assert daemon.post("/agents/bob/tasks/send", text("x", in_reply_to="abcdefgh")).status == 404


def _notice(daemon: Daemon, agent: str, own: str) -> dict[str, Any] | None:
    return next((t for t in daemon.ctl("tasks", agent, "--json").json if t["metadata"].get("reply_to") == own), None)


@pytest.mark.night
@real_one
def test_a_reply_after_the_sending_process_has_ended(daemon: Daemon) -> None:
    daemon.start_agent(name="bob")
    daemon.start_agent(name="ann")
    gone = daemon.ctl("send", "ann", "--response", "--from", "bob", "--timeout", "0.5", "--", "busy 60")
    assert gone.code == 5
    own = own_of(daemon, "bob")
    daemon.kill9()
    daemon.start()
    for wrong, code in (("bob", 6), ("deadbeef", 4)):
        arguments = ["--from", wrong] if wrong == "bob" else []
        to = own["id"][:8] if wrong == "bob" else wrong
        assert daemon.ctl("send", "bob", "so", "--reply-to", to, *arguments).code == code
    assert daemon.ctl("send", "ann", "so", "--reply-to", own["id"]).code == 4, "it is not ann's"
    replied = daemon.ctl("send", "bob", "so it is", "--reply-to", own["id"][:8], "--from", "ann")
    assert (replied.code, replied.out.strip()) == (0, own["id"]), replied.err
    assert daemon.ctl("task", own["id"][:8]).out.strip().endswith("so it is")


def test_who_waits_gets_the_reply(daemon: Daemon) -> None:
    daemon.start_agent(name="bob")
    daemon.start_agent(name="ann", cwd=str(daemon.home))
    waiting = daemon.spawn("send", "ann", "--response", "--from", "bob", "--", "until replied")
    request = eventually(lambda: daemon.agent("ann")["task"], "ann is asked")
    daemon.task_in(request, "working")
    assert daemon.ctl("reply", "so", "--from", "bob").code == 6, "bob was asked nothing"
    assert daemon.ctl("reply", "--from", "ann", "--", "in my own words").code == 0
    out, err = waiting.communicate(timeout=60)
    (daemon.home / "replied").touch()
    assert (waiting.returncode, out) == (0, "in my own words\n"), err
    asks = daemon.ctl("send", "ann", "--response", "--from", "bob", "--", "ask y/n")
    assert (asks.code, "Proceed? (y/n)" in asks.err) == (7, True), "a person is needed"
    assert daemon.ctl("approve", "ann").code == 0
    plain = daemon.ctl("send", "bob", "--response", "--", "echo a person's")
    assert (plain.code, plain.out) == (0, "a person's\n"), "outside of an agent it equals --wait"
    somebody = daemon.ctl("send", "bob", "--response", "--from", "nobody here", "--", "echo of whom it may be")
    assert (somebody.code, somebody.out) == (0, "of whom it may be\n")


def test_waits_that_would_never_end(daemon: Daemon) -> None:
    daemon.start_agent(name="bob")
    daemon.start_agent(name="ann")
    first = daemon.spawn("send", "ann", "--response", "--from", "bob", "--", "busy 60")
    eventually(lambda: daemon.agent("ann")["task"], "ann is asked")
    for options in (["--response"], ["--wait"]):
        back = daemon.ctl("send", "bob", *options, "--from", "ann", "--", "echo x")
        assert back.code == 6
        assert "waits for" in back.err
        assert daemon.ctl("send", "bob", *options, "--from", "bob", "--", "echo x").code == 6
    told = daemon.ctl("send", "bob", "--wait", "--from", "ann", "--json", "--", "echo x")
    assert told.json["error"]["code"] == "WOULD_DEADLOCK"
    assert daemon.ctl("cancel", own_of(daemon, "bob")["id"]).code == 0
    first.communicate(timeout=60)
    assert first.returncode == 1
    assert daemon.ctl("send", "bob", "--wait", "--from", "ann", "--", "echo x").out == "x\n"


def test_groups_and_every_form_of_an_address(daemon: Daemon) -> None:
    views = [daemon.start_agent(), daemon.start_agent(), daemon.start_agent(name="ann")]
    one, two, ann = views
    for address in (one["name"], "@dummy", one["id"], f"dummy-{one['port']}", two["name"], "ann", ann["id"]):
        assert daemon.ctl("send", address, "--wait", "--", "echo yes").out == "yes\n", address
    gathered = daemon.ctl("send", "--type", "dummy", "--wait", "--", "echo yes\nand no")
    rows = [line.split("\t") for line in gathered.out.splitlines()]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        (v["name"], "completed", "yes You said: and no") for v in views
    ]
    every = daemon.ctl("send", "--all", "--wait", "--json", "--", "fail it").json["tasks"]
    assert [one["task"]["status"] for one in every] == ["failed"] * 3
    some = daemon.ctl("send", f"{one['name']},ann", "--wait", "--timeout", "1", "--", "busy 60")
    assert some.code == 5
    states = [line.split("\t")[2] for line in some.out.splitlines()]
    assert (len(states), set(states) <= {"submitted", "working"}) == (2, True), some.out
    daemon.ctl("stop", "dummy", "--remove")
    daemon.ctl("stop", "ann", "--remove")
    assert daemon.ctl("send", "dummy", "--wait", "--", "echo by its type").out == "by its type\n"


def test_a_team_is_started_and_addressed_by_its_name(tmp_path: Path, kind: type[Daemon]) -> None:
    daemon = kind(tmp_path, config=ANY_PORTS + TEAMS).start()
    try:
        started = daemon.ctl("start", "review", "--cwd", "/", "--json")
        assert (started.code, [agent["name"] for agent in started.json]) == (2, ["ann", "dummy"])
        assert "gone" in started.err
        again = daemon.ctl("start", "review", "--json").json
        assert [agent["pid"] for agent in again] == [agent["pid"] for agent in started.json]
        unknown = daemon.ctl("send", "review", "--wait", "--", "echo x")
        assert (unknown.code, "gone" in unknown.err) == (4, True)
        (daemon.config_file).write_text(daemon.config.replace(', "gone"', ""))
        assert daemon.ctl("reload").code == 0
        answers = daemon.ctl("send", "@review", "--wait", "--", "echo for all").out.splitlines()
        assert [line.split("\t")[3] for line in answers] == ["for all", "for all"]
        assert daemon.ctl("start", "review", "--name", "x").code == 2
    finally:
        daemon.end()
