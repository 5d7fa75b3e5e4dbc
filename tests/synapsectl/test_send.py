"""`send`: targets, messages, waiting and its ends."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import QueueFull
from synapsed.model.task import Artifact, Task, TaskState, TextPart
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon, Script, agent, answers, ends, fails, permission


def sent(daemon: FakeDaemon) -> list[tuple[str, dict[str, object]]]:
    return [(path, body) for method, path, body in daemon.requests if method == "POST"]


def text_of(daemon: FakeDaemon) -> str:
    body = sent(daemon)[-1][1]
    return body["message"]["parts"][0]["text"]  # type: ignore[index]


def test_send_prints_the_tasks_id(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("send", "claude", "hello")
    assert result.code == 0
    assert result.out.strip() in daemon.tasks
    path, body = sent(daemon)[-1]
    assert path == "/agents/claude/tasks/send"
    assert body == {
        "message": {"role": "user", "parts": [{"type": "text", "text": "hello"}]},
        "metadata": {},
        "priority": 1,
    }


@pytest.mark.parametrize(
    ("arguments", "stdin", "text"),
    [
        (["--", "--wait is a flag"], b"", "--wait is a flag"),
        (["--", "-x", "--", "y"], b"", "-x -- y"),
        (["two", "words"], b"", "two words"),
        (["- a list item"], b"", "- a list item"),
        (["日本語 🎉\nzwei"], b"", "日本語 🎉\nzwei"),
        (["-"], "aus der Röhre\nzwei\n".encode(), "aus der Röhre\nzwei"),
        (["-"], b"/not a command\n\n", "/not a command\n"),
    ],
)
def test_the_text_arrives_as_it_was_given(
    daemon: FakeDaemon, ctl: Ctl, arguments: list[str], stdin: bytes, text: str
) -> None:
    assert ctl("send", "claude", *arguments, stdin=stdin).code == 0
    assert text_of(daemon) == text


def test_options_may_stand_anywhere(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("send", "--priority", "4", "claude", "--context", "c9", "hi", "--command", "--from", "bob")
    assert result.code == 0
    body = sent(daemon)[-1][1]
    assert (body["priority"], body["context_id"], body["command"]) == (4, "c9", True)
    assert body["metadata"] == {"sender": {"sender_id": "bob"}}
    assert ctl("send", "claude", "hi", "--new-conversation").code == 0
    assert sent(daemon)[-1][1]["metadata"] == {"new_conversation": True}


def test_wrong_calls_send_nothing(daemon: FakeDaemon, ctl: Ctl, home: Path) -> None:
    big = home / "big"
    big.write_bytes(b"x" * (10 * 1024 * 1024 + 1))
    for arguments, stdin in [
        (["claude"], b""),
        ([], b""),
        (["claude", ""], b""),
        (["claude", "-"], b""),
        (["claude", "-"], b"\xff\xfe"),
        (["claude", "-"], b"x" * (11 * 1024 * 1024)),
        (["claude", "x", "--file", "/no/such/file"], b""),
        (["claude", "x", "--file", str(big)], b""),
        (["claude", "x", "--priority", "6"], b""),
        (["--all", "--type", "t", "x"], b""),
        (["claude", "x", "--follow", "--json"], b""),
        (["claude", "x", "--unknown"], b""),
        (["claude", "x", "--wait", "--timeout", "soon"], b""),
        (["claude", "x", "--wait", "--timeout", "-1"], b""),
    ]:
        assert ctl("send", *arguments, stdin=stdin).code == 2, arguments
    assert sent(daemon) == []


def test_a_file_goes_with_the_message(daemon: FakeDaemon, ctl: Ctl, home: Path) -> None:
    (home / "a.txt").write_text("inhalt")
    assert ctl("send", "claude", "look", "--file", str(home / "a.txt")).code == 0
    part = sent(daemon)[-1][1]["message"]["parts"][1]  # type: ignore[index]
    assert part == {"type": "file", "file": {"name": "a.txt", "mimeType": "text/plain", "bytes": "aW5oYWx0"}}


def test_several_targets(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("send", "claude,codex,claude", "hi")
    assert [line.split("\t")[1] for line in result.out.splitlines()] == ["claude", "codex"]
    daemon.requests.clear()
    assert ctl("send", "claude,nobody", "hi").code == 4
    assert sent(daemon) == [], "an unknown name stops the whole"


def test_a_team_is_its_members(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.teams = [{"name": "both", "members": ["claude", "codex"]}]
    result = ctl("send", "@both,codex", "hi")
    assert [line.split("\t")[1] for line in result.out.splitlines()] == ["claude", "codex"]


def test_all_and_type(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.agents["old"] = agent("old", kind="codex", port=8121, state="stopped")
    assert json.loads(ctl("send", "--all", "hi", "--json").out)["tasks"][1]["agent"] == "codex"
    daemon.requests.clear()
    ctl("send", "--type", "codex", "hi")
    assert [path for path, _ in sent(daemon)] == ["/agents/codex/tasks/send"]
    assert ctl("send", "--type", "gemini", "hi").code == 4


def test_wait_prints_the_answer_and_nothing_else(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("send", "claude", "hello", "--wait")
    assert result == (0, "the **answer**\n```\ncode\n```\n", "")


def test_wait_for_several_gathers_one_table(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.script = answers("yes\nand no")
    result = ctl("send", "--all", "hello", "--wait")
    assert result.code == 0
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [(agent, status, answer) for agent, _, status, answer in rows] == [
        ("claude", "completed", "yes and no"),
        ("codex", "completed", "yes and no"),
    ]
    gathered = json.loads(ctl("send", "claude,codex", "hello", "--wait", "--json").out)["tasks"]
    assert [(one["agent"], one["task"]["status"]) for one in gathered] == [
        ("claude", "completed"),
        ("codex", "completed"),
    ]


def test_an_answer_off_the_screen_is_marked(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.script = answers("perhaps", exact=False)
    result = ctl("send", "claude", "hello", "--wait")
    assert result == (0, "perhaps\n", "synapsectl: this answer was read off the screen and may not be exact\n")
    several = ctl("send", "--all", "hello", "--wait")
    assert several.err == "synapsectl: the answers of claude, codex were read off the screen and may not be exact\n"
    assert json.loads(ctl("send", "claude", "hello", "--wait", "--json").out)["task"]["exact"] is False


def test_wait_json_is_one_document(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("send", "claude", "hello", "--wait", "--json")
    task = json.loads(result.out)["task"]
    assert (task["status"], task["exact"]) == ("completed", True)


def test_follow_streams(daemon: FakeDaemon, ctl: Ctl) -> None:
    def script(fake: FakeDaemon, task: object) -> None:
        for text in ("Hel", "Hello", "Hello you"):
            fake.artifact(task, Artifact(artifact_id="m", name="progress", parts=[TextPart(text=text)]))  # type: ignore[arg-type]
        answers("done")(fake, task)  # type: ignore[arg-type]

    daemon.script = script
    assert ctl("send", "claude", "x", "--follow").out == "Hello you\nlooking…\ndone\n"


def pieces(*told: tuple[str, str, bool, bool]) -> Script:
    """`artifact_id`, text, append, last."""

    def script(fake: FakeDaemon, task: object) -> None:
        for key, text, append, last in told:
            artifact = Artifact(artifact_id=key, parts=[TextPart(text=text)])
            fake.artifact(task, artifact, append=append, last=last)  # type: ignore[arg-type]
        ends(TaskState.COMPLETED)(fake, task)  # type: ignore[arg-type]

    return script


@pytest.mark.parametrize(
    ("told", "printed"),
    [
        ([("answer", "Hello", True, False), ("answer", " you", True, False), ("answer", "Hello you.", False, True)],
         "Hello you.\n"),
        ([("answer", "Hello", True, False), ("answer", "**Hello**", False, True)], "Hello\n**Hello**\n"),
        ([("answer", "Helo", True, False), ("answer", "Hello", False, False), ("answer", "Hello you", False, True)],
         "Helo\nHello you\n"),
        ([("answer", "First I", True, False), ("progress-1", "First I look.", False, True),
          ("answer", "Done", False, False), ("answer", "Done.", False, True)], "First I look.\nDone.\n"),
        ([("answer", "a\n```\nb\n```", False, True), ("answer.1", "a", False, True), ("answer.2", "b", False, True)],
         "a\n```\nb\n```\n"),
    ],
    ids=["growing", "off the screen", "half-drawn", "progress", "blocks"],
)  # fmt: skip
def test_follow_prints_each_word_once(
    daemon: FakeDaemon, ctl: Ctl, told: list[tuple[str, str, bool, bool]], printed: str
) -> None:
    daemon.script = pieces(*told)
    assert ctl("send", "claude", "x", "--follow").out == printed


def test_a_failed_task_is_1(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.script = fails("AGENT_EXITED", "it exited with code 7")
    result = ctl("send", "claude", "x", "--wait")
    assert (result.code, result.out) == (1, "")
    assert "AGENT_EXITED: it exited with code 7" in result.err
    daemon.script = ends(TaskState.CANCELED)
    result = ctl("send", "claude", "x", "--wait", "--json")
    assert result.code == 1
    assert json.loads(result.out)["task"]["status"] == "canceled"


def test_a_prompt_is_7_with_the_options_on_stderr(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.script = ends(TaskState.INPUT_REQUIRED, prompt=permission())
    result = ctl("send", "claude", "x", "--wait")
    assert (result.code, result.out) == (7, "")
    task = next(iter(daemon.tasks))
    for expected in ("Do you want to proceed?", "2  Yes, and don't ask again", f"synapsectl input {task[:8]} 1"):
        assert expected in result.err


def test_a_prompt_outside_any_task_that_a_rule_answers_is_no_7(
    daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is answered between two looks."""
    daemon.script = lambda fake, task: None
    looks: list[str] = []

    def held(_: object, task: dict[str, Any]) -> dict[str, Any] | None:
        looks.append(task["id"])
        if len(looks) == 1:
            return permission().model_dump(mode="json")
        answers("done")(daemon, daemon.tasks[task["id"]])
        return None

    monkeypatch.setattr("synapsectl.waiting.Waiter._held", held)
    monkeypatch.setattr("synapsectl.waiting.RULE_LOOK", 0.0)
    assert ctl("send", "claude", "x", "--wait").code == 0


