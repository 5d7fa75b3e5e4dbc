"""What an agent may not do with a message: give a shell its commands, and interrupt a person's turn."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.test_mcp import tools_of
from tests.support.daemon import Answer, Daemon, eventually
from tests.support.threaded import ThreadedDaemon, real_one

pytestmark = pytest.mark.timeout(180)

SHELL = {"profile": "generic", "args": ["sh"], "extra_env": {"PS1": "$ "}}
FREE = """
[agents.willing]
profile = "generic"
cwd = "/"
autostart = true
accept_agents = true
args = ["sh"]
env.PS1 = "$ "
"""
STOPS = 'extends = "dummy"\nrights = ["stop_agents"]\n'


@pytest.fixture
def daemon(tmp_path: Path, kind: type[Daemon]) -> Iterator[Daemon]:
    daemon = kind(tmp_path / "home")
    profiles = daemon.home / "config" / "profiles"
    profiles.mkdir()
    (profiles / "chief.toml").write_text(STOPS)
    yield daemon.start()
    daemon.end()


def token_of(daemon: Daemon, agent: dict[str, Any]) -> str:
    return daemon.token_of(agent["id"])


def inside(daemon: Daemon, agent: dict[str, Any]) -> dict[str, str]:
    """What a command that the agent runs has in its environment."""
    return {
        "SYNAPSED_HOME": "",
        "SYNAPSE_AGENT_ID": agent["id"],
        "SYNAPSE_CONTROL_SOCKET": str(daemon.socket),
        "SYNAPSE_AGENT_TOKEN": token_of(daemon, agent),
    }


def post(daemon: Daemon, agent: dict[str, Any], path: str, body: Mapping[str, Any]) -> Answer:
    """A request in the agent's name."""
    headers = {"Authorization": f"Bearer {token_of(daemon, agent)}", "A2A-Version": "1.0"}
    return daemon.request("POST", path, dict(body), headers)


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"message": {"role": "user", "parts": [{"type": "text", "text": text}]}, **more}


def rpc(text: str, **metadata: Any) -> dict[str, Any]:
    sent = {"messageId": text[-20:], "role": "ROLE_USER", "parts": [{"text": text}]}
    params = {"message": sent, "configuration": {"returnImmediately": True}, "metadata": metadata}
    return {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}


def typed(daemon: Daemon, agent: str) -> list[str]:
    """What the program was given, line by line: by itself, or as a real one's screen shows it."""
    if isinstance(daemon, ThreadedDaemon):
        return daemon.link(agent).typed
    lines = daemon.ctl("screen", agent).out.splitlines()
    return [line[2:] for line in lines if line.startswith("$ ") and line != "$ "]


