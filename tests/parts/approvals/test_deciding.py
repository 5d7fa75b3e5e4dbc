"""The approval policy at work: questions of the program's, dialogs, and what is on record of them."""

import asyncio
import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from synapsed import hookclient
from synapsed.errors import NotEnforced, StoreError
from synapsed.model.agent import Activity, AgentView
from synapsed.model.events import PermissionDecided, ToolExecution
from synapsed.model.facts import PermissionAsked, ToolBegan
from synapsed.model.link import LinkTold
from synapsed.model.task import Prompt, TaskState
from synapsed.parts.approvals.deciding import read_call
from synapsed.parts.approvals.face import ApprovalConfig
from synapsed.parts.approvals.policy import ToolCall
from synapsed.profiles.library import ProfileLibrary
from synapsed.supervisor.hook_socket import answering
from tests.fakes.clock import until
from tests.parts.approvals.conftest import AGENT_MODEL
from tests.support.patience import PATIENCE_S
from tests.support.world import World

ASKER = """
command = "sh"
ports = [8150, 8159]
[channels.hooks]
adapter = "hooks"
[channels.hooks.decisions.Asked]
allow = { ok = true, why = ["{reason}"] }
deny = { ok = false, why = { text = "{reason}" } }
[channels.hooks.decisions.Each]
rules_only = true
deny = { ok = false }
[channels.hooks.decisions.Before]
deny = { ok = false }
dialog = "yes"
"""

RULES = ApprovalConfig(allow=["Bash(git status*)", "Read"], deny=["Bash(rm *)"])


async def asker(world: World, approval: ApprovalConfig = RULES) -> AgentView:
    world.agents["asker"] = AGENT_MODEL(cwd="/", autostart=True, approval=approval)
    (world.paths.config.parent / "profiles" / "asker.toml").write_text(ASKER)
    world.library.reload()
    await world.daemon()
    await until(lambda: bool(world.factory.links), "the agent was launched")
    world.link.ready()
    view = world.manager.directory.agents()[0]
    await until(lambda: world.manager.directory.view(view.id).activity == "ready")
    return view


def bash(command: str, **more: Any) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command, **more}}


def permission(text: str) -> Prompt:
    return Prompt(prompt_id=text, type="permission", prompt=text)


def began(world: World, **given: str) -> None:
    world.link.emit(LinkTold(ToolBegan(channel="hooks", at_ns=1, tool="any", input=given)))


def decided(world: World) -> list[tuple[str, str | None]]:
    return world.told(PermissionDecided, lambda data: (data.verdict, data.rule))


async def test_the_answer_is_in_the_programs_own_words(quiet_world: World) -> None:
    agent = await asker(quiet_world)
    decide = quiet_world.manager.terminals.decide
    allowed = await decide(agent.id, "Asked", bash("git status -s"))
    assert allowed == {"ok": True, "why": ["allowed by the rule Bash(git status*)"]}
    refused = await decide(agent.id, "Asked", bash("cd / && rm -rf *"))
    assert refused == {"ok": False, "why": {"text": "denied by the rule Bash(rm *)"}}
    assert await decide(agent.id, "Asked", bash("git status; rm")) is None
    assert await decide(agent.id, "Unknown", bash("git status")) is None


async def test_every_decision_is_on_record_without_secrets(quiet_world: World) -> None:
    agent = await asker(quiet_world)
    await quiet_world.manager.terminals.decide(
        agent.id, "Asked", bash("curl -H 'Authorization: Bearer geheim' --token=geheim x")
    )
    (told,) = quiet_world.told(PermissionDecided)
    assert (told.verdict, told.rule, told.tool) == ("escalate", None, "Bash")
    assert "geheim" not in json.dumps(told.input)
    assert "curl" in told.input["command"]


async def test_without_rules_nothing_is_decided_or_recorded(quiet_world: World) -> None:
    agent = await asker(quiet_world, ApprovalConfig())
    assert await quiet_world.manager.terminals.decide(agent.id, "Asked", bash("git status")) is None
    assert decided(quiet_world) == []


async def test_what_cannot_be_recorded_is_asked_about(quiet_world: World) -> None:
    agent = await asker(quiet_world)
    quiet_world.store.refuse = StoreError("full")
    assert await quiet_world.manager.terminals.decide(agent.id, "Asked", bash("git status")) is None
    quiet_world.store.refuse = None


def call_of(profile: str, event: str, told: dict[str, Any]) -> ToolCall:
    channels = ProfileLibrary.standard(Path("/nonexistent")).get(profile).channels.values()
    spec = next(channel.decisions[event] for channel in channels if event in channel.decisions)
    return read_call(spec, told, "/work")


