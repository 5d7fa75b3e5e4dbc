"""`synapsectl acp` beside a daemon, with the scripted agent: what an editor may ask, and all that may go wrong."""

import base64
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.acp import Editor, Refused, answer_in, editor
from tests.support.daemon import Daemon, eventually
from tests.support.threaded import ThreadedDaemon, real_one
from tests.synapsectl.pty_tool import PtyTool

pytestmark = pytest.mark.timeout(120)

ACP_AGENT = Path(__file__).parents[2] / "support" / "acp_agent.py"


def said(one: Editor, kind: str = "agent_message_chunk") -> list[str]:
    return [update["content"]["text"] for update in one.updates(kind)]


def cancel(one: Editor) -> None:
    one.write({"method": "session/cancel", "params": {"sessionId": one.session}})


# --- initialize -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2, 65535])
def test_any_version_is_answered_with_ours(daemon: Daemon, version: int) -> None:
    with editor(daemon, greet=False) as opened:
        told = opened.initialize(version)
    assert (told["protocolVersion"], told["authMethods"]) == (1, [])
    assert told["agentCapabilities"]["loadSession"] is True
    assert set(told["agentCapabilities"]["sessionCapabilities"]) == {"list", "resume", "close"}


def test_who_speaks_version_2_is_answered_with_ours(daemon: Daemon, agent: dict[str, Any], folder: Path) -> None:
    """It asks in the form of version 2, hears 1, and goes on in that."""
    with editor(daemon, "ann", greet=False) as opened:
        told = opened.call("initialize", protocolVersion=2, info={"name": "x", "version": "1"}, capabilities={})
        assert (told["protocolVersion"], "agentCapabilities" in told) == (1, True)
        opened.session = opened.call("session/new", cwd=str(folder))["sessionId"]
        assert opened.prompt("reverse abc")[1] == "cba"


@pytest.mark.parametrize(
    ("able", "offered"),
    [
        ({"auth": {"terminal": True}}, ["terminal"]),
        ({"_meta": {"terminal-auth": True}}, ["terminal"]),
        ({"auth": {"terminal": False}, "terminal": True}, []),
        ({"auth": 5, "_meta": []}, []),
        (7, []),
    ],
)
def test_a_sign_in_is_offered_to_who_can_open_a_terminal(daemon: Daemon, able: Any, offered: list[str]) -> None:
    with editor(daemon, greet=False) as opened:
        told = opened.call("initialize", protocolVersion=1, clientCapabilities=able)
    assert [(method["type"], method["args"]) for method in told["authMethods"]] == [(o, ["--sign-in"]) for o in offered]


def test_the_sign_in_is_the_agents_terminal(daemon: Daemon, agent: dict[str, Any], folder: Path) -> None:
    """By its name, and by the folder: the command that the editor has, with what is added to it."""
    shown = daemon.ctl("screen", "ann").out.split()[-1].encode()
    for arguments in (["acp", "ann", "--sign-in"], ["acp", "--sign-in"]):
        tool = PtyTool(*arguments, before=f"import os; os.chdir({str(folder)!r})", env=daemon.env)
        try:
            tool.until(shown)
            tool.type(b"\x1d")
            assert tool.end() == 0
        finally:
            tool.close()
    done = daemon.ctl("acp", "ann", "--sign-in")
    assert (done.code, "terminal" in done.err) == (2, True), done.err
    tool = PtyTool("acp", "nobody", "--sign-in", env=daemon.env)
    assert tool.end() == 4
    tool.close()