async def test_what_an_agent_writes_is_no_command_of_a_shell(daemon: Daemon, tmp_path: Path) -> None:
    ann = daemon.start_agent(name="ann")
    daemon.start_agent(name="shell", cwd=str(tmp_path), **SHELL)
    bad = "hello; touch ran"
    for path in ("tasks/send", "tasks/send-priority?priority=2", "tasks/sendSubscribe"):
        answer = post(daemon, ann, f"/agents/shell/{path}", message(bad))
        assert (answer.status, answer.json["error"]["code"]) == (403, "FORBIDDEN"), path
        assert "no model reads what is typed to shell (generic)" in answer.json["error"]["message"]
        assert "--allow-agents" in answer.json["error"]["message"]
    error = post(daemon, ann, "/agents/shell/a2a", rpc(bad)).json["error"]
    assert "no model reads" in json.dumps(error)
    rest = post(daemon, ann, "/agents/shell/a2a/rest/message:send", rpc(bad)["params"])
    assert rest.status == 403, rest.body
    for arguments in (("shell", bad), ("shell", "--wait", "--", bad), ("--type", "generic", "--", bad)):
        sent = daemon.ctl("send", *arguments, env=inside(daemon, ann))
        assert (sent.code, "no model reads" in sent.err) == (6, True), sent
    async with tools_of(daemon, ann) as tools:
        text, wrong = await tools.call("send_message", to="shell", message=bad)
        assert (wrong, "no model reads" in text) == (True, True)
    elsewhere = daemon.ctl("send", "shell", "--from", "ann@laptop", "--", bad)
    assert (elsewhere.code, "no model reads" in elsewhere.err) == (6, True), "an agent's that another host passes on"
    assert daemon.ctl("tasks", "shell", "--json").json == []
    assert daemon.ctl("send", "shell", "--wait", "--", "echo of a person").out == "of a person\n"
    assert typed(daemon, "shell") == ["echo of a person"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.night
@real_one
def test_a_person_may_allow_it(daemon: Daemon) -> None:
    ann = daemon.start_agent(name="ann")
    started = daemon.ctl(
        "start", "generic", "--name", "open", "--allow-agents", "--save", "--cwd", "/", "--env", "PS1=$ ", "--", "sh"
    )
    assert started.code == 0, started.err
    assert "accept_agents = true" in (daemon.home / "config" / "agents.d" / "open.toml").read_text()
    with daemon.config_file.open("a") as file:
        file.write(FREE)
    assert daemon.ctl("reload").code == 0
    for name in ("open", "willing"):
        daemon.ready(name)
        sent = daemon.ctl("send", name, "--wait", "--", "said; echo yes", env=inside(daemon, ann))
        assert (sent.code, "yes" in sent.out) == (0, True), sent
    daemon.kill9()
    daemon.start()
    daemon.ready("open")
    assert post(daemon, ann, "/agents/open/tasks/send", message("echo again")).status == 200
    daemon.config_file.write_text(daemon.config_file.read_text().replace("accept_agents = true", ""))
    assert daemon.ctl("reload").code == 0
    daemon.ready("willing")
    assert post(daemon, ann, "/agents/willing/tasks/send", message("echo again")).status == 403


def test_a_reply_is_not_typed_to_a_shell_that_asked(daemon: Daemon, tmp_path: Path) -> None:
    daemon.start_agent(name="ann")
    shell = daemon.start_agent(name="shell", cwd=str(tmp_path), **SHELL)
    created = post(daemon, shell, "/agents/shell/tasks/create", message("x", metadata={"direction": "outgoing"}))
    own = created.json["task"]["id"]
    asked = message("echo touch ran", metadata={"sender_task_id": own, "response_expected": True})
    assert post(daemon, shell, "/agents/ann/tasks/send", asked).status == 200
    task = daemon.ended(own)
    assert "touch ran" in task["artifacts"][0]["parts"][0]["text"], "it is in the task all the same"
    assert daemon.ctl("send", "shell", "--wait", "--", "echo next").out == "next\n"
    assert [task["id"] for task in daemon.ctl("tasks", "shell", "--json").json if "reply_to" in task["metadata"]] == []
    assert typed(daemon, "shell") == ["echo next"]
    assert not (tmp_path / "ran").exists()


async def test_an_agent_does_not_interrupt_a_person_s_turn(daemon: Daemon) -> None:
    ann, chief = daemon.start_agent(name="ann"), daemon.start_agent(profile="chief", name="chief")
    daemon.start_agent(name="worker")
    turn = daemon.send("busy 120", "worker")
    daemon.task_in(turn, "working")
    rest = "/agents/worker/tasks"
    urgent = message("now", priority=5)
    for path, body in (
        (f"{rest}/send", urgent),
        (f"{rest}/sendSubscribe", urgent),
        (f"{rest}/send-priority?priority=5", message("now")),
    ):
        answer = post(daemon, ann, path, body)
        assert (answer.status, answer.json["error"]["code"]) == (403, "FORBIDDEN"), path
        assert "send with priority 4 at most" in answer.json["error"]["message"]
    error = post(daemon, ann, "/agents/worker/a2a", rpc("now", synapsed={"priority": 5})).json["error"]
    assert "priority 4 at most" in json.dumps(error)
    for words in (["now"], []):
        sent = daemon.ctl("send", "worker", "--priority", "5", *words, env=inside(daemon, ann))
        assert (sent.code, "may not interrupt" in sent.err) == (6, True), sent
    async with tools_of(daemon, ann) as tools:
        text, wrong = await tools.call("send_message", to="worker", message="now", priority=5, wait=False)
        assert (wrong, "priority 4 at most" in text) == (True, True)
    passed = daemon.ctl("send", "worker", "--priority", "5", "--from", "ann@laptop", "--", "now")
    assert (passed.code, "may not interrupt" in passed.err) == (6, True), passed
    assert daemon.task(turn)["status"] == "working", "all that left the turn alone"
    assert post(daemon, ann, f"{rest}/send", message("later", priority=4)).status == 200
    with_right = post(daemon, chief, f"{rest}/send", urgent)
    assert with_right.status == 200, with_right.json
    eventually(lambda: daemon.task(turn)["status"] == "canceled", "the one with the right interrupts it")
    own = post(daemon, chief, "/agents/chief/tasks/send", urgent)
    assert own.status == 403, "never itself"