def test_what_a_model_adds_to_a_call_hides_nothing_of_it() -> None:
    given = {"file_path": "secret/x", "command": "git status", "dir_path": "src"}
    call = call_of("gemini", "BeforeTool", {"tool_name": "read_file", "tool_input": given})
    assert (call.command, call.subjects) == ("git status", ("secret/x", "src"))
    call = call_of("gemini", "BeforeTool", {"tool_name": "run_shell_command", "tool_input": given})
    assert (call.command, call.subjects) == ("git status", ())


def test_a_patch_is_about_each_of_its_files() -> None:
    files = [{"filePath": "/work/src/a", "movePath": "/work/b"}, {"filePath": "/work/src/c"}]
    told = {"permission": "edit", "patterns": ["work/src/a"], "metadata": {"filepath": "src/a, src/c", "files": files}}
    assert call_of("opencode", "permission.asked", told).subjects == ("/work/src/a", "/work/src/c", "/work/b")
    told = {"permission": "edit", "patterns": ["work/src/a"], "metadata": {"filepath": "/work/src/a"}}
    assert call_of("opencode", "permission.asked", told).subjects == ("/work/src/a",)
    told = {"permission": "bash", "patterns": ["git log", "head"], "metadata": {"command": "git log | head"}}
    assert call_of("opencode", "permission.asked", told).subjects == ()


async def test_a_channel_that_can_answer_is_answered(quiet_world: World) -> None:
    await asker(quiet_world)
    asked = PermissionAsked(channel="hooks", at_ns=1, request="per_1", event="Asked", told=bash("rm x"))
    quiet_world.link.emit(LinkTold(asked))
    await until(lambda: bool(quiet_world.link.replies))
    assert quiet_world.link.replies == [(asked, {"ok": False, "why": {"text": "denied by the rule Bash(rm *)"}})]


async def test_an_allowed_calls_dialog_is_answered_and_nobody_is_asked(quiet_world: World) -> None:
    agent = await asker(quiet_world)
    task = await quiet_world.send(agent.id)
    await quiet_world.delivered()
    quiet_world.link.submit()
    assert await quiet_world.manager.terminals.decide(agent.id, "Before", bash("git status --short")) is None
    began(quiet_world, command="git status --short")
    quiet_world.link.observe_as(Activity.WAITING, prompt=permission("Run it?\ngit status\n --short"))
    await until(lambda: bool(quiet_world.link.answers))
    assert quiet_world.link.answers == [("yes", "Run it?\ngit status\n --short")]
    quiet_world.link.observe_as(Activity.BUSY)
    quiet_world.link.end("done")
    await quiet_world.task_is(task.id, TaskState.COMPLETED)
    assert "input_required" not in quiet_world.statuses(task.id)


async def test_an_edit_is_not_allowed_by_a_line_of_it(quiet_world: World) -> None:
    """The allowed call ran without a dialog; then an edit is asked about that no hook has asked the policy about."""
    agent = await asker(quiet_world)
    task = await quiet_world.send(agent.id)
    await quiet_world.delivered()
    quiet_world.link.submit()
    assert await quiet_world.manager.terminals.decide(agent.id, "Before", bash("git status")) is None
    began(quiet_world, file_path="notes.txt", old_string="git status", new_string="")
    quiet_world.link.observe_as(Activity.WAITING, prompt=permission("Edit notes.txt\ngit status\nApply this change?"))
    await until(lambda: any(1.9 < left < 2.1 for left in quiet_world.clock.pending()), "a timer")
    quiet_world.clock.advance(2.1)
    asked = (await quiet_world.task_is(task.id, TaskState.INPUT_REQUIRED)).prompt
    assert quiet_world.link.answers == []
    assert asked is not None
    assert (asked.command, asked.diff) == (None, "--- notes.txt\n+++ notes.txt\n-git status")


@pytest.mark.parametrize("second", ["git status; rm -rf / #", "git status && make"])
async def test_a_dialog_that_shows_more_than_what_was_allowed_is_a_persons(quiet_world: World, second: str) -> None:
    agent = await asker(quiet_world, ApprovalConfig(allow=["Bash(git status*)"]))
    task = await quiet_world.send(agent.id)
    await quiet_world.delivered()
    quiet_world.link.submit()
    await quiet_world.manager.terminals.decide(agent.id, "Before", bash(second))
    await quiet_world.manager.terminals.decide(agent.id, "Before", bash("git status"))
    quiet_world.link.observe_as(Activity.WAITING, prompt=permission(f"Run it?\n{second}"))
    await quiet_world.task_is(task.id, TaskState.INPUT_REQUIRED)
    assert quiet_world.link.answers == []


