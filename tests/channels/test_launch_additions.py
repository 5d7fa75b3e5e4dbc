import hashlib
import json
import os
import re
import shlex
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synapsed import hookclient, own_python
from synapsed.channels.launch_additions import (
    InjectedLaunch,
    LaunchContext,
    free_port,
    merged,
    needs_port,
    plan,
    prepare,
)
from synapsed.errors import ConfigError
from synapsed.process.inherited import without
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Instructions, Profile, Resume
from tests.channels.conftest import Launch


def hook(context: LaunchContext, event: str) -> list[str]:
    client = [str(context.hook_client), str(context.hooks), str(context.hooks_socket), context.agent_id, event]
    return [context.python, "-S", "-E", "-I", *client]


def test_claude_gets_its_hooks_by_a_settings_file_and_a_conversation_of_our_choice(launch: Launch) -> None:
    got = plan(launch.profile, launch.context, resume=False, args=["--model", "x"], mcp=False)
    file = launch.context.launch_dir / "claude-settings.json"
    assert got.argv == (
        *("claude", "--session-id", launch.context.conversation),
        *("--allowedTools", f"Read(/{launch.context.inbox}/**)"),
        *("--permission-mode", "default", "--settings", str(file), "--model", "x"),
    )
    stop = json.loads(got.files[file])["hooks"]["Stop"][0]["hooks"][0]
    assert shlex.split(stop["command"]) == hook(launch.context, "Stop")


def test_resume_goes_on_with_the_conversation(launch: Launch) -> None:
    got = plan(launch.profile, launch.context, resume=True)
    assert got.argv[:3] == ("claude", "--resume", launch.context.conversation)