def test_what_is_wrong_is_answered_with_its_code_and_nothing_ends(daemon: Daemon) -> None:
    with editor(daemon, greet=False) as opened:

        def code_of(line: bytes) -> int:
            before = len(opened.messages)
            opened.raw(line + b"\n")
            answer = opened.see(lambda messages: messages[before:], "an answer")[0]
            return int(answer["error"]["code"])

        assert code_of(b"not json") == -32700
        assert code_of(b"x" * (16 * 1024 * 1024)) == -32700
        assert code_of(b"[]") == -32600
        assert code_of(b'[{"jsonrpc":"2.0","id":1,"method":"session/list"}]') == -32600  # a batch, which version 2 has
        assert code_of(b'{"jsonrpc":"2.0","id":"early","method":"session/list"}') == -32600  # initialize comes first
        for version in ("1", True, -1, None, 1.5):
            with pytest.raises(Refused) as refused:
                opened.call("initialize", protocolVersion=version)
            assert (refused.value.code, refused.value.data) == (-32602, {"path": "protocolVersion"})
        opened.initialize()
        for method in (
            *("authenticate", "logout", "session/set_mode", "session/set_config_option", "session/delete"),
            *("session/fork", "auth/login", "fs/read_text_file", "_mine/x"),
        ):
            with pytest.raises(Refused) as refused:
                opened.call(method)
            assert (refused.value.code, refused.value.data) == (-32601, {"method": method})
        for params in ({}, {"cwd": "relative"}, {"cwd": 3}, {"cwd": "/a\0b"}):
            with pytest.raises(Refused) as refused:
                opened.call("session/new", **params)
            assert (refused.value.code, refused.value.data) == (-32602, {"path": "cwd"})
        for method in ("session/prompt", "session/close", "session/load"):
            with pytest.raises(Refused) as refused:
                opened.call(method, sessionId="nobody", prompt=[{"type": "text", "text": "x"}], cwd="/")
            assert refused.value.code == -32002
        opened.write({"method": "session/cancel", "params": {"sessionId": "nobody"}})
        opened.write({"method": "$/unknown", "params": {}})
        opened.write({"id": "ask-99", "result": {}})
        assert opened.call("session/list") == {"sessions": []}


def test_an_agent_is_refused(daemon: Daemon, agent: dict[str, Any]) -> None:
    inside = {"SYNAPSE_CONTROL_SOCKET": str(daemon.socket), "SYNAPSE_AGENT_ID": agent["id"]}
    env = {**{k: v for k, v in daemon.env.items() if k != "SYNAPSED_HOME"}, **inside}
    refused = daemon.ctl("acp", "ann", stdin="", env=env)
    assert (refused.code, refused.out) == (6, "")
    assert "mcp" in refused.err
    status = daemon.request("GET", "/whoami", headers={"Authorization": f"Bearer {daemon.token_of(agent['id'])}"})
    assert status.json["agent"] == agent["id"]  # what acp asks before it opens a session


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_the_agent_in_the_editors_folder_is_the_session(daemon: Daemon, folder: Path, tmp_path: Path) -> None:
    daemon.start_agent(name="ann", cwd=str(folder))
    link = tmp_path / "link"
    link.symlink_to(folder)
    with editor(daemon) as opened:
        found = opened.new(link)
        assert found == daemon.agent("ann")["id"]
        with pytest.raises(Refused) as refused:
            opened.new(tmp_path)
        assert (refused.value.code, refused.value.data["code"]) == (-32002, "UNKNOWN_AGENT")
        assert "--start PROFILE" in refused.value.message
        daemon.start_agent(name="bob", cwd=str(folder))
        with pytest.raises(Refused) as refused:
            opened.new(folder)
        assert "ann, bob" in refused.value.message
        rows = opened.call("session/list", cwd=str(folder))["sessions"]
        assert [row["title"].split()[0] for row in rows] == ["ann", "bob"]
        assert opened.call("session/list", cwd=str(tmp_path)) == {"sessions": []}
        with pytest.raises(Refused) as refused:
            opened.call("session/list", cursor="7")
        assert refused.value.data == {"path": "cursor"}


def test_one_is_started_where_there_is_none_and_again_where_it_is_stopped(daemon: Daemon, folder: Path) -> None:
    with editor(daemon, "--start", "dummy") as opened:
        name = opened.new(folder)
        assert opened.prompt("reverse abc")[1] == "cba"
        assert daemon.ctl("stop", name).code == 0
        assert opened.new(folder) == name
        assert opened.prompt("reverse xyz")[1] == "zyx"
    with editor(daemon, "new", "--start", "dummy") as opened:
        assert opened.new(folder) == daemon.agent("new")["id"]
    assert daemon.ctl("stop", "new").code == 0
    with editor(daemon, "new") as opened, pytest.raises(Refused) as refused:
        opened.new(folder)
    assert "synapsectl restart new" in refused.value.message


