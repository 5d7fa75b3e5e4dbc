"""Profiles: found, overridden key by key, and errors that say where."""

import subprocess
import sys
from pathlib import Path

import pytest

from synapsed.errors import ConfigError, UnknownProfile
from synapsed.profiles.library import CHECKOUT, ProfileLibrary

OWN_PORTS = ["claude", "codex", "dummy", "gemini", "opencode"]
BUILT_IN = sorted(path.stem for path in CHECKOUT.glob("*.toml"))


def user(tmp_path: Path, name: str, text: str) -> ProfileLibrary:
    (tmp_path / f"{name}.toml").write_text(text)
    return ProfileLibrary.standard(tmp_path)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "codex" else pytest.mark.night) for name in BUILT_IN]
)
def test_keys_that_clear_a_composer_end_no_program_whose_composer_is_empty_by_then(name: str, tmp_path: Path) -> None:
    delivery = ProfileLibrary.standard(tmp_path).get(name).delivery
    assert not {"\x03", "\x04"} & set(delivery.clear + delivery.erase)


def test_built_in_profiles_load(tmp_path: Path) -> None:
    library = ProfileLibrary.standard(tmp_path)
    assert library.names() == BUILT_IN
    for name in BUILT_IN:
        profile = library.get(name)
        assert profile.description
        assert profile.transport == "pipes" or (profile.interrupt.keys and profile.exit.keys)


def test_ports_do_not_overlap(tmp_path: Path) -> None:
    library = ProfileLibrary.standard(tmp_path)
    ranges = {name: library.get(name).ports for name in (*OWN_PORTS, "generic")}
    for name in set(BUILT_IN) - set(OWN_PORTS):
        assert library.get(name).ports == library.get("generic").ports
    assert ranges == {
        "claude": (8100, 8109),
        "gemini": (8110, 8119),
        "codex": (8120, 8129),
        "opencode": (8130, 8139),
        "generic": (8140, 8189),
        "dummy": (8190, 8199),
    }


@pytest.mark.parametrize("name", [".#claude.toml", "._claude.toml"])
def test_files_of_editors_are_passed_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\0\5\x16\7")
    library = ProfileLibrary.standard(tmp_path)
    assert library.names() == BUILT_IN
    with pytest.raises(UnknownProfile, match=r"did you mean|there are"):
        library.get(Path(name).stem)


def test_users_file_overrides_key_by_key(tmp_path: Path) -> None:
    library = user(tmp_path, "claude", 'command = "/opt/claude"\n[delivery]\nsettle_ms = 7\n')
    changed, built_in = library.get("claude"), ProfileLibrary.standard(tmp_path / "none").get("claude")
    assert (changed.command, changed.delivery.settle_ms) == ("/opt/claude", 7)
    assert changed.delivery.clear == built_in.delivery.clear
    assert changed.channels == built_in.channels
    assert changed.source == str(tmp_path / "claude.toml")


