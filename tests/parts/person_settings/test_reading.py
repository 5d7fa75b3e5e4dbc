"""What a person's own settings of a program ask of its launch, from files, arguments and variables."""

import json
import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from synapsed.errors import NotEnforced
from synapsed.interfaces import PersonSettings
from synapsed.parts.person_settings.reading import SIZE_MAX, judge, read
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.profiles.setting_spec import SettingsNote, SettingsSpec
from synapsed.supervisor.launch_planner import check_decided, check_enforced


@pytest.fixture(scope="module")
def library() -> ProfileLibrary:
    return ProfileLibrary.standard(Path("/nonexistent"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


def put(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def judged(
    profile: Profile, home: Path, *args: str, env: Mapping[str, str] | None = None, replaced: tuple[str, ...] = ()
) -> PersonSettings:
    known = {"HOME": str(home), **(env or {})}
    found = read(profile.settings, env=known, cwd=str(home / "project"), args=args)
    return judge(profile.settings, found, replaced)


NO_HOOKS = frozenset({"deny", "default"})


def test_without_any_settings_nothing_follows(library: ProfileLibrary, home: Path) -> None:
    put(home / ".config/opencode/opencode.json", {"permission": {"bash": "ask"}})
    for name in library.names():
        found = judged(library.get(name), home)
        assert name in ("pi", "goose") or found == PersonSettings(), name
        assert found.notes == (found.lost_by if name == "pi" else ()), "of its rules only who has some is told"


@pytest.mark.parametrize(
    "file", [".claude/settings.json", "project/.claude/settings.json", "project/.claude/settings.local.json"]
)
def test_the_mode_of_the_persons_settings_counts(file: str, library: ProfileLibrary, home: Path) -> None:
    put(home / file, {"permissions": {"defaultMode": "plan"}})
    found = judged(library.get("claude"), home)
    assert found.withheld == (("--permission-mode", "default"),)
    shown = f"~/{file}"
    assert found.notes == (f"permissions.defaultMode = plan in {shown}: it begins in plan mode",)
    assert found.loses == frozenset()


@pytest.mark.parametrize("mode", ["auto", "bypassPermissions"])
@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_a_repository_does_not_have_tools_run_unasked(
    name: str, mode: str, library: ProfileLibrary, home: Path
) -> None:
    put(home / "project/.claude" / name, {"permissions": {"defaultMode": mode, "allow": ["Read"]}})
    found = judged(library.get("claude"), home)
    assert (found.withheld, found.loses) == ((), frozenset())
    assert [": not followed" in note for note in found.notes] == [True]
    put(home / ".claude/settings.json", {"permissions": {"defaultMode": mode}})
    assert judged(library.get("claude"), home).loses == {"default"}, "the person may"


@pytest.mark.parametrize(
    ("args", "note"),
    [
        (("--permission-mode", "acceptEdits"), "--permission-mode acceptEdits: it edits"),
        (("--permission-mode=auto",), "--permission-mode auto: its tools run unasked"),
        (("--dangerously-skip-permissions",), "--dangerously-skip-permissions: its tools run unasked"),
    ],
)
def test_so_does_that_of_their_arguments(args: tuple[str, ...], note: str, library: ProfileLibrary, home: Path) -> None:
    put(home / ".claude/settings.json", {"permissions": {"defaultMode": "plan"}})
    found = judged(library.get("claude"), home, *args, "words")
    assert found.withheld == (("--permission-mode", "default"),)
    assert [said for said in found.notes if said.startswith(note)]
    assert len(found.notes) == 1
    assert found.loses == {"default"}


def test_what_stands_behind_two_dashes_is_no_option(library: ProfileLibrary, home: Path) -> None:
    assert judged(library.get("claude"), home, "--", "--permission-mode", "plan") == PersonSettings()


def test_the_stronger_file_counts(library: ProfileLibrary, home: Path) -> None:
    put(home / ".claude/settings.json", {"disableAllHooks": True})
    put(home / "project/.claude/settings.json", {"disableAllHooks": False})
    assert judged(library.get("claude"), home) == PersonSettings()


def test_the_folder_that_a_variable_names_counts_in_place_of_the_usual_one(library: ProfileLibrary, home: Path) -> None:
    put(home / ".claude/settings.json", {"disableAllHooks": True})
    assert judged(library.get("claude"), home, env={"CLAUDE_CONFIG_DIR": str(home / "other")}) == PersonSettings()
    put(home / "other/settings.json", {"disableAllHooks": True})
    assert judged(library.get("claude"), home, env={"CLAUDE_CONFIG_DIR": str(home / "other")}).loses == NO_HOOKS


OFF: dict[str, tuple[str, str, Any, tuple[str, ...]]] = {
    "claude": ("claude", ".claude/settings.json", {"disableAllHooks": True}, ()),
    "claude --bare": ("claude", "none", {}, ("--bare",)),
    "claude --settings": ("claude", "none", {}, ("--settings", '{"disableAllHooks": true}')),
    "gemini": ("gemini", ".gemini/settings.json", '{\n // none\n "hooksConfig": {"enabled": false},\n}', ()),
    "gemini's folder": ("gemini", "project/.gemini/settings.json", {"hooksConfig": {"enabled": False}}, ()),
    "codex never asks": ("codex", ".codex/config.toml", 'approval_policy = "never"\n', ()),
    "codex -a": ("codex", "none", {}, ("-a", "never")),
    "codex -c": ("codex", "none", {}, ("-c", "approval_policy=never")),
    "codex -c with quotes": ("codex", "none", {}, ("--config", 'approval_policy="never"')),
    "codex --yolo": ("codex", "none", {}, ("--yolo",)),
    "codex without hooks": ("codex", ".codex/config.toml", "[features]\nhooks = false\n", ()),
    "codex --disable": ("codex", "none", {}, ("--disable", "hooks")),
    "opencode": ("opencode", "none", {}, ()),
    "opencode allows": ("opencode", ".config/opencode/opencode.json", {"permission": {"bash": "allow"}}, ()),
}


@pytest.mark.parametrize("case", OFF)
def test_deny_rules_that_cannot_be_enforced_are_known(case: str, library: ProfileLibrary, home: Path) -> None:
    cli, file, content, args = OFF[case]
    put(home / file, content)
    found = judged(library.get(cli), home, *args)
    assert found.loses == NO_HOOKS
    assert len(found.notes) == 1
    assert "approval rules do not count" in found.notes[0]


def test_hooks_that_are_off_cost_nothing_where_a_server_tells_all(library: ProfileLibrary, home: Path) -> None:
    assert judged(library.get("codex"), home, "--disable", "hooks", replaced=("hooks",)) == PersonSettings()


@pytest.mark.parametrize("where", ["permission", "agent"])
def test_opencode_that_asks_about_something_enforces_what_it_asks(
    where: str, library: ProfileLibrary, home: Path
) -> None:
    asks = {"permission": {"bash": {"*": "allow", "rm *": "ask"}}}
    put(home / "project/opencode.jsonc", asks if where == "permission" else {"agent": {"build": asks}})
    assert judged(library.get("opencode"), home) == PersonSettings()


def test_a_variable_switches_hooks_off_too(library: ProfileLibrary, home: Path) -> None:
    found = judged(library.get("claude"), home, env={"CLAUDE_CODE_SIMPLE": "1"})
    assert found.notes[0].startswith("CLAUDE_CODE_SIMPLE: it runs no hooks")


@pytest.mark.parametrize("given", ["mine.json", '{"model": "x"}', "--settings=mine.json"])
def test_a_document_of_the_command_line_goes_into_our_file(given: str, library: ProfileLibrary, home: Path) -> None:
    put(home / "project/mine.json", {"model": "x"})
    args = [given] if "=" in given else ["--settings", given]
    spec = library.get("claude").settings
    found = read(spec, env={"HOME": str(home)}, cwd=str(home / "project"), args=["-v", *args, "words"])
    assert found.documents == {"claude-settings.json": {"model": "x"}}
    assert found.args == ("-v", "words")


def test_what_the_person_names_themselves_is_no_repositorys(library: ProfileLibrary, home: Path) -> None:
    put(home / "project/mine.json", {"permissions": {"defaultMode": "auto"}})
    assert judged(library.get("claude"), home, "--settings", "mine.json").loses == {"default"}


@pytest.mark.parametrize("given", ["missing.json", "{not json", "pipe"])
def test_one_that_cannot_be_read_is_left_to_the_program(given: str, library: ProfileLibrary, home: Path) -> None:
    os.mkfifo(home / "project" / "pipe")
    spec, args = library.get("claude").settings, ("--settings", given)
    found = read(spec, env={"HOME": str(home)}, cwd=str(home / "project"), args=args)
    assert (found.args, found.documents) == (args, {})


@pytest.mark.parametrize("content", ["{", "[" * 100_000, " " * (SIZE_MAX + 1), "1"])
def test_a_file_that_cannot_be_read_is_told_and_the_mode_stays(
    content: str, library: ProfileLibrary, home: Path
) -> None:
    put(home / ".claude/settings.json", content)
    found = judged(library.get("claude"), home)
    assert found.withheld == ()
    (note,) = found.notes
    assert note.startswith("~/.claude/settings.json cannot be read")


def test_the_defaults_of_a_system_go_into_the_file_in_their_place(library: ProfileLibrary, home: Path) -> None:
    put(home / "defaults.json", {"ui": {"theme": "x"}, "hooksConfig": {"enabled": False}})
    env = {"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": str(home / "defaults.json")}
    found = judged(library.get("gemini"), home, env=env)
    assert found.documents["gemini-settings.json"]["ui"] == {"theme": "x"}
    assert found.loses == NO_HOOKS


def test_the_persons_own_instructions_are_known(library: ProfileLibrary, home: Path) -> None:
    put(home / ".codex/config.toml", 'developer_instructions = "Be brief."\n')
    assert judged(library.get("codex"), home).instructions == "Be brief."


# --- keys ---

BOUND: dict[str, tuple[str, str, Any, str | None]] = {
    "claude": (
        "claude",
        ".claude/keybindings.json",
        {"bindings": [{"context": "Chat", "bindings": {"enter": "chat:newline", "ctrl+s": "chat:submit"}}]},
        "enter (chat:submit)",
    ),
    "claude takes one away": (
        "claude",
        ".claude/keybindings.json",
        {"bindings": [{"context": "Chat", "bindings": {"Return": None, "esc": None}}]},
        "enter (chat:submit), escape (chat:cancel)",
    ),
    "claude, other keys": (
        "claude",
        ".claude/keybindings.json",
        {
            "bindings": [
                {"context": "Chat", "bindings": {"ctrl+s": "chat:submit"}},
                {"context": "Tabs", "bindings": {"enter": None}},
            ]
        },
        None,
    ),
    "claude, the last counts": (
        "claude",
        ".claude/keybindings.json",
        {
            "bindings": [
                {"context": "Chat", "bindings": {"enter": None}},
                {"context": "Chat", "bindings": {"enter": "chat:submit"}},
            ]
        },
        None,
    ),
    "gemini": (
        "gemini",
        ".gemini/keybindings.json",
        [{"command": "-input.submit", "key": "enter"}],
        "enter (input.submit)",
    ),
    "gemini, another command": (
        "gemini",
        ".gemini/keybindings.json",
        [{"command": "input.newline", "key": "enter"}],
        "enter (input.submit)",
    ),
    "gemini, one more key": (
        "gemini",
        ".gemini/keybindings.json",
        [{"command": "input.submit", "key": "ctrl+s"}],
        None,
    ),
    "codex": (
        "codex",
        ".codex/config.toml",
        '[tui.keymap.composer]\nsubmit = "ctrl-enter"\n',
        "enter (composer.submit)",
    ),
    "codex, one more key": (
        "codex",
        ".codex/config.toml",
        '[tui.keymap.composer]\nsubmit = ["enter", "ctrl-s"]\n',
        None,
    ),
    "opencode": (
        "opencode",
        ".config/opencode/tui.json",
        {"keybinds": {"input_submit": "ctrl+s", "session_interrupt": "escape,ctrl+c"}},
        "return (input_submit)",
    ),
    "nonsense": (
        "claude",
        ".claude/keybindings.json",
        {"bindings": [1, {"bindings": 2}, {"context": "Chat", "bindings": {"enter": 3}}]},
        "enter (chat:submit)",
    ),
}


@pytest.mark.parametrize("case", BOUND)
def test_keys_that_are_bound_otherwise_are_named(case: str, library: ProfileLibrary, home: Path) -> None:
    cli, file, content, lost = BOUND[case]
    put(home / ".config/opencode/opencode.json", {"permission": {"bash": "ask"}})
    put(home / file, content)
    found = judged(library.get(cli), home)
    told = f"~/{file} binds {lost} otherwise: what is pressed here may not do it"
    assert found.keys == (told if lost else "")
    assert found.notes == ((told,) if lost else ())


# --- what the start says ---

SAYS = PersonSettings(notes=("vim",), loses=NO_HOOKS, lost_by=("its hooks are off",))


@pytest.mark.parametrize(
    ("refusing", "said"),
    [
        ({"deny"}, "has deny rules, which"),
        ({"default"}, 'has default = "deny", which'),
        ({"deny", "default"}, 'has deny rules and default = "deny", which'),
    ],
)
def test_where_a_policy_cannot_be_enforced_the_way_out_is_named(refusing: set[str], said: str) -> None:
    with pytest.raises(NotEnforced) as refused:
        check_enforced("it", frozenset(refusing), SAYS)
    assert said in refused.value.message
    assert "its hooks are off" in refused.value.message
    assert "--without-approval" in refused.value.message
    assert refused.value.exit_code == 6


@pytest.mark.parametrize(
    ("refusing", "loses"), [(set(), NO_HOOKS), ({"deny"}, {"default"}), ({"deny", "default"}, set())]
)
def test_it_is_started_where_all_that_it_has_counts(refusing: set[str], loses: set[str]) -> None:
    check_enforced("it", frozenset(refusing), PersonSettings(loses=frozenset(loses)))


def test_a_note_is_about_values_or_about_what_is_lacking() -> None:
    with pytest.raises(ValidationError, match="'values' or for what"):
        SettingsNote(path="a", says="x")
    with pytest.raises(ValidationError, match="belong together"):
        SettingsSpec(document="--settings")


@pytest.mark.parametrize(
    ("refusing", "adapters", "refused"),
    [
        ({"deny"}, set(), True),
        ({"deny"}, {"hooks"}, False),
        ({"deny"}, None, False),
        (set(), set(), False),
    ],
    ids=["nobody asks", "it asks", "all are installed", "no rules"],
)
def test_rules_of_a_program_whose_channel_nobody_speaks(
    refusing: set[str], adapters: set[str] | None, refused: bool
) -> None:
    profile = ProfileLibrary.builtin().get("claude")
    with pytest.raises(NotEnforced, match="hooks") if refused else nullcontext():
        check_decided("it", refusing, profile, adapters)


@pytest.mark.parametrize("adapters", [{"hooks"}, {"hooks", "app-server"}, None], ids=["alone", "beside", "all"])
def test_a_program_whose_companion_nobody_speaks_to_asks_by_its_hooks(adapters: set[str] | None) -> None:
    check_decided("it", {"deny", "default"}, ProfileLibrary.builtin().get("codex"), adapters)


def test_a_companion_that_asks_nothing_and_takes_the_place_of_what_does(tmp_path: Path) -> None:
    (tmp_path / "it.toml").write_text(
        """
        command = "sh"
        [channels.server]
        adapter = "app-server"
        companion = ["{program}"]
        replaces = ["hooks"]
        [channels.hooks]
        adapter = "hooks"
        [channels.hooks.decisions.Each]
        rules_only = true
        deny = { ok = false }
        """
    )
    profile = ProfileLibrary([tmp_path]).get("it")
    with pytest.raises(NotEnforced, match="has no way"):
        check_decided("it", {"deny"}, profile, None)
    check_decided("it", {"deny"}, profile, {"hooks"})
    with pytest.raises(NotEnforced, match='default = "deny", which'):
        check_decided("it", {"default"}, profile, {"hooks"})