def test_a_daemon_is_started_where_none_runs(tmp_path: Path, folder: Path) -> None:
    daemon = Daemon(tmp_path / "home")
    with editor(daemon, "--start", "dummy", "--no-spawn-daemon") as opened, pytest.raises(Refused) as refused:
        opened.new(folder)
    assert refused.value.data["code"] == "NO_DAEMON"
    with editor(daemon, "--start", "dummy") as opened:
        opened.new(folder)
        assert opened.prompt("reverse abc")[1] == "cba"
    assert daemon.ctl("shutdown").code == 0


def test_a_loaded_session_shows_what_was_and_a_resumed_one_does_not(daemon: Daemon, one: Editor) -> None:
    for text in ("reverse abc", "reverse def"):
        one.prompt(text)
    with editor(daemon) as two:
        assert two.call("session/load", sessionId=one.session, cwd="/", mcpServers=[]) == {}
        assert [(u["sessionUpdate"], u["content"]["text"]) for u in two.updates()] == [
            ("user_message_chunk", "reverse abc"),
            ("agent_message_chunk", "cba"),
            ("user_message_chunk", "reverse def"),
            ("agent_message_chunk", "fed"),
        ]
        own = [u["messageId"] for u in one.updates("agent_message_chunk")]
        assert own == [u["messageId"] for u in two.updates("agent_message_chunk")]
    with editor(daemon) as three:
        assert three.call("session/resume", sessionId="ann", cwd="/") == {}
        assert three.updates() == []
    daemon.start_agent(name="bob")
    with editor(daemon, "ann") as four, pytest.raises(Refused) as refused:
        four.call("session/load", sessionId="bob", cwd="/", mcpServers=[])
    assert refused.value.data["code"] == "FORBIDDEN"


def test_closing_a_session_cancels_its_prompt_and_stops_no_agent(daemon: Daemon, one: Editor) -> None:
    prompt = one.prompting("busy 60")
    eventually(lambda: daemon.agent("ann")["activity"] == "busy", "it works")
    assert one.call("session/close", sessionId=one.session) == {}
    assert one.answer(prompt)["stopReason"] == "cancelled"
    daemon.ready("ann")
    with pytest.raises(Refused):
        one.prompt("reverse abc")
    one.new("/")
    assert one.prompt("reverse abc")[1] == "cba"


# --- prompts ----------------------------------------------------------------------------------------------------------


def test_a_prompt_may_have_files_and_links(daemon: Daemon, one: Editor, folder: Path) -> None:
    image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"\x89PNG").decode()}
    note = {"type": "resource", "resource": {"uri": "file:///x/note.txt", "text": "words"}}
    _, text = one.prompt("see", {"type": "resource_link", "name": "n", "uri": "file:///x/y.py"}, image, note)
    assert text.startswith("You said: see /x/y.py (attached: image-1.png) /x/note.txt (attached: note.txt)")
    for name, content in (("image-1.png", b"\x89PNG"), ("note.txt", b"words")):
        (kept,) = (daemon.home / "state" / "agents").glob(f"*/inbox/*{name}")
        assert kept.read_bytes() == content
        assert str(kept) in text.replace("\n", "")


SPOKEN = """
extends = "dummy"

[[commands]]
name = "tidy"
description = "Tidies"

[[commands]]
name = "*"
description = "One of this project"
hint = "words"
files = "{cwd}/.own/*.md"
"""


def profile(daemon: Daemon, name: str, words: str) -> None:
    """A profile of the person's."""
    folder = daemon.home / "config" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(words)
    assert daemon.ctl("reload").code == 0


def offered(one: Editor) -> list[str]:
    """The commands that the editor was told of last."""
    told = one.see(lambda _: one.updates("available_commands_update"), "its commands")
    return [each["name"] for each in told[-1]["availableCommands"]]