@pytest.mark.parametrize("launch", ["codex"], indirect=True)
def test_codex_gets_its_hooks_as_toml_on_the_command_line(launch: Launch, tmp_path: Path) -> None:
    odd = replace(launch.context, agent_dir=tmp_path / 'a "quoted" \\ päth')
    got = plan(launch.profile, odd, resume=True)
    assert got.argv[:4] == ("codex", "resume", odd.conversation, "--no-daemon")
    settings = [got.argv[n + 1] for n, word in enumerate(got.argv) if word == "-c"]
    told = {key: value for text in settings for key, value in tomllib.loads(text).get("hooks", {}).items()}
    trusted = told.pop("state")
    tools = {"PermissionRequest", "PreToolUse", "PostToolUse"}
    assert set(told) == {"SessionStart", "UserPromptSubmit", "Stop", "Interrupt", *tools}
    assert shlex.split(told["Stop"][0]["hooks"][0]["command"]) == hook(odd, "Stop")
    for event, [group] in told.items():
        label = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        known = {"event_name": label, "hooks": [{**group["hooks"][0], "async": False}]}
        text = json.dumps(known, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        trust = trusted.pop(f"/<session-flags>/config.toml:{label}:0:0")
        assert trust == {"trusted_hash": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"}
    assert not trusted


def test_no_program_is_started_with_a_flag_that_calls_itself_dangerous(library: ProfileLibrary) -> None:
    for name in library.names():
        assert "dangerous" not in library.get(name).model_dump_json(exclude={"settings"}).lower(), name


@pytest.mark.parametrize("launch", ["gemini"], indirect=True)
def test_gemini_gets_its_hooks_by_the_environment(launch: Launch) -> None:
    got = plan(launch.profile, launch.context, resume=False)
    path = Path(got.env["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"])
    content = json.loads(path.read_bytes())
    assert content["hooksConfig"] == {"enabled": True}
    command = content["hooks"]["AfterAgent"][0]["hooks"][0]["command"]
    assert shlex.split(command) == hook(launch.context, "AfterAgent")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("launch", ["opencode"], indirect=True)
def test_opencode_gets_a_port(launch: Launch) -> None:
    assert needs_port(launch.profile)
    got = plan(launch.profile, launch.context, resume=False)
    assert got.argv == ("opencode", "--port", "4096", "--hostname", "127.0.0.1")
    with pytest.raises(ConfigError, match="port"):
        plan(launch.profile, replace(launch.context, port=None), resume=False)


def test_only_a_server_needs_a_port(library: ProfileLibrary) -> None:
    assert [name for name in library.names() if needs_port(library.get(name))] == ["opencode"]
    assert 1024 <= free_port() < 65536


def test_hook_line_does_its_work_in_a_shell(launch: Launch, tmp_path: Path) -> None:
    """The whole way: the line that claude is given, run by /bin/sh, leaves a report in the maildir."""
    got = plan(launch.profile, replace(launch.context, python=os.path.realpath("/proc/self/exe")), resume=False)
    (content,) = (json.loads(body) for path, body in got.files.items() if path.name == "claude-settings.json")
    line = content["hooks"]["Stop"][0]["hooks"][0]["command"]
    subprocess.run(["/bin/sh", "-c", line], input=b'{"session_id": "s"}', check=True, timeout=30)
    (name,) = launch.names("new")
    record = json.loads((launch.context.hooks / "new" / name).read_bytes())
    assert (record["event"], record["payload"]) == ("Stop", {"session_id": "s"})


def test_prepare_forgets_the_launch_before(launch: Launch) -> None:
    launch.report("Stop", {"old": True})
    (launch.context.launch_dir / "left-over").write_text("x")
    prepare(launch.context, plan(launch.profile, launch.context, resume=True, mcp=False))
    assert launch.names("new") == []
    files = ["claude-settings.json", "context.json", "hookclient.py"]
    assert sorted(p.name for p in launch.context.launch_dir.iterdir()) == files
    for folder in (launch.context.hooks, launch.context.launch_dir):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_context_is_found_again(launch: Launch) -> None:
    assert LaunchContext.load(launch.context.agent_dir) == launch.context


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"agent_dir": 5}', b'{"agent_dir":"a","hooks_socket":"b","home":"c"}']
)
def test_broken_context_is_a_value_error(launch: Launch, content: bytes) -> None:
    (launch.context.launch_dir / "context.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"\S"):
        LaunchContext.load(launch.context.agent_dir)


def test_placeholder_that_leads_nowhere_names_the_profile(launch: Launch) -> None:
    data = {
        "name": "x",
        "command": "x",
        "source": "/p/x.toml",
        "channels": {"h": {"adapter": "hooks", "args": ["{file:no.json}"]}},
    }
    with pytest.raises(ConfigError, match=r"/p/x\.toml: \{file:no\.json\} names nothing that the profile has"):
        plan(Profile.model_validate(data), launch.context, resume=False)


def test_only_what_makes_an_agent_think_it_is_nested_is_taken_out(library: ProfileLibrary) -> None:
    environ = {"PATH": "/bin", "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "x", "CLAUDE_CONFIG_DIR": "/c"}
    assert without(environ, library.get("claude").unset_env) == {"PATH": "/bin", "CLAUDE_CONFIG_DIR": "/c"}


@pytest.mark.parametrize("launch", ["claude"], indirect=True)
def test_claude_is_told_of_the_mcp_server_by_a_file(launch: Launch) -> None:
    got = plan(launch.profile, launch.context, resume=False)
    told = got.argv[got.argv.index("--mcp-config") + 1]
    server = json.loads(got.files[Path(told)])["mcpServers"]["synapsed"]
    assert [server["command"], *server["args"]] == own_python.command(
        "synapsectl.__main__", "mcp", python=launch.context.python
    )
    assert server["env"]["SYNAPSE_CONTROL_SOCKET"] == str(launch.context.control_socket)
    assert "TOKEN" not in json.dumps(server), "what it is started with may be seen by others"
    without = plan(launch.profile, launch.context, resume=False, mcp=False)
    assert "--mcp-config" not in without.argv
    assert Path(told) not in without.files


@pytest.mark.parametrize("text", ["{mcp}", "args={mcp_json}"])
def test_a_profile_of_ones_own_starts_the_server_by_a_word(launch: Launch, text: str) -> None:
    profile = Profile.model_validate({"name": "x", "command": "x", "source": "x", "mcp": {"args": [text]}})
    words = own_python.command("synapsectl.__main__", "mcp")[1:]
    assert plan(profile, launch.context, resume=False).argv == (
        ("x", *words) if text == "{mcp}" else ("x", f"args={json.dumps(words)}")
    )


@pytest.mark.parametrize("launch", ["gemini"], indirect=True)
def test_a_file_of_hooks_and_server_is_one(launch: Launch) -> None:
    (content,) = plan(launch.profile, launch.context, resume=False).files.values()
    assert {"hooksConfig", "hooks", "mcpServers"} == set(json.loads(content))
    (content,) = plan(launch.profile, launch.context, resume=False, mcp=False).files.values()
    assert {"hooksConfig", "hooks"} == set(json.loads(content))


@pytest.mark.parametrize("launch", ["opencode"], indirect=True)
def test_a_variable_of_the_persons_own_is_left_alone(launch: Launch) -> None:
    assert "OPENCODE_CONFIG" in plan(launch.profile, launch.context, resume=False).env
    assert "OPENCODE_CONFIG" not in plan(launch.profile, launch.context, resume=False, taken=["OPENCODE_CONFIG"]).env


TEXT = '[Synapse A2A Protocol Instructions]\n\nYou are "it" \\ あ.\n'


@pytest.mark.parametrize("launch", ["claude", "codex", "gemini", "opencode"], indirect=True)
def test_the_model_is_told_by_the_programs_own_way(launch: Launch) -> None:
    got = plan(launch.profile, launch.context, resume=False, instructions=TEXT)
    file = launch.context.launch_dir / "instructions.md"
    assert got.files[file].decode() == TEXT
    settings = [tomllib.loads(got.argv[n + 1]) for n, word in enumerate(got.argv) if word == "-c"]
    spoken = [path for path in got.files if path.name == "session-start.json"]
    config = [json.loads(text) for path, text in got.files.items() if path.name == "opencode.json"]
    assert [
        str(file) in got.argv,
        {"developer_instructions": TEXT} in settings,
        [json.loads(got.files[path])["hookSpecificOutput"]["additionalContext"] for path in spoken] == [TEXT],
        any(content.get("instructions") == [str(file)] for content in config),
    ].count(True) == 1
    silent = plan(launch.profile, launch.context, resume=False)
    assert file not in silent.files


def test_a_hash_of_a_text_that_there_is_not_names_the_profile(launch: Launch) -> None:
    channel = {"adapter": "hooks", "args": ["{sha256:Stop}"]}
    data = {"name": "x", "command": "x", "source": "/p/x.toml", "channels": {"h": channel}}
    with pytest.raises(ConfigError, match=r"/p/x\.toml: \{sha256:Stop\} names nothing that the profile has"):
        plan(Profile.model_validate(data), launch.context, resume=False)
    with pytest.raises(ValueError, match="hash of another"):
        Profile.model_validate({**data, "channels": {"h": {**channel, "hashed": {"Stop": "{sha256:Stop}"}}}})


def test_files_of_a_resumed_conversation_are_written_for_that_alone(tmp_path: Path) -> None:
    """What counts in a new conversation only has to be said again in one that is resumed, or that a person chose."""
    context = LaunchContext(
        agent_id="synapse-x-1",
        agent_dir=tmp_path / "agent",
        hooks_socket=tmp_path / "hooks.sock",
        conversation="c1",
        home=tmp_path,
    )
    profile = Profile(
        name="x",
        command="x",
        source="x.toml",
        instructions=Instructions(
            files={"first.json": {"text": "{instructions}"}}, resumed_files={"again.json": {"text": "{instructions}"}}
        ),
    )

    def names(**how: bool) -> set[str]:
        got = plan(
            profile, context, resume=how.get("resume", False), chosen=how.get("chosen", False), instructions=TEXT
        )
        return {path.name for path in got.files}

    assert names() == {"first.json", "instructions.md"}
    assert names(resume=True) == names(chosen=True) == {"first.json", "again.json", "instructions.md"}


def test_a_persons_choice_of_the_conversation_stands_alone(tmp_path: Path) -> None:
    context = LaunchContext(
        agent_id="synapse-x-1", agent_dir=tmp_path, hooks_socket=tmp_path / "s", conversation="c1", home=tmp_path
    )
    resume = Resume(args=["resume", "{conversation}"], fresh_args=["--id", "{conversation}"])
    profile = Profile(name="x", command="x", args=["--fixed"], source="x.toml", resume=resume)

    def argv(*args: str) -> tuple[str, ...]:
        return plan(profile, context, resume=False, chosen=True, args=args).argv

    assert argv("--continue") == ("x", "--fixed", "--continue")
    assert argv("resume", "--last") == ("x", "resume", "--last", "--fixed"), "a subcommand stays the first"


def test_each_launch_has_its_own_hook_client(tmp_path: Path) -> None:
    """Were the installed one gone, Python would end with 2, which claude's hooks take for an order to block."""
    context = LaunchContext(
        agent_id="a", agent_dir=tmp_path / "a", hooks_socket=tmp_path / "hooks.sock", conversation="c", home=tmp_path
    )
    prepare(context, InjectedLaunch(argv=("true",), env={}, files={}))
    assert context.hook_client.read_bytes() == Path(hookclient.__file__).read_bytes()
    assert context.hook_client.parent == context.launch_dir


def test_what_the_person_has_said_otherwise_is_not_given(launch: Launch) -> None:
    said = ("--permission-mode", "default")
    got = plan(launch.profile, launch.context, resume=False, withheld=[said], args=["--permission-mode", "plan"])
    assert [word for word in got.argv if "permission" in word] == ["--permission-mode"]
    assert plan(launch.profile, launch.context, resume=False, withheld=[("--other",)]).argv == (
        plan(launch.profile, launch.context, resume=False).argv
    )


def test_the_persons_document_goes_into_ours_and_wins(launch: Launch) -> None:
    own = {"model": "x", "hooks": {"Stop": [{"hooks": ["{python}"]}], "Mine": [1]}}
    got = plan(launch.profile, launch.context, resume=False, documents={"claude-settings.json": own})
    content = json.loads(got.files[launch.context.launch_dir / "claude-settings.json"])
    assert content["model"] == "x"
    assert content["hooks"]["Mine"] == [1]
    mine, ours = content["hooks"]["Stop"]
    assert mine == {"hooks": ["{python}"]}, "nothing is replaced in it"
    assert shlex.split(ours["hooks"][0]["command"]) == hook(launch.context, "Stop")


@pytest.mark.parametrize(
    ("theirs", "both"),
    [
        ({}, {"a": 1, "b": {"c": [1]}}),
        ({"a": 2}, {"a": 2, "b": {"c": [1]}}),
        ({"b": {"c": [2], "d": 3}}, {"a": 1, "b": {"c": [2, 1], "d": 3}}),
        ({"b": None}, {"a": 1, "b": None}),
    ],
)
def test_two_documents_in_one(theirs: dict[str, Any], both: dict[str, Any]) -> None:
    assert merged({"a": 1, "b": {"c": [1]}}, theirs) == both
