"""Secrets in environments, configuration, dialogs and tokens: nothing that is written or told has one."""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from threading import Thread

import psutil
import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually
from tests.support.secrets import planted

SECRET = "hunter2-Geheimnis"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS).start()
    yield daemon
    daemon.end()


@pytest.mark.parametrize("way", ["task", *(pytest.param(way, marks=pytest.mark.night) for way in ("agent", "http"))])
def test_a_password_is_neither_kept_nor_told(daemon: Daemon, way: str) -> None:
    daemon.start_agent()
    streamed: list[str] = []

    def listen(path: str) -> None:
        with contextlib.suppress(OSError, HTTPException), daemon.sse(path, last_id=0) as events:
            streamed.extend(json.dumps(event, ensure_ascii=False) for event in events)

    for path in ("/events", "/agents/dummy/events"):
        Thread(target=listen, args=(path,), daemon=True).start()
    task = daemon.send("ask password")
    Thread(target=listen, args=(f"/agents/dummy/tasks/{task}/subscribe",), daemon=True).start()
    asked = daemon.task_in(task, "input_required", "completed", "failed")
    assert asked["prompt"]["type"] == "password", asked
    if way == "http":
        given = {"input": SECRET, "prompt_id": asked["prompt"]["prompt_id"]}
        assert daemon.post(f"/agents/dummy/tasks/{task}/input", given).status == 200
    else:
        assert daemon.ctl("input", task if way == "task" else "dummy", "-", stdin=SECRET + "\n").code == 0
    done = daemon.ended(task)
    assert f"{len(SECRET)} characters" in done["artifacts"][0]["parts"][0]["text"], "the program has it"
    eventually(lambda: any('"completed"' in event for event in streamed), "the end is streamed")
    for look in ("/agents/dummy/status", "/agents/dummy/screen", f"/agents/dummy/tasks/{task}", "/control/status"):
        assert SECRET not in daemon.get(look).body.decode()
    assert daemon.ctl("logs", "dummy").out.count(SECRET) == 0
    daemon.end()
    assert not [event for event in streamed if SECRET in event]
    written = [path for path in daemon.home.rglob("*") if path.is_file()]
    assert any(path.name == "synapsed.db" for path in written)
    assert not [str(path) for path in written if SECRET.encode() in path.read_bytes()]


