"""Prompts, tasks and the smaller verbs."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from synapsectl.context import CommandContext
from synapsectl.errors import CtlError
from synapsectl.inbox.items import Chosen
from synapsectl.inbox.program import give
from synapsectl.output import CommandOutput
from synapsectl.prompts import NoSuchChoice, choose
from synapsed.errors import Forbidden, NotTaken, NotWaiting, PromptChanged, QueueFull
from synapsed.model.task import Prompt, TaskState
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import DEADLINE, FakeDaemon, agent, answers, ends, permission
from tests.synapsectl.pty_tool import PtyTool


@pytest.fixture
def asking(daemon: FakeDaemon, ctl: Ctl) -> str:
    """The id of a task of claude's that waits at a permission prompt."""
    daemon.script = ends(TaskState.INPUT_REQUIRED, prompt=permission())
    task = ctl("send", "claude", "x").out.strip()
    daemon.agents["claude"] = agent("claude", port=8100, activity="waiting", prompt=permission(), task=task)
    daemon.requests.clear()
    return task


def posted(daemon: FakeDaemon) -> list[tuple[str, object]]:
    return [(path, body) for method, path, body in daemon.requests if method == "POST"]


def test_input_for_a_task_and_for_its_agent(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:
    assert ctl("input", asking[:8], "2").code == 0
    assert ctl("input", "claude", "--", "-x y").code == 0
    assert posted(daemon) == [
        (f"/control/tasks/{asking}/input", {"input": "2", "prompt_id": "p1"}),
        (f"/control/tasks/{asking}/input", {"input": "-x y", "prompt_id": "p1"}),
    ]


def test_input_outside_any_task_from_stdin(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.agents["claude"] = agent("claude", prompt=permission(), activity="waiting")
    assert ctl("input", "claude", "-", "--prompt-id", "p1", stdin="geheim é\n".encode()).code == 0
    assert posted(daemon) == [("/control/agents/claude/input", {"input": "geheim é", "prompt_id": "p1"})]


def test_nothing_on_stdin_is_no_answer(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:
    """A script without one must not choose what is offered first."""
    done = ctl("input", asking, stdin=b"")
    assert (done.code, "there is no answer" in done.err) == (2, True)
    assert posted(daemon) == []


def test_an_answer_that_is_not_utf_8_is_refused(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:
    done = ctl("input", asking, stdin=b"ab\xff")
    assert (done.code, done.err) == (2, "synapsectl: the answer is not UTF-8 (byte 2)\n")
    done = ctl("event", "deployed", "-", "--agent", "claude", stdin=b"\xff")
    assert (done.code, done.err) == (2, "synapsectl: the event is not UTF-8 (byte 0)\n")
    assert posted(daemon) == []


def test_approve_and_deny_answer_this_very_prompt(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:
    assert "answered: Yes" in ctl("approve", asking[:8]).err
    assert "answered: No, tell" in ctl("deny", "claude").err
    assert posted(daemon) == [
        (f"/control/tasks/{asking}/input", {"input": "1", "prompt_id": "p1"}),
        (f"/control/tasks/{asking}/input", {"input": "3", "prompt_id": "p1"}),
    ]


def test_approve_and_deny_print_what_they_answer(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:
    edit = permission().model_copy(update={"command": "rm -rf build", "diff": "- one\n+ two"})
    daemon.agents["claude"] = agent("claude", port=8100, activity="waiting", prompt=edit)
    for verb in ("approve", "deny"):
        done = ctl(verb, "claude", "--json")
        assert all(row in done.err for row in ("Do you want to proceed?", "$ rm -rf build", "  - one\n  + two")), done
        (told,) = json.loads(done.out)
        assert (told["prompt_id"], told["command"], told["diff"]) == ("p1", "rm -rf build", "- one\n+ two")
        assert told["question"] == "Do you want to proceed?"


def test_another_question_than_the_one_that_was_seen_is_not_answered(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:
    for verb in ("approve", "deny"):
        done = ctl(verb, "claude", "--prompt-id", "p0")
        assert (done.code, "claude" in done.err, "asks something else than p0" in done.err) == (6, True, True)
        assert "Do you want to proceed?" in done.err, "what is asked now is shown"
    assert posted(daemon) == []
    assert ctl("approve", "claude", "--prompt-id", "p1").code == 0
    assert posted(daemon) == [(f"/control/tasks/{asking}/input", {"input": "1", "prompt_id": "p1"})]
    for wrong in (("--all",), ("claude", "codex"), ()):
        assert ctl("approve", *wrong, "--prompt-id", "p1").code == 2


def at_terminal(*arguments: str) -> PtyTool:
    return PtyTool(*arguments, env={**os.environ, "TERM": "xterm"})


@pytest.mark.parametrize(("typed", "code"), [(b"y\r", 0), (b"\r", 6), (b"n\r", 6), (b"\x04", 6)])
def test_at_a_terminal_a_yes_is_asked_for_below_the_question(
    daemon: FakeDaemon, asking: str, typed: bytes, code: int
) -> None:
    tool = at_terminal("approve", "claude")
    try:
        tool.until(b"answer 'Yes'? [y/N] ")
        assert b"Do you want to proceed?" in tool.shown
        assert posted(daemon) == []
        tool.type(typed)
        assert tool.end() == code
    finally:
        tool.close()
    given = [(f"/control/tasks/{asking}/input", {"input": "1", "prompt_id": "p1"})]
    assert posted(daemon) == (given if code == 0 else [])


def test_a_question_that_came_while_a_person_read_the_one_before_is_not_answered(
    daemon: FakeDaemon, asking: str
) -> None:
    """The daemon refuses it: the answer is for the prompt that was shown."""
    tool = at_terminal("approve", "claude")
    try:
        tool.until(b"answer 'Yes'? [y/N] ")
        newer = permission().model_copy(update={"prompt_id": "p2"})
        daemon.agents["claude"] = agent("claude", port=8100, activity="waiting", prompt=newer)
        tool.type(b"y\r")
        tool.end()
    finally:
        tool.close()
    assert [body for _, body in posted(daemon)] == [{"input": "1", "prompt_id": "p1"}]


@pytest.mark.parametrize("option", [("--yes",), ("--prompt-id", "p1"), ("--json",)])
def test_whoever_names_the_prompt_or_says_yes_beforehand_is_not_asked(
    daemon: FakeDaemon, asking: str, option: tuple[str, ...]
) -> None:
    tool = at_terminal("approve", "claude", *option)
    try:
        assert tool.end() == 0
        assert b"Do you want to proceed?" in tool.shown
    finally:
        tool.close()
    assert [body for _, body in posted(daemon)] == [{"input": "1", "prompt_id": "p1"}]


def test_input_without_a_text_shows_the_question_that_it_is_for(daemon: FakeDaemon, asking: str) -> None:
    tool = at_terminal("input", "claude")
    try:
        tool.until(b"claude: ")
        assert b"Do you want to proceed?" in tool.shown
        tool.type(b"2\r")
        assert tool.end() == 0
    finally:
        tool.close()
    assert [body for _, body in posted(daemon)] == [{"input": "2", "prompt_id": "p1"}]


def test_all_who_ask_are_answered_and_nobody_else(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:
    limit = {"agent": "codex", "host": None, "task": None, "prompt_id": None, "kind": "limit"}
    sign_in = {"agent": "codex", "host": None, "task": None, "prompt_id": "p9", "kind": "sign_in"}
    assert (ctl("approve", "--all").code, "nobody asks" in ctl("approve", "--all").err) == (0, True)
    asks = {"agent": "claude", "host": None, "task": asking, "prompt_id": "p1", "kind": "permission"}
    daemon.inbox = [asks, limit, sign_in]
    done = ctl("deny", "--all", "--json")
    assert (done.code, [one["label"] for one in json.loads(done.out)]) == (0, ["No, tell it what to do instead"])
    assert posted(daemon) == [(f"/control/tasks/{asking}/input", {"input": "3", "prompt_id": "p1"})]
    assert ctl("approve").code == 2
    assert ctl("approve", "claude", "--all").code == 2


def test_why_not_is_the_agents_next_message(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:
    done = ctl("deny", "claude", "--because", "use the other one", "--json")
    assert (done.code, "gets the reason" in done.err) == (0, True), done
    given, said = posted(daemon)
    assert given == (f"/control/tasks/{asking}/input", {"input": "3", "prompt_id": "p1"})
    assert said[0] == "/agents/synapse-claude-8100/tasks/send"
    assert said[1]["priority"] == 4  # type: ignore[index]  # a body
    assert said[1]["message"]["parts"] == [{"type": "text", "text": "use the other one"}]  # type: ignore[index]  # so too
    assert json.loads(done.out)[0]["because"] in daemon.tasks
    assert ctl("deny", "claude", "--because", " ").code == 2
    assert ctl("approve", "claude", "--because", "x").code == 2


def asked_in_inbox(asking: str | None, name: str = "claude") -> dict[str, object]:
    return {"agent": name, "task": asking, "prompt_id": "p1"}


NO_BECAUSE = Chosen("3", "no, because of it", "of it")


def test_why_not_from_the_inbox_is_said_as_deny_does(daemon: FakeDaemon, asking: str) -> None:
    ctx = CommandContext(os.environ, CommandOutput(io.StringIO(), io.StringIO(), columns=None))
    give(ctx, asked_in_inbox(asking), NO_BECAUSE)
    given, said = posted(daemon)
    assert given == (f"/control/tasks/{asking}/input", {"input": "3", "prompt_id": "p1"})
    assert said[0] == "/agents/synapse-claude-8100/tasks/send"
    assert said[1]["message"]["parts"] == [{"type": "text", "text": "of it"}]  # type: ignore[index]  # a body


def test_why_not_from_the_inbox_is_for_that_very_prompt(daemon: FakeDaemon, asking: str) -> None:
    ctx = CommandContext(os.environ, CommandOutput(io.StringIO(), io.StringIO(), columns=None))
    daemon.refuse("POST", f"/control/tasks/{asking}/input", PromptChanged("it asks something else"))
    with pytest.raises(CtlError, match="something else"):
        give(ctx, asked_in_inbox(asking), NO_BECAUSE)
    daemon.agents["codex"] = agent("codex", prompt=permission(), activity="waiting")
    with pytest.raises(CtlError, match="as a command"):
        give(ctx, asked_in_inbox(None, "codex"), NO_BECAUSE)
    assert [path for path, _ in posted(daemon)] == [f"/control/tasks/{asking}/input"]


def test_a_refusal_whose_reason_does_not_arrive_says_so(daemon: FakeDaemon, asking: str) -> None:
    ctx = CommandContext(os.environ, CommandOutput(io.StringIO(), io.StringIO(), columns=None))
    daemon.refuse("POST", "/agents/synapse-claude-8100/tasks/send", QueueFull("its mailbox is full"))
    with pytest.raises(CtlError, match="answered no, but the reason was not sent: its mailbox is full"):
        give(ctx, asked_in_inbox(asking), NO_BECAUSE)


def test_a_program_that_reads_commands_is_told_no_reason(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.agents["codex"] = agent("codex", prompt=permission(), activity="waiting")
    refused = ctl("deny", "codex", "--because", "rm -rf /")
    assert (refused.code, "as a command" in refused.err) == (6, True), refused
    assert posted(daemon) == []


def test_nothing_is_asked(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:
    assert ctl("approve", "codex").code == 6
    daemon.refuse("POST", f"/control/tasks/{asking}/input", PromptChanged("another prompt is on the screen"))
    assert ctl("approve", asking).code == 6
    daemon.refuse("POST", f"/control/tasks/{asking}/input", NotWaiting("it asks nothing"))
    assert ctl("input", asking, "1").code == 6


SCREEN = Prompt(prompt_id="s1", type="screen", prompt="The gate is closed.\n  left  right")


def test_a_screen_that_cannot_be_read_is_answered_by_hand(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.agents["claude"] = agent("claude", activity="unknown", prompt=SCREEN, held="unknown screen")
    for verb in ("approve", "deny"):
        refused = ctl(verb, "claude")
        assert (refused.code, "The gate is closed." in refused.err) == (6, True), refused
        assert "synapsectl attach claude; or synapsectl keys claude KEY…" in refused.err
    assert posted(daemon) == []
    daemon.script = lambda fake, task: None
    waited = ctl("send", "claude", "x", "--wait")
    assert (waited.code, "The gate is closed." in waited.err, "synapsectl input" in waited.err) == (7, True, False)
    assert "synapsectl keys claude KEY…" in waited.err


def test_an_answer_that_was_not_taken_names_the_next_step(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:
    daemon.refuse("POST", f"/control/tasks/{asking}/input", NotTaken("it asks the same"))
    for line in (("approve", asking), ("input", "claude", "1")):
        refused = ctl(*line)
        assert (refused.code, "it asks the same" in refused.err) == (6, True), refused
        assert "synapsectl keys" in refused.err


def test_keys(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("keys", "claude", "Up", "Enter").code == 0
    done = ctl("keys", "claude", "--json", "--", "-x y", "C-c")
    assert (done.code, json.loads(done.out)) == (0, {"status": "pressed"})
    assert posted(daemon) == [
        ("/control/agents/claude/keys", {"keys": ["Up", "Enter"]}),
        ("/control/agents/claude/keys", {"keys": ["-x y", "C-c"]}),
    ]
    assert ctl("keys", "claude").code == 2
    assert ctl("keys", "nobody", "Enter").code == 4


@pytest.mark.parametrize(
    ("options", "accept", "key"),
    [
        ([("y", "Yes, proceed"), ("p", "Yes, and don't ask again"), ("esc", "No, and tell it")], True, "y"),
        ([("y", "Yes, proceed"), ("p", "Yes, and don't ask again"), ("esc", "No, and tell it")], False, "esc"),
        ([("always", "Allow always"), ("once", "Allow once"), ("reject", "Reject")], True, "once"),
        ([("always", "Allow always"), ("once", "Allow once"), ("reject", "Reject")], False, "reject"),
        ([("1", "Red"), ("2", "Blue")], True, None),
        ([("1", "Allow for this session")], True, None),
        ([("1", "Yes, automatically accept edits"), ("2", "Yes, manually accept edits")], True, "2"),
        ([("1", "Yes"), ("2", "Yes, and remember this folder for future sessions"), ("3", "No (Esc)")], True, "1"),
        ([("1", "Yes"), ("2", "Yes, and remember this folder for future sessions"), ("3", "No (Esc)")], False, "3"),
        ([("1", "Trust folder (docs)"), ("2", "Trust parent folder (src)"), ("3", "Don't trust")], True, "1"),
        ([("1", "Yes, implement this plan"), ("2", "Yes, clear context and implement"), ("3", "No")], True, "1"),
        ([("1", "Trust folder (docs)"), ("2", "Trust parent folder (src)"), ("3", "Don't trust")], False, "3"),
        ([("1", "Review"), ("2", "Trust all and continue"), ("3", "Continue without trusting")], True, None),
        ([("y", "Yes"), ("n", "No"), ("d", "Don't ask again")], False, "n"),
        ([("1", "Allow"), ("2", "Don't allow")], False, "2"),
        ([("1", "Continue"), ("2", "Continue + don't ask again"), ("3", "No, and tell it what to do")], True, "1"),
    ],
)
def test_yes_and_no_among_the_options(options: list[tuple[str, str]], *, accept: bool, key: str | None) -> None:
    prompt = {"type": "permission", "options": [{"key": k, "label": label} for k, label in options]}
    if key is None:
        with pytest.raises(NoSuchChoice):
            choose(prompt, accept=accept)
    else:
        assert choose(prompt, accept=accept) == key


def test_a_bare_confirmation_is_answered_y_or_n() -> None:
    assert choose({"type": "confirmation", "options": []}, accept=True) == "y"
    with pytest.raises(CtlError):
        choose({"type": "text", "options": []}, accept=False)


def test_cancel_a_task_or_an_agents_turn(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:
    assert ctl("cancel", asking[:8]).out == f"{asking[:8]} canceled\n"
    assert ctl("cancel", "codex").out == "codex interrupted\n"
    assert json.loads(ctl("cancel", "codex", "--json").out) == {"agent": "codex", "interrupted": True}


def test_neither_task_nor_agent_is_4(daemon: FakeDaemon, ctl: Ctl) -> None:
    for verb in (["cancel"], ["approve"], ["deny"], ["task"], ["attach"], ["screen"], ["logs"], ["status"]):
        for target in ("deadbeef", "nobody"):
            assert ctl(*verb, target).code in ({2, 4} if verb == ["attach"] else {4}), verb
    assert "no task" in ctl("cancel", "deadbeef").err
    assert ctl("input", "nobody", "1").code == 4


def test_task_shows_and_waits(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.script = answers("forty-two")
    task = ctl("send", "claude", "question").out.strip()
    assert json.loads(ctl("task", task, "--json").out)["task"]["id"] == task
    shown = ctl("task", task[:8]).out
    assert "completed" in shown
    assert "> question" in shown
    assert shown.endswith("forty-two\n")
    assert ctl("task", task[:8], "--wait") == (0, "forty-two\n", "")
    daemon.script = ends(TaskState.REJECTED)
    other = ctl("send", "claude", "question").out.strip()
    assert ctl("task", other, "--wait").code == 1


def test_tasks_of_all_and_of_one(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert json.loads(ctl("tasks", "--json").out) == []
    ctl("send", "claude,codex", "two\nlines\x1b[2J")
    assert len(ctl("tasks").out.splitlines()) == 2
    line = ctl("tasks", "codex").out
    assert line.split("\t")[1:3] == ["codex", "completed"], "an agent's name is what a person typed"
    assert line.endswith("two lines\\x1b[2J\n")
    assert len(json.loads(ctl("tasks", "codex", "--json").out)) == 1


def test_screen_in_its_forms(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("screen", "claude").out == "claude> \n"
    assert ctl("screen", "claude", "--ansi").out == "\x1b[1mclaude> \n\n\x1b[0m\x1b[0m\n"
    assert json.loads(ctl("screen", "claude", "--json").out)["cols"] == 80


@pytest.mark.parametrize("form", ["png", "svg"])
def test_screen_as_a_picture_in_a_file(daemon: FakeDaemon, ctl: Ctl, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"screen.{form}"
    done = ctl("screen", "claude", f"--{form}", str(file))
    assert (done.code, done.out) == (0, "")
    assert str(file) in done.err
    assert file.read_bytes() == f"{form} of claude> \n\n".encode()
    assert file.stat().st_mode & 0o777 == 0o600
    assert ctl("screen", "claude", f"--{form}", str(tmp_path / "no" / "folder")).code == 2


@pytest.mark.parametrize(("typed", "code"), [(b"\x04", 2), (b"secret\r", 0)])
def test_ctrl_d_at_the_question_for_a_password_answers_nothing(daemon: FakeDaemon, typed: bytes, code: int) -> None:
    prompt = Prompt(prompt_id="p1", type="password", prompt="Password:", options=[])
    daemon.agents["claude"] = agent("claude", port=8100, activity="waiting", prompt=prompt)
    tool = PtyTool("input", "claude")
    try:
        tool.until(b"claude: ")
        tool.type(typed)
        assert tool.end() == code
        assert (b"there is no answer" in tool.shown) == (code == 2)
        assert b"Traceback" not in tool.shown
        assert b"secret" not in tool.shown
    finally:
        tool.close()
    assert [body for _, body in posted(daemon)] == ([] if code else [{"input": "secret", "prompt_id": "p1"}])


def test_logs(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("logs", "claude").out == "one\ntwo\nthree\n"
    assert ctl("logs", "claude", "-n", "1").out == "three\n"
    assert ctl("logs", "claude", "--raw", "-n", "3").out.startswith("\x1b[1mone")
    assert ctl("logs", "claude", "-n", "-1").code == 2


def test_profiles_version_completion(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("profiles", "list").out.split("\t")[:3] == ["dummy", "x", "8190-8199"]
    assert ctl("profiles").out.splitlines()[-1].endswith("a script (not verified: never run)")
    assert json.loads(ctl("profiles", "--json").out)[0]["name"] == "dummy"
    for shell in ("bash", "zsh", "fish"):
        script = ctl("completion", shell).out
        assert "completion --words --" in script
    assert json.loads(ctl("version", "--json").out)["synapsed"] == "9.9"
    daemon.die()
    assert ctl("version").code == 0
    assert ctl("--version").out.endswith("synapsed does not run\n")


def test_the_version_where_the_daemon_refuses(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.refuse("GET", "/control/status", Forbidden("a person's"))
    assert json.loads(ctl("version", "--json").out)["synapsed"] == "9.9"
    daemon.refuse("GET", "/healthz", QueueFull("there are too many requests"))
    refused = ctl("version")
    assert "too many requests" in refused.err
    assert refused.code != 0


def test_logs_as_a_recording(ctl: Ctl, daemon: FakeDaemon, tmp_path: Path) -> None:
    cast = tmp_path / "a.cast"
    told = ctl("logs", "claude", "--cast", str(cast))
    assert (told.code, told.out, told.err) == (0, "", f"synapsectl: 1 pieces of output in {cast}\n")
    assert [json.loads(line) for line in cast.read_text().splitlines()][1:] == [[0.0, "o", daemon.printed.decode()]]
    assert cast.stat().st_mode & 0o777 == 0o600, "a program may have printed anything"
    cast.chmod(0o644)
    assert json.loads(ctl("logs", "claude", "--cast", str(cast), "--json").out) == {"file": str(cast), "pieces": 1}
    assert cast.stat().st_mode & 0o777 == 0o600, "also if the file was there"
    refused = ctl("logs", "claude", "--cast", str(tmp_path / "none" / "a.cast"))
    assert refused.code == 2
    assert "cannot be written" in refused.err


def test_events(daemon: FakeDaemon) -> None:
    for arguments in (["-f"], ["-f", "--json"], ["claude", "-f", "--after", "0"]):
        process = subprocess.Popen([sys.executable, "-m", "synapsectl", "events", *arguments], stdout=subprocess.PIPE)
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        process.send_signal(signal.SIGINT)
        process.stdout.close()
        assert process.wait(DEADLINE) == 130
        if "--json" in arguments:
            assert json.loads(line)["data"]["activity"] == "busy"
        else:
            assert line.endswith("synapse-claude-8100 activity activity=busy evidence=title\n")


def test_events_end_with_the_newest(daemon: FakeDaemon, ctl: Ctl) -> None:
    told = ctl("events")
    assert (told.code, told.out.count("\n")) == (0, 1)
    assert ctl("events", "claude", "--after", "3").code == 0
    asked = [path.partition("?")[2] for _, path, _ in daemon.requests if "/events" in path]
    assert asked == ["after=0&until=newest", "after=3&until=newest"]


def test_events_leave_out_what_is_not_asked_for(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("events", "--types", "activity,usage", "--agents", "claude", "--tasks", "11111111").code == 0
    (asked,) = (path.partition("?")[2] for _, path, _ in daemon.requests if path.startswith("/events"))
    assert asked == "after=0&types=activity%2Cusage&agents=claude&tasks=11111111&until=newest"


def test_events_are_reported(daemon: FakeDaemon, ctl: Ctl) -> None:
    mood = {"emotion_type": "joy", "level": 4, "detected_from": "voice_tone"}
    assert ctl("event", "emotionUpdate", json.dumps(mood), "--agent", "claude").code == 0
    done = ctl("event", "milestone", "all is green", "--agent", "claude", "--task", "11111111", "--json")
    assert json.loads(done.out) == {"status": "reported"}
    bodies = [body for method, path, body in daemon.requests if (method, path) == ("POST", "/agents/claude/events")]
    assert bodies == [
        {"event": "emotionUpdate", "data": mood},
        {"kind": "milestone", "message": "all is green", "task": "11111111"},
    ]
    assert ctl("event", "emotionUpdate", "not JSON", "--agent", "claude").code == 2


def test_events_that_are_read_too_slowly_go_on(daemon: FakeDaemon) -> None:
    daemon.cut_off = True
    process = subprocess.Popen([sys.executable, "-m", "synapsectl", "events", "-f", "--json"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(2)]
    process.send_signal(signal.SIGINT)
    process.stdout.close()
    assert process.wait(DEADLINE) == 130
    assert [json.loads(line)["id"] for line in lines] == [7, 7]
    asked = [path for _, path, _ in daemon.requests if path.startswith("/events")]
    assert [path.partition("?")[2] for path in asked] == ["", "after=7"]


def test_a_followed_log_ends_with_its_program(daemon: FakeDaemon, ctl: Ctl) -> None:
    def end() -> None:
        daemon.until(lambda: any("/history" in path for _, path, _ in daemon.requests))
        daemon.show(b"four\r")
        daemon.show(b"\nfi")
        daemon.exit(0)

    thread = threading.Thread(target=end)
    thread.start()
    result = ctl("logs", "-f", "claude", "-n", "2")
    thread.join()
    assert (result.code, result.out) == (0, "two\nthree\nfour\nfi\n"), "a last line without an end is shown as well"
    assert ctl("logs", "-f", "claude", "--raw", "-n", "1").out == "fi"


def test_shutdown_is_over_when_it_says_so(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("shutdown", "--keep-agents")
    assert result.code == 0
    assert "agents go on" in result.err
    assert posted(daemon) == [("/control/shutdown", {"keep_agents": True})]
    assert daemon.down.wait(DEADLINE)
    assert ctl("shutdown").code == 3