def test_an_editor_is_told_the_programs_commands(daemon: Daemon, folder: Path) -> None:
    profile(daemon, "spoken", SPOKEN)
    (folder / ".own").mkdir()
    (folder / ".own" / "web.md").touch()
    (folder / ".own" / "a b.md").touch()
    with editor(daemon, "bob", "--start", "spoken") as one:
        one.new(folder)
        assert offered(one) == ["tidy", "web"]
        answered = next(n for n, m in enumerate(one.messages) if m.get("id") == 2)
        told = next(n for n, m in enumerate(one.messages) if "available_commands_update" in json.dumps(m))
        assert answered < told, "an editor knows the session by its answer"
        for said in ("/web two words", "/tidy", "/tidy now"):
            one.prompt(said)
        tasks = daemon.get("/control/tasks?agent=bob").json
        commands = {task["message"]["parts"][0]["text"]: bool(task["metadata"].get("command")) for task in tasks}
        assert commands == {"/web two words": True, "/tidy": True, "/tidy now": False}
        one.new(folder)
        one.see(lambda _: len(one.updates("available_commands_update")) == 2, "again, for the session that it opens")


@real_one
def test_an_editor_is_told_what_a_program_on_pipes_tells(daemon: Daemon, folder: Path) -> None:
    script = [sys.executable, "-S", "-E", "-I", str(ACP_AGENT), str(folder / "receipts"), "commands"]
    assert daemon.ctl("start", "acp", "--name", "p", "--cwd", str(folder), "--", *script).code == 0
    with editor(daemon, "p") as one:
        one.new(folder)
        assert offered(one) == ["web", "tidy"]
        assert one.prompt("/web two words")[1] == "You said: /web two words"
        assert one.prompt("/tidy now")[1] == "You said: [message] /tidy now"


@pytest.mark.parametrize("moment", ["at once", "it has the task", "it works"])
def test_a_prompt_that_is_canceled_is_canceled_whenever(daemon: Daemon, one: Editor, moment: str) -> None:
    for _ in range(5):
        prompt = one.prompting("busy 60")
        if moment == "it has the task":
            eventually(lambda: daemon.agent("ann")["task"], moment)
        elif moment == "it works":
            eventually(lambda: daemon.agent("ann")["activity"] == "busy", moment)
        cancel(one)
        assert one.answer(prompt)["stopReason"] == "cancelled"
    assert one.prompt("reverse abc")[1] == "cba"


def test_two_prompts_at_once_are_answered_each_with_its_own(one: Editor) -> None:
    first, second = one.prompting("sleep 0.3"), one.prompting("reverse abc")
    assert one.answer(first)["stopReason"] == one.answer(second)["stopReason"] == "end_turn"
    tasks = [m["result"]["_meta"]["synapsed"]["task"] for m in one.messages if m.get("id") in (first, second)]
    texts = {u["messageId"]: u["content"]["text"] for u in one.updates("agent_message_chunk")}
    assert texts[tasks[1]] == "cba"
    third, fourth = one.prompting("busy 60"), one.prompting("reverse abc")
    one.write({"method": "$/cancel_request", "params": {"requestId": third}})
    assert one.answer(third)["stopReason"] == "cancelled"
    assert one.answer(fourth)["stopReason"] == "end_turn"


def test_a_program_that_ends_fails_the_prompt(one: Editor) -> None:
    with pytest.raises(Refused) as refused:
        one.prompt("exit 3")
    assert (refused.value.code, refused.value.data["code"]) == (-32603, "AGENT_EXITED")


LIMITED = """
extends = "dummy"

[[limit]]
pattern = 'out of usage(?: · resets (?P<until>.+))?'
"""


def test_a_prompt_at_a_usage_limit_is_told_until_when(daemon: Daemon, folder: Path) -> None:
    """The one that meets it, and the one that waits behind."""
    profile(daemon, "limited", LIMITED)
    with editor(daemon, "bob", "--start", "limited") as one:
        one.new(folder)
        meets = one.prompting("fail out of usage · resets 3am")
        one.see(lambda _: len(one.updates("tool_call")) == 1, "it goes on then")
        cancel(one)
        assert one.answer(meets)["stopReason"] == "cancelled"
        waits = one.prompting("reverse abc")
        one.see(lambda _: len(one.updates("tool_call")) == 2, "it waits")
        assert daemon.ctl("cancel", "bob").code == 0
        assert one.answer(waits)["stopReason"] == "end_turn"
        titles = {each["title"].partition(" until ")[0] for each in one.updates("tool_call")}
        assert titles == {"bob has reached its usage limit: waits"}
        one.see(lambda _: len(one.updates("tool_call_update")) == 2, "both are over")
        assert [each["status"] for each in one.updates("tool_call_update")] == ["completed"] * 2