@pytest.mark.night
@pytest.mark.parametrize(
    ("asks", "kind"),
    [
        ("read -r -s -p '[sudo] password for me: ' it", "password"),
        ("read -r -s -p 'Enter the magic word: ' it", "text"),
    ],
)
def test_what_a_shells_terminal_hides_is_neither_kept_nor_told(daemon: Daemon, asks: str, kind: str) -> None:
    """In the middle of a task, answered by A2A."""
    daemon.start_agent(profile="generic", name="shell", args=["bash", "--norc"], env={"PS1": "$ "})
    task = daemon.send(f"{asks}; echo; echo it has ${{#it}}", "shell")
    assert daemon.task_in(task, "input_required", "completed", "failed")["prompt"]["type"] == kind
    message = {"messageId": "m1", "role": "ROLE_USER", "taskId": task, "parts": [{"text": SECRET}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    told = [daemon.request("POST", "/agents/shell/a2a", call, {"A2A-Version": "1.0"}).body.decode()]
    done = daemon.ended(task)
    assert f"it has {len(SECRET)}" in done["artifacts"][0]["parts"][0]["text"], "the program has it"
    told += [daemon.get(f"/agents/shell/{look}").body.decode() for look in ("status", f"tasks/{task}", "screen")]
    call = {"jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": {"id": task, "historyLength": 10}}
    told.append(daemon.request("POST", "/agents/shell/a2a", call, {"A2A-Version": "1.0"}).body.decode())
    told.append(daemon.ctl("logs", "shell").out)
    daemon.ctl("logs", "shell", "--cast", str(daemon.home / "shell.cast"))
    daemon.end()
    assert not [text for text in told if SECRET in text]
    written = [path for path in daemon.home.rglob("*") if path.is_file()]
    assert {"synapsed.db", "shell.cast"} <= {path.name for path in written}
    assert not [str(path) for path in written if SECRET.encode() in path.read_bytes()]


@pytest.mark.slow
@pytest.mark.cold  # what a shell would see of its command line is looked at too
def _keepers(daemon: Daemon) -> list[int]:
    """None where a program has just ended: the next list has the one that is started for it."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [psutil.Process(agent["pid"]).ppid() for agent in daemon.get("/agents").json if agent["pid"]]
    return []


def test_no_secret_is_in_anything_that_is_written(tmp_path: Path) -> None:
    """A life with all that is logged in it: starts, turns, a crash, a refusal, reloads, a kill of the daemon."""
    secrets = {name: f"hush-{name}-4711" for name in ("daemon", "shell", "option", "configured", "file", "changed")}
    config = (
        f'{ANY_PORTS}[agents.dummy]\nautostart = true\nenv_file = "secrets.env"\n'
        'restart = {policy = "always", initial = 0.05}\nenv = {MY_PIN = "%s"}\n'
    )
    daemon = Daemon(
        tmp_path, environ={**os.environ, "OWN_KEY": secrets["daemon"]}, config=config % secrets["configured"]
    )
    (tmp_path / "config" / "secrets.env").write_text(f"FILE_KEY={secrets['file']}\n")
    told: list[str] = []
    daemon.start("--log-level", "debug", "--log-file")
    try:
        first = daemon.ready()
        shell = {"SHELL_KEY": secrets["shell"]}
        for command in (
            ("start", "dummy", "--name", "second", "--cwd", "/", "--env", f"OPTION_KEY={secrets['option']}"),
            ("start", "generic", "--name", "absent", "--cwd", "/", "--", "no-such-program"),
            ("send", "second", "--wait", "hello"),
            ("kill", "dummy"),
        ):
            done = daemon.ctl(*command, env=shell)
            told += [done.out, done.err]
        environ = Path(f"/proc/{daemon.agent('second')['pid']}/environ").read_text()
        assert all(secrets[name] in environ for name in ("shell", "option")), "the program has them"
        secrets["agent token"] = environ.partition("SYNAPSE_AGENT_TOKEN=")[2].partition("\0")[0]
        secrets["token"] = (tmp_path / "state" / "token").read_text().strip()
        assert all(secrets.values())
        again = eventually(lambda: (new := daemon.ready()["pid"]) != first["pid"] and new, "it was started again")
        assert secrets["file"] in Path(f"/proc/{again}/environ").read_text()
        _ask_a_password(daemon, "second")
        secrets["password"] = SECRET
        daemon.kill9()
        daemon.start("--log-level", "debug", "--log-file")
        daemon.ready("second")
        daemon.config_file.write_text(config % secrets["changed"])
        told += [daemon.ctl("reload", "--dry-run").out, daemon.ctl("reload").out]
        daemon.config_file.write_text(config % secrets["changed"] + 'env = "hush-daemon-4711"\n')
        told.append(daemon.ctl("reload").err)
        for command in (
            ("list", "--json"),
            ("status", "second", "--json"),
            ("doctor",),
            ("logs", "second"),
            ("tasks",),
        ):
            done = daemon.ctl(*command, env=shell)
            told += [done.out, done.err]
        told += [daemon.get(path).body.decode() for path in ("/control/status", "/agents/second/status?detail=1")]
        keepers = eventually(lambda: _keepers(daemon), "each agent's program lives")
        told += [" ".join(psutil.Process(pid).cmdline()) for pid in (daemon.pid, *keepers)]
    finally:
        daemon.end()
    assert not [(name, text) for text in told for name, secret in secrets.items() if secret in text]
    logs = [tmp_path / "state" / "logs" / "synapsed.log", *tmp_path.glob("state/agents/*/agent.log")]
    assert len(logs) > 2
    assert all(b"process" in path.read_bytes() for path in logs), "the logs have something in them"
    # What belongs to the person, the token's own file, and the one place that a program is started again from.
    kept = {daemon.config_file, tmp_path / "config" / "secrets.env", tmp_path / "state" / "token"}
    database = tmp_path / "state" / "synapsed.db"
    for path in (path for path in tmp_path.rglob("*") if path.is_file() and path not in kept):
        found = [name for name, secret in secrets.items() if secret.encode() in path.read_bytes()]
        assert found == [] or path == database, (path, found)
    environments = {("agents", name) for name in secrets if name not in ("password", "token", "agent token")}
    assert _in_database(database, secrets) <= environments
    assert all(path.stat().st_mode & 0o077 == 0 for path in (database, tmp_path / "state" / "token"))


def _ask_a_password(daemon: Daemon, agent: str) -> None:
    task = daemon.send("ask password", agent)
    assert daemon.task_in(task, "input_required", "completed", "failed")["prompt"]["type"] == "password"
    assert daemon.ctl("input", task, "-", stdin=SECRET + "\n").code == 0
    assert daemon.ended(task)["status"] == "completed"


def _in_database(path: Path, secrets: dict[str, str]) -> set[tuple[str, str]]:
    """(table, which secret) of every row that has one."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        rows = [(table, repr(row)) for table in tables for row in connection.execute(f"SELECT * FROM {table}")]
    finally:
        connection.close()
    return {(table, name) for table, row in rows for name, secret in secrets.items() if secret in row}


@pytest.mark.night
def test_no_known_format_is_told_or_can_be_read_in_the_database(daemon: Daemon) -> None:
    """Of a message, its answer, a tool's input and output and a report; the program and its asker have them exactly."""
    formats = planted("daemon")
    daemon.start_agent()
    streamed: list[str] = []

    def listen(path: str) -> None:
        with contextlib.suppress(OSError, HTTPException), daemon.sse(path, last_id=0) as events:
            streamed.extend(json.dumps(event, ensure_ascii=False) for event in events)

    for path in ("/events", "/agents/dummy/events", "/events?batch=50ms"):
        Thread(target=listen, args=(path,), daemon=True).start()
    for text, secret in formats.values():
        tool = {"tool_name": "shell", "input": {"command": text}, "call_id": "1"}
        for data in ({**tool, "status": "started"}, {**tool, "status": "completed", "output": {"text": text}}):
            assert daemon.post("/agents/dummy/events", {"event": "toolExecution", "data": data}).status == 200
        assert daemon.post("/agents/dummy/events", {"kind": "note", "message": f"see: {text}"}).status == 200
        if "\n" not in text:
            done = daemon.ended(daemon.send(f"echo {text}"))
            assert secret in done["message"]["parts"][0]["text"]
    last = daemon.ended(daemon.send("echo the last one"))["id"]
    eventually(lambda: any(last in event and '"completed"' in event for event in streamed), "the end is streamed")
    told = [*streamed, daemon.get("/metrics").body.decode(), daemon.ctl("events", "--after", "0", "--json").out]
    history = daemon.ctl("history", "--json", "--limit", "1000")
    assert "missing" not in history.err
    assert len(history.json) > 100, "all of it is in the history"
    told += [history.out, daemon.ctl("history", "use").out]
    daemon.end()
    names = ("synapsed.db", "history.db")
    database = [path for path in (daemon.home / "state").iterdir() if path.name.startswith(names)]
    assert {path.name for path in database} >= set(names)
    logs = [path for path in daemon.home.rglob("*.log") if "keeper" not in path.name]
    for name, (_, secret) in formats.items():
        assert not [text[:200] for text in told if secret in text], name
        for path in (*database, *logs):
            assert secret.encode() not in path.read_bytes(), (name, path)