def test_a_prompt_outside_any_task_is_7_too(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.script = lambda fake, task: None
    daemon.agents["claude"] = agent("claude", activity="waiting", prompt=permission(), held="dialog")
    result = ctl("send", "claude", "x", "--wait")
    assert result.code == 7
    assert "Do you want to proceed?" in result.err
    assert "cannot take a message" not in result.err, "what it asks says why"


def test_keys_that_are_being_read_are_nothing_to_speak_of(
    daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.script = lambda fake, task: None
    daemon.agents["claude"] = agent("claude", held="unread")
    quiet = ctl("send", "claude", "x", "--wait", "--timeout", "2")
    assert (quiet.code, "cannot take" in quiet.err) == (5, False)
    monkeypatch.setattr("synapsectl.waiting.LONG_WAIT", 0.0)
    told = ctl("send", "claude", "x", "--wait", "--timeout", "2")
    assert "claude cannot take a message now: it has not read what was typed\n" in told.err


def test_an_agent_that_does_not_come_up_is_told(daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapsectl.waiting.LONG_START", 0.0)
    daemon.script = lambda fake, task: None
    daemon.agents["claude"] = agent("claude", activity="starting", evidence="composer: no prompt at the cursor")
    result = ctl("send", "claude", "x", "--wait", "--timeout", "2")
    assert result.code == 5
    assert result.err.startswith(
        "synapsectl: claude is starting, and takes no message yet (composer: no prompt at the cursor); "
        "'synapsectl status claude --explain' says more\n"
    )


def test_the_timeout_ends_the_waiting_only(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.script = ends(TaskState.WORKING)
    result = ctl("send", "claude", "x", "--wait", "--timeout", "0.2")
    assert (result.code, result.out) == (5, "")
    assert [path for path, _ in sent(daemon)] == ["/agents/claude/tasks/send"]
    assert "goes on" in result.err


def test_waiting_survives_the_daemons_restart(daemon: FakeDaemon, ctl: Ctl) -> None:
    def waits() -> list[str]:
        return [path for _, path, _ in daemon.requests if "/wait?" in path]

    def script(fake: FakeDaemon, task: object) -> None:
        fake.advance(task, TaskState.WORKING)  # type: ignore[arg-type]

        def restart() -> None:
            fake.until(lambda: fake.streamed == 2)
            fake.die()
            fake.start()
            # A task that had ended by now would be told as it is, without a second wait.
            fake.until(lambda: len(waits()) == 2)
            answers("after all")(fake, task)  # type: ignore[arg-type]

        threading.Thread(target=restart).start()

    daemon.script = script
    assert ctl("send", "claude", "x", "--wait") == (0, "after all\n", "")
    first, second = waits()
    assert first.endswith("after=0")
    assert second.endswith("after=2"), "it goes on where it was"


def test_priority_5_without_a_message_only_interrupts(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("send", "claude", "--priority", "5") == (0, "claude interrupted\n", "")
    assert [path for path, _ in sent(daemon)] == ["/control/agents/claude/interrupt"]
    daemon.interrupted = False
    result = ctl("send", "claude", "--priority", "5")
    assert result.code == 0
    assert "nothing to interrupt" in result.err
    daemon.agents["claude"] = agent("claude", activity="busy")
    assert ctl("send", "claude", "--priority", "5").code == 6


def test_priority_5_without_a_message_interrupts_the_members_of_a_team(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.teams = [{"name": "both", "members": ["claude", "codex"]}]
    assert ctl("send", "both", "--priority", "5") == (0, "claude interrupted\ncodex interrupted\n", "")
    daemon.teams.append({"name": "one", "members": ["codex"]})
    assert json.loads(ctl("send", "one", "--priority", "5", "--json").out) == {"agent": "codex", "interrupted": True}
    assert ctl("send", "codex,@both", "--priority", "5").out == "codex interrupted\nclaude interrupted\n"
    daemon.requests.clear()
    assert ctl("send", "claude,nobody", "--priority", "5").code == 4
    assert ctl("send", "nobody", "--priority", "5").code == 4
    assert [path for path, _ in sent(daemon) if "claude" in path] == [], "an unknown name stops the whole"


def test_priority_5_for_several_is_one_document(daemon: FakeDaemon, ctl: Ctl) -> None:
    told = json.loads(ctl("send", "claude", "--priority", "5", "--json").out)
    assert told == {"agent": "claude", "interrupted": True}
    every = [{"agent": "claude", "interrupted": True}, {"agent": "codex", "interrupted": True}]
    for address in ("claude,codex", "--all"):
        assert json.loads(ctl("send", address, "--priority", "5", "--json").out) == {"agents": every}
    daemon.refuse("POST", "/control/agents/claude/interrupt", QueueFull("not now"))
    told = ctl("send", "--all", "--priority", "5", "--json")
    refused, other = json.loads(told.out)["agents"]
    assert (refused["agent"], refused["error"]["message"], other) == ("claude", "not now", every[1])
    assert (told.code, told.err) == (6, "synapsectl: claude: not now\n")


def test_a_team_of_the_agent_itself_alone_is_nobody(
    daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.teams = [{"name": "own", "members": ["claude"]}]
    monkeypatch.delenv("SYNAPSED_HOME")
    shell = {
        "SYNAPSE_CONTROL_SOCKET": str(daemon.socket),
        "SYNAPSE_AGENT_ID": "synapse-claude-8100",
        "SYNAPSE_AGENT_NAME": "claude",
        "SYNAPSE_AGENT_TOKEN": "secret",
    }
    for words in (["hi"], ["--priority", "5"]):
        told = ctl("send", "own", *words, **shell)
        assert (told.code, "no other agent is in it" in told.err) == (4, True)


def test_an_agents_shell_says_who_it_is(daemon: FakeDaemon, ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    socket = str(daemon.socket)
    monkeypatch.delenv("SYNAPSED_HOME")
    ctl(
        "send",
        "--all",
        "hi",
        SYNAPSE_CONTROL_SOCKET=socket,
        SYNAPSE_AGENT_ID="synapse-claude-8100",
        SYNAPSE_AGENT_TYPE="claude",
        SYNAPSE_ENDPOINT="http://localhost:8100",
        SYNAPSE_AGENT_TOKEN="secret",
    )
    assert set(daemon.authorization) == {"Bearer secret"}
    ((path, body),) = sent(daemon)
    assert path == "/agents/codex/tasks/send", "not to itself"
    assert body["metadata"]["sender"]["sender_id"] == "synapse-claude-8100"  # type: ignore[index]


def members(daemon: FakeDaemon, *names: str) -> None:
    daemon.teams = [{"name": "review", "members": list(names)}]


def test_the_first_answer_of_several_is_printed_alone(daemon: FakeDaemon, ctl: Ctl) -> None:
    """The first that is sent never ends; the second is completed."""
    scripts = iter([lambda daemon, task: daemon.advance(task, TaskState.WORKING), answers("mine")])

    def script(daemon: FakeDaemon, task: Task) -> None:
        next(scripts)(daemon, task)

    daemon.script = script
    told = ctl("send", "claude,codex", "--any", "hello")
    assert (told.code, told.out) == (0, "mine\n")


def test_where_none_is_completed_all_are_shown(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.script = fails("TIMEOUT", "it took too long")
    told = ctl("send", "claude,codex", "--any", "hello")
    assert told.code == 1
    assert [line.split("\t")[0] for line in told.out.splitlines()] == ["claude", "codex"]


def test_the_first_answer_that_does_not_come_in_time(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.script = lambda daemon, task: daemon.advance(task, TaskState.WORKING)
    told = ctl("send", "claude,codex", "--any", "--timeout", "0.3", "hello")
    assert (told.code, "none is completed yet" in told.err) == (5, True)


def test_a_team_has_one_context(daemon: FakeDaemon, ctl: Ctl) -> None:
    members(daemon, "claude", "codex")
    assert ctl("send", "team:review", "hello", "--wait").code == 0
    bodies = [body for _, path, body in daemon.requests if path.endswith("/tasks/send") and body]
    contexts = {body.get("context_id") for body in bodies[-2:]}
    assert len(contexts) == 1
    assert None not in contexts


def test_to_everybody_of_the_fleet_and_to_many_only_where_that_is_said(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("send", "--all", "--fleet", "hello").code == 6, "this host is in none"
    daemon.fleet = []
    assert ctl("send", "claude", "--fleet", "hello").code == 2
    sent = ctl("send", "--all", "--fleet", "hello", "--json")
    assert [one["agent"] for one in json.loads(sent.out)["tasks"]] == ["claude", "codex"]
    assert ("GET", "/agents?hosts=1", None) in daemon.requests
    daemon.agents.update({f"a{n}": agent(f"a{n}", port=None) for n in range(49)})
    before = len(daemon.tasks)
    many = ctl("send", "--all", "hello")
    assert (many.code, "51 agents: say --yes" in many.err, len(daemon.tasks)) == (2, True, before)
    daemon.agents.update({f"b{n}": agent(f"b{n}", port=None) for n in range(950)})
    assert "at most 1000" in ctl("send", "--all", "--yes", "hello").err
    assert len(daemon.tasks) == before


def test_any_does_not_go_with_following(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("send", "claude,codex", "--any", "--follow", "hello").code == 2