def test_an_editor_that_dies_leaves_its_turn_to_its_end(daemon: Daemon, one: Editor, folder: Path) -> None:
    one.prompting("until killed\nreverse abc")
    task = eventually(lambda: daemon.agent("ann")["task"], "it works")
    one.process.send_signal(signal.SIGKILL)
    (folder / "killed").touch()
    assert daemon.ended(task)["status"] == "completed"


def test_the_server_ends_with_its_editor(one: Editor) -> None:
    one.prompting("busy 60")
    assert one.process.stdin is not None
    one.process.stdin.close()
    assert one.process.wait(30) == 0


def test_an_editor_that_does_not_read_is_waited_for(daemon: Daemon, one: Editor) -> None:
    """Its pipe is full, then read: nothing is missing, and other clients did not wait."""
    os.kill(one.process.pid, signal.SIGSTOP)
    many = 20_000 if isinstance(daemon, ThreadedDaemon) else 900  # a real program's answer comes in many pieces
    prompts = [one.prompting(f"lines {n}") for n in (many, 3)]
    assert daemon.ctl("list").code == 0
    os.kill(one.process.pid, signal.SIGCONT)
    for prompt in prompts:
        assert one.answer(prompt)["stopReason"] == "end_turn"
    if isinstance(daemon, ThreadedDaemon):
        assert "".join(said(one)).count("line ") == many + 3


# --- permissions ------------------------------------------------------------------------------------------------------


def test_a_question_is_answered_in_the_editor(one: Editor) -> None:
    one.choose = lambda request: "2"
    _, text = one.prompt("ask 1/2/3")
    assert text.endswith("Answered: 2")
    (asked,) = one.requests()
    assert [option["kind"] for option in asked["params"]["options"]] == ["allow_once"] * 3


def test_a_question_that_is_answered_elsewhere_is_withdrawn(daemon: Daemon, one: Editor) -> None:
    prompt = one.prompting("ask y/n")
    asked = one.see(lambda _: one.requests(), "the editor is asked")[0]
    assert daemon.ctl("deny", "ann").code == 0
    assert one.answer(prompt)["stopReason"] == "end_turn"
    assert one.see(lambda _: one.withdrawn(), "it is withdrawn") == [asked["id"]]
    one.select(asked, "y")
    assert one.prompt("reverse abc")[1] == "cba"


def test_a_choice_of_nothing_leaves_it_to_the_terminal(daemon: Daemon, one: Editor) -> None:
    prompt = one.prompting("ask y/n")
    asked = one.see(lambda _: one.requests(), "the editor is asked")[0]
    one.select(asked, None)
    eventually(lambda: daemon.agent("ann")["activity"] == "waiting", "it waits on")
    assert daemon.ctl("approve", "ann").code == 0
    assert one.answer(prompt)["stopReason"] == "end_turn"
    assert len(one.requests()) == 1


def test_a_password_is_not_asked_for_in_the_editor(daemon: Daemon, one: Editor) -> None:
    prompt = one.prompting("ask password")
    (told,) = one.see(lambda _: one.updates("tool_call"), "it is told of")
    assert "synapsectl attach ann" in json.dumps(told)
    assert daemon.ctl("input", "ann", stdin="secret\n").code == 0
    assert one.answer(prompt)["stopReason"] == "end_turn"
    one.see(lambda _: one.updates("tool_call_update"), "it is over")
    assert not one.requests()


def test_two_editors_are_asked_and_the_first_answer_counts(daemon: Daemon, one: Editor) -> None:
    with editor(daemon, "ann") as two:
        two.new("/")
        first = one.prompting("ask y/n")
        one.see(lambda _: one.requests(), "the first is asked")
        second = two.prompting("reverse abc")
        asked = two.see(lambda _: two.requests(), "so is the one that waits behind it")[0]
        two.select(asked, "y")
        assert one.answer(first)["stopReason"] == two.answer(second)["stopReason"] == "end_turn"
        assert one.see(lambda _: one.withdrawn(), "it is withdrawn") == [one.requests()[0]["id"]]
        assert answer_in([m for m in two.messages if "id" not in m][:1]) in ("", "cba")