@pytest.mark.parametrize(
    ("dialog", "second"),
    [
        ("a.py => x.y\n1 - git status\n1 + .\nApply this change?", {"tool_input": {"path": "/elsewhere/a.py"}}),
        ("Tool: remember\nallow execution of MCP tool git status?", {"tool_input": {"fact": "git status."}}),
        ("cp -r . git status\nRun it?", {}),
        ("... first 36 lines hidden\ngit status\nRun it?", bash("make\n" * 36 + "git status\n")),
        ("Remember this fact?\ngit status\n", {}),
    ],
)
async def test_a_dialog_that_only_mentions_what_was_allowed_is_a_persons(
    quiet_world: World, dialog: str, second: dict[str, Any]
) -> None:
    agent = await asker(quiet_world, ApprovalConfig(allow=["List", "Bash(git status*)"]))
    task = await quiet_world.send(agent.id)
    await quiet_world.delivered()
    quiet_world.link.submit()
    await quiet_world.manager.terminals.decide(agent.id, "Before", {"tool_name": "List", "tool_input": {"path": "."}})
    await quiet_world.manager.terminals.decide(agent.id, "Before", bash("git status"))
    await quiet_world.manager.terminals.decide(agent.id, "Before", {"tool_name": "Other"} | second)
    quiet_world.link.observe_as(Activity.WAITING, prompt=permission(dialog))
    await until(lambda: bool(quiet_world.link.answers) or "input_required" in quiet_world.statuses(task.id))
    assert quiet_world.link.answers == []


async def test_rules_mean_files_of_the_agents_folder(quiet_world: World) -> None:
    agent = await asker(quiet_world, ApprovalConfig(allow=["Edit(tmp/*)"], deny=["Edit(*/secret)"]))
    decide = quiet_world.manager.terminals.decide
    assert await decide(agent.id, "Asked", {"tool_name": "Edit", "tool_input": {"path": "/tmp/a"}}) is not None
    assert await decide(agent.id, "Asked", {"tool_name": "Edit", "tool_input": {"path": "/tmp/../etc/a"}}) is None
    assert decided(quiet_world) == [("allow", "Edit(tmp/*)"), ("escalate", None)]


async def test_a_dialog_without_a_decision_waits_a_moment_then_is_a_persons(quiet_world: World) -> None:
    agent = await asker(quiet_world)
    task = await quiet_world.send(agent.id)
    await quiet_world.delivered()
    quiet_world.link.submit()
    quiet_world.link.observe_as(Activity.WAITING, prompt=permission("Run make?"))
    await until(lambda: any(1.9 < left < 2.1 for left in quiet_world.clock.pending()), "a timer")
    assert "input_required" not in quiet_world.statuses(task.id)
    quiet_world.clock.advance(2.1)
    await quiet_world.task_is(task.id, TaskState.INPUT_REQUIRED)
    quiet_world.link.observe_as(Activity.BUSY)
    await quiet_world.task_is(task.id, TaskState.WORKING)
    # The same once more is another call's, which the policy may decide otherwise by now.
    quiet_world.link.observe_as(Activity.WAITING, prompt=permission("Run make?"))
    await until(lambda: any(1.9 < left < 2.1 for left in quiet_world.clock.pending()), "a timer")
    assert quiet_world.statuses(task.id).count("input_required") == 1


# --- over the socket -------------------------------------------------------------------------------------------------


@pytest.fixture
def maildir(tmp_path: Path) -> Path:
    for name in ("tmp", "new"):
        (tmp_path / "hooks" / name).mkdir(parents=True)
    return tmp_path