def test_profile_of_ones_own(tmp_path: Path) -> None:
    profile = user(tmp_path, "calc", "[composer]\nline = '^calc> (?P<text>.*)$'\n").get("calc")
    assert (profile.name, profile.command) == ("calc", "calc")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("comand = 'x'\n", r"x\.toml:1: unknown key 'comand'; did you mean 'command'\?"),
        (
            "command = 'x'\n\n[delivery]\nsettle = 5\n",
            r"x\.toml:4: unknown key 'delivery\.settle'; did you mean 'settle_ms'\?",
        ),
        ("[composer]\nline = '('\n", r"x\.toml:2: composer\.line: .*not a regular expression"),
        ("[channels.h]\nadapter = 'smoke signals'\n", r"x\.toml:2: channels\.h\.adapter"),
        (
            "[channels.h]\nadapter = 'event-files'\nfailed_answer = 'x'\n",
            r"x\.toml:2: channels\.h\.adapter: .*no longer supported: remove this channel",
        ),
        ("[channels.h]\nadapter = 'hooks'\nevents = { Stop = 'over' }\n", r"x\.toml:3: channels\.h\.events\.Stop"),
        ("[channels.h]\nadapter = 'hooks'\n[channels.h.transcript]\nlines = []\n", r"x\.toml:4: unknown key"),
        ("command = \n", r"x\.toml:1: Invalid value"),
        ("command = " + "[" * 5000 + "\n", r"x\.toml: .*too many brackets"),
        ("command = " + "1" * 5000 + "\n", r"x\.toml: .*too many digits"),
        ("[tools]\nstart = ['^a']\n", r"x\.toml:2: unknown key 'tools\.start'; did you mean 'started'\?"),
        ("[tools]\nstarted = ['^(?P<tool>a)']\n", r"x\.toml:1: tools: .*must be seen to end"),
        ("[tools]\ncompleted = ['(']\n", r"x\.toml:2: tools\.completed.*not a regular expression"),
        ("command = 'x'\nstatus_records = 'a b'\n", r"x\.toml:2: status_records: 'a b' is no name of an app"),
    ],
)
def test_error_says_where_and_what_was_meant(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        user(tmp_path, "x", text)


def test_reload_that_fails_changes_nothing(tmp_path: Path) -> None:
    library = user(tmp_path, "x", "command = 'x'\n")
    (tmp_path / "x.toml").write_text("comand = 'x'\n")
    with pytest.raises(ConfigError):
        library.reload()
    assert library.get("x").command == "x"


def test_unknown_profile_names_the_nearest(tmp_path: Path) -> None:
    library = ProfileLibrary.standard(tmp_path)
    with pytest.raises(UnknownProfile, match="did you mean 'claude'"):
        library.get("claud")
    with pytest.raises(UnknownProfile, match="there are acp, aider, amp"):
        library.get("zzz")


def test_dummy_is_run_by_our_own_interpreter(tmp_path: Path) -> None:
    argv = ProfileLibrary.standard(tmp_path).get("dummy").argv("/usr/bin/python3")
    assert argv[0] == "/usr/bin/python3"
    assert Path(argv[-1]).is_file()


FORK = """extends = 'gemini'
command = 'qwen'
ports = [8200, 8209]
[delivery]
settle_ms = 7
"""


def test_a_profile_extends_another_key_by_key(tmp_path: Path) -> None:
    library = user(tmp_path, "qwen", FORK)
    fork, base = library.get("qwen"), library.get("gemini")
    assert (fork.name, fork.command, fork.ports, fork.delivery.settle_ms) == ("qwen", "qwen", (8200, 8209), 7)
    assert fork.source == str(tmp_path / "qwen.toml")
    assert (fork.prompts, fork.channels, fork.delivery.clear) == (base.prompts, base.channels, base.delivery.clear)
    assert base.verified
    assert fork.verified is None  # that was another program


def test_what_extends_a_profile_is_another_type_of_the_same_program(tmp_path: Path) -> None:
    library = user(tmp_path, "second", "extends = 'gemini'\n")
    second, base = library.get("second"), library.get("gemini")
    assert (second.command, second.verified, second.composer) == (base.command, base.verified, base.composer)
    assert second.ports == (8140, 8189)
    assert second.description == ""


def test_a_chain_goes_through_what_overrides_a_built_in_profile(tmp_path: Path) -> None:
    user(tmp_path, "gemini", "[delivery]\nsettle_ms = 9\n")
    user(tmp_path, "b", "extends = 'gemini'\ncols = 99\n")
    profile = user(tmp_path, "a", "extends = 'b'\nrows = 77\n").get("a")
    assert (profile.delivery.settle_ms, profile.cols, profile.rows) == (9, 99, 77)


def test_a_base_without_a_command_is_named_by_its_file(tmp_path: Path) -> None:
    user(tmp_path, "calc", "[composer]\nline = '^calc> (?P<text>.*)$'\n")
    assert user(tmp_path, "other", "extends = 'calc'\n").get("other").command == "calc"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": "cols = 90\nextends = 'b'\n", "b": "extends = 'a'\n"}, r"b\.toml:1: extends: .*circle: a → b → a"),
        ({"gemini": "extends = 'gemini'\n"}, r"gemini\.toml:1: .*circle: gemini → gemini; .* without that"),
        ({"a": "extends = 'b'\n", "b": "extends = 'c'\n", "c": "extends = 'b'\n"}, "circle: b → c → b"),
        ({"a": "extends = 'gemmini'\n"}, r"a\.toml:1: extends: no profile 'gemmini'"),
        ({"a": "extends = 3\n"}, r"a\.toml:1: extends: must be a string"),
        ({"a": "extends = 'b'\n", "b": "rows = 1\n"}, r"b\.toml:1: rows: "),
    ],
)
def test_what_is_extended_is_checked(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        ProfileLibrary.standard(tmp_path)


def test_a_file_is_checked_with_those_beside_it_that_it_extends(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("comand = 'x'\n")
    (tmp_path / "b.toml").write_text("extends = 'gemini'\ncols = 99\n")
    (tmp_path / "a.toml").write_text("extends = 'b'\n")
    assert ProfileLibrary.builtin().check(tmp_path / "a.toml").cols == 99
    (tmp_path / "b.toml").write_text("extends = 'a'\n")
    with pytest.raises(ConfigError, match="circle: a → b → a"):
        ProfileLibrary.builtin().check(tmp_path / "a.toml")


@pytest.mark.parametrize(
    ("version", "source"), [(None, "screen"), ("2.1.151", "screen"), ("2.1.152", "channel"), ("2.1.330", "channel")]
)
def test_claude_is_given_no_hook_that_its_version_does_not_know(
    tmp_path: Path, version: str | None, source: str
) -> None:
    """It asks about its settings at the start where it is, and takes no message until that is answered."""
    profile = ProfileLibrary.standard(tmp_path).get("claude").at(version)
    hooks = profile.channels["hooks"].files["claude-settings.json"]["hooks"]
    assert profile.stream.source == source
    assert ("MessageDisplay" in hooks) == (source == "channel")
    assert "Stop" in hooks


def test_who_reads_profiles_does_not_load_the_log() -> None:
    """`synapsectl profiles show` waits for what is loaded."""
    asked = "[name for name in ('structlog', 'asyncio') if name in sys.modules]"
    code = f"import sys, synapsed.profiles.library; print({asked})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


TERMINAL = "[composer]\nline = '^> (?P<text>.*)$'\n"


@pytest.mark.parametrize(
    ("name", "text", "takes"),
    [
        ("qwen", f"command = 'qwen'\n{TERMINAL}", False),
        ("qwen", "extends = 'gemini'\n", False),
        ("aider", TERMINAL, False),
        ("qwen", "args = ['--acp', '--yolo']\n", True),
        ("qwen", "[ready]\nquiet_ms = 7\n", False),
        ("claude", TERMINAL, True),
    ],
)
def test_what_a_person_wrote_for_a_program_before_its_profile_was_shipped_counts_alone(
    name: str, text: str, takes: bool, tmp_path: Path
) -> None:
    profile, built_in = user(tmp_path, name, text).get(name), ProfileLibrary.builtin().get(name)
    assert (profile.transport == built_in.transport and profile.install == built_in.install) is takes


def test_an_unverified_profile_says_so_at_each_start(tmp_path: Path) -> None:
    profile = user(tmp_path, "mine", "unverified = 'never run here'\nversion = {}\n").get("mine")
    for version in (None, "", "1.0"):
        assert profile.drift(version) == "its profile is not verified: never run here"
    assert user(tmp_path, "fork", "extends = 'mine'\n").get("fork").unverified == "never run here"
    assert user(tmp_path, "other", "extends = 'mine'\ncommand = 'other'\n").get("other").unverified == ""