# --- the daemon, others, other hosts ----------------------------------------------------------------------------------


@real_one
@pytest.mark.parametrize("text", [pytest.param("sleep 1\nreverse abc", marks=pytest.mark.night), "ask y/n"])
def test_a_prompt_ends_right_over_a_kill_of_the_daemon(daemon: Daemon, one: Editor, text: str) -> None:
    one.choose = lambda request: "y"
    if text.startswith("ask"):
        one.choose = lambda request: None
    prompt = one.prompting(text)
    eventually(lambda: daemon.agent("ann")["task"], "it works")
    if text.startswith("ask"):
        one.see(lambda _: one.requests(), "the editor is asked")
    daemon.kill9()
    one.choose = lambda request: "y"
    for request in one.requests():
        one.select(request, "y")  # nobody is there to take it: it is asked again
    daemon.start()
    assert one.answer(prompt)["stopReason"] == "end_turn"
    assert "".join(said(one)).endswith(("cba", "Answered: y"))  # in one piece, or in two
    assert one.prompt("reverse xyz")[1] == "zyx"


@pytest.mark.night
@real_one
def test_a_prompt_that_is_sent_while_the_daemon_is_away_is_sent_once(daemon: Daemon, agent: Any, folder: Path) -> None:
    with editor(daemon, "ann", "--no-spawn-daemon") as opened:
        opened.new(folder)
        daemon.kill9()
        with pytest.raises(Refused) as refused:
            opened.prompt("reverse abc")
        assert refused.value.data["code"] == "NO_DAEMON"
        daemon.start()
        assert opened.prompt("reverse abc")[1] == "cba"
    tasks = daemon.get("/control/tasks?agent=ann").json
    assert len([task for task in tasks if "reverse abc" in json.dumps(task["message"])]) == 1


@real_one
def test_turns_of_others_are_shown_outside_of_prompts(daemon: Daemon, one: Editor) -> None:
    with editor(daemon, "ann") as two:
        two.new("/")
        assert one.prompt("reverse abc")[1] == "cba"
        two.see(lambda _: "cba" in said(two), "the other editor's turn")
        assert said(two, "user_message_chunk") == ["reverse abc"]
        assert daemon.ctl("send", "ann", "reverse def", "--wait").out == "fed\n"
        for each in (one, two):
            each.see(lambda _, each=each: "fed" in said(each), "what was sent from elsewhere")
        daemon.send("sleep 0.5\nreverse ghi", agent="ann")
        result, text = two.prompt("reverse jkl")
        assert (result["stopReason"], text) == ("end_turn", "lkj")
        two.see(lambda _: any(text.endswith("ihg") for text in said(two)), "the turn that ran before")


def test_an_agent_on_another_host(tmp_path: Path, kind: type[Daemon]) -> None:
    from tests.parts.elsewhere.test_hosts_of_daemons import FAKE_SSH, is_up

    hosts = tmp_path / "hosts"
    hosts.mkdir()
    there = kind(tmp_path / "box").start()
    (hosts / "box.lan").symlink_to(there.home)
    there.start_agent(name="ann")
    ssh = ["python3", str(FAKE_SSH), str(hosts)]
    here = kind(tmp_path / "here", config=there.config + f"[hosts]\nssh = {json.dumps(ssh)}\n").start()
    tool = here.home / "synapsectl"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m synapsectl "$@"\n')
    tool.chmod(0o700)
    assert here.ctl("host", "add", "box", "ssh://me@box.lan:22", "--synapsectl", str(tool)).code == 0
    is_up(here)
    with editor(here, "ann@box") as opened:
        assert opened.new("/") == f"{there.agent('ann')['id']}@box"
        assert opened.prompt("reverse abc")[1] == "cba"
        (row,) = opened.call("session/list")["sessions"]
        assert row["sessionId"] == opened.session
        opened.choose = lambda request: "n"
        assert opened.prompt("ask y/n")[1].endswith("Answered: n")
    with editor(here) as opened:
        assert opened.call("session/load", sessionId=f"{there.agent('ann')['id']}@box", cwd="/", mcpServers=[]) == {}
        assert "cba" in said(opened)
    assert there.end() == here.end() == 0