async def ask(root: Path, payload: bytes = b'{"tool_name": "Bash"}') -> tuple[int | None, bytes]:
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-S", "-E", "-I", hookclient.__file__,
        str(root / "hooks"), str(root / "hooks.sock"), "synapse-x-1", "Asked", str(root / "decide.sock"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(client.communicate(payload), PATIENCE_S)
    assert err == b""
    return client.returncode, out


async def test_a_hook_prints_what_the_daemon_answers(maildir: Path) -> None:
    asked: list[tuple[str, str, dict[str, Any]]] = []

    async def decide(agent: str, event: str, told: dict[str, Any]) -> dict[str, Any]:
        asked.append((agent, event, told))
        return {"はい": [1]}

    async with answering(maildir / "decide.sock", decide):
        assert await ask(maildir) == (0, '{"はい": [1]}'.encode())
    assert asked == [("synapse-x-1", "Asked", {"tool_name": "Bash"})]
    assert len(list((maildir / "hooks" / "new").iterdir())) == 1, "it is reported, too"


async def nothing(_agent: str, _event: str, _told: dict[str, Any]) -> None:
    return None


async def never(_agent: str, _event: str, _told: dict[str, Any]) -> None:
    await asyncio.Event().wait()


async def wrong(_agent: str, _event: str, _told: dict[str, Any]) -> dict[str, Any]:
    raise ValueError("scripted")


@pytest.mark.slow
@pytest.mark.parametrize("decide", [nothing, never, wrong])
async def test_a_daemon_without_an_answer_leaves_it_to_the_program(maildir: Path, decide: Any) -> None:
    async with answering(maildir / "decide.sock", decide):
        assert await ask(maildir) == (0, b"")


async def test_no_daemon_leaves_it_to_the_program(maildir: Path) -> None:
    assert await ask(maildir) == (0, b"")
    (maildir / "decide.sock").touch()
    assert await ask(maildir) == (0, b"")


async def test_a_question_that_nobody_asks_ends_with_the_socket(maildir: Path) -> None:
    async with answering(maildir / "decide.sock", nothing):
        reader, writer = await asyncio.open_unix_connection(maildir / "decide.sock")
    assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
    writer.close()
    await writer.wait_closed()


async def test_what_is_no_question_ends_nothing(maildir: Path) -> None:
    failed: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
    asks = (b"a\n{}", b'a\n{"event": "Asked"}', b'a\n{"payload": 5}', b'a\n{"payload": {}, "event": 5}')
    async with answering(maildir / "decide.sock", wrong):
        for garbage in (b"", b"x", b"a\n{", b"a\n[1]", b"a\n" + b"[" * 100_000, *asks):
            reader, writer = await asyncio.open_unix_connection(maildir / "decide.sock")
            writer.write(garbage)
            writer.write_eof()
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    assert failed == []


async def test_where_each_call_is_told_only_a_deny_rule_decides_and_the_rest_where_it_asks(quiet_world: World) -> None:
    agent = await asker(quiet_world, ApprovalConfig(default="deny", allow=["Bash(git status*)"], deny=["Bash(rm *)"]))
    for command in ("git status", "touch x"):
        assert await quiet_world.manager.terminals.decide(agent.id, "Each", bash(command)) is None
    assert decided(quiet_world) == []
    assert await quiet_world.manager.terminals.decide(agent.id, "Each", bash("rm x")) == {"ok": False}
    assert decided(quiet_world) == [("deny", "Bash(rm *)")]


def test_claude_tells_each_call_before_it_runs() -> None:
    call = call_of("claude", "PreToolUse", bash("rm x"))
    assert (call.tool, call.command) == ("Bash", "rm x")


GATED = """
command = "sh"
ports = [8140, 8149]
verified = "2.1"
version = {}
[channels.hooks]
adapter = "hooks"
[[versions]]
since = "2.0"
[versions.channels.hooks.decisions.Gate]
deny = { ok = false, why = "{reason}" }
"""


async def test_the_profile_counts_as_it_is_for_the_version_that_runs(quiet_world: World) -> None:
    world = quiet_world
    world.agents["gated"] = AGENT_MODEL(cwd="/", approval=ApprovalConfig(deny=["Bash(rm *)"]))
    (world.paths.config.parent / "profiles" / "gated.toml").write_text(GATED)
    world.library.reload()
    world.factory.versions["gated"] = "2.1"
    await world.daemon()
    view = await world.manager.restart("synapse-gated-8140")
    answer = await world.manager.terminals.decide(view.id, "Gate", bash("rm -rf x"))
    assert answer == {"ok": False, "why": "denied by the rule Bash(rm *)"}
    assert decided(world) == [("deny", "Bash(rm *)")]
    world.factory.versions["gated"] = "1.9"
    with pytest.raises(NotEnforced, match=r"'gated' has no way.*--without-approval"):
        await world.manager.restart(view.id)
    await world.manager.restart(view.id, without_approval=True)
    assert await world.manager.terminals.decide(view.id, "Gate", bash("rm -rf x")) is None


async def test_a_version_that_is_not_known_has_no_variant_to_ask_by(quiet_world: World) -> None:
    world = quiet_world
    world.agents["gated"] = AGENT_MODEL(cwd="/", approval=ApprovalConfig(deny=["Bash(rm *)"]))
    (world.paths.config.parent / "profiles" / "gated.toml").write_text(GATED)
    world.library.reload()
    await world.daemon()
    with pytest.raises(NotEnforced, match="cannot be enforced"):
        await world.manager.restart("synapse-gated-8140")
    assert world.factory.launched == []


async def test_a_denial_before_the_agent_is_adopted_ends_its_call(quiet_world: World) -> None:
    world = quiet_world
    agent = await asker(world)
    await world.manager.close(keep_agents=True)
    await world.daemon(adopt=False)
    answer = await world.manager.terminals.decide(agent.id, "Asked", bash("rm x"))
    assert answer is not None
    await world.manager.adopt()
    await until(lambda: world.link.opened)
    call = ToolBegan(channel="hooks", at_ns=1, tool="Bash", input={"command": "rm x"}, call="c1")
    world.link.emit(LinkTold(call))
    await until(lambda: len(world.told(ToolExecution)) == 2)
    ended = world.told(ToolExecution)[1]
    assert (ended.status, ended.denied, ended.error) == ("failed", True, "denied by the rule Bash(rm *)")
