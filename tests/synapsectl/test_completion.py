"""Completion: what may stand next, and that the real shells show it."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from synapsectl.completing import split
from synapsectl.parsing import command_line, parsers
from synapsectl.verbs import all_verbs
from synapsed.model.task import PromptOption
from tests.support.daemon import PATIENCE_S
from tests.support.typed_shell import TypedShell
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon, agent, permission
from tests.synapsectl.test_several import asking  # noqa: F401 - a fixture

BIN = Path(sys.executable).parent


def offered(ctl: Ctl, *words: str) -> list[str]:
    done = ctl("completion", "--words", "--", *words)
    assert (done.code, done.err) == (0, "")
    return [line.partition("\t")[0] for line in done.out.splitlines()]


def asks(daemon: FakeDaemon, key: str, label: str) -> None:
    prompt = permission().model_copy(update={"options": [PromptOption(key=key, label=label)]})
    daemon.agents["codex"] = agent("codex", port=8101, activity="waiting", prompt=prompt)


def test_verbs_and_their_parts(home: Path, ctl: Ctl) -> None:
    assert offered(ctl, "") == offered(ctl) == list(all_verbs())
    assert offered(ctl, "sta") == ["start", "status"]
    assert offered(ctl, "host", "") == ["add", "list", "remove"]
    assert offered(ctl, "help", "host", "r") == ["remove"]
    assert offered(ctl, "nothing", "") == []
    assert offered(ctl, "host", "nothing", "") == []


def test_every_option_of_every_verb(home: Path, ctl: Ctl) -> None:
    for parser in parsers(command_line()):
        if not parser.parts:
            wanted = {name for action in parser.own_actions for name in action.option_strings}
            assert set(offered(ctl, *parser.prog.split()[1:], "-")) == wanted, parser.prog


def test_options_and_what_stands_behind_them(home: Path, ctl: Ctl) -> None:
    assert offered(ctl, "list", "--w") == ["--watch"]
    assert offered(ctl, "list", "--watch", "--w") == []
    assert offered(ctl, "send", "--file", "x", "--f") == ["--fleet", "--follow", "--from", "--file"]
    assert offered(ctl, "send", "--priority", "") == ["1", "2", "3", "4", "5"]
    assert offered(ctl, "history", "--kind", "a") == ["answer"]
    assert offered(ctl, "profiles", "--j") == ["--json"]
    assert offered(ctl, "start", "dummy", "--", "--n") == []
    assert ctl("completion", "--words", "--", "start", "dummy", "--cwd", "").out == "\tfolder\n"
    assert ctl("completion", "--words", "--", "send", "claude", "--file", "").out == "\tfile\n"
    assert offered(ctl, "completion", "") == ["bash", "zsh", "fish"]


@pytest.mark.usefixtures("daemon")
def test_agents_profiles_and_keys(ctl: Ctl) -> None:
    assert offered(ctl, "attach", "") == ["claude", "codex"]
    assert offered(ctl, "stop", "claude", "") == ["codex"]
    assert offered(ctl, "send", "claude,c") == ["claude,claude", "claude,codex"]
    assert offered(ctl, "send", "claude", "--reply-to", "x", "--from", "co") == ["codex"]
    assert offered(ctl, "send", "claude", "") == []
    assert offered(ctl, "start", "d") == ["dummy"]
    assert offered(ctl, "keys", "claude", "Pg") == ["PgUp", "PgDn"]


def test_tasks_and_the_keys_of_an_answer(daemon: FakeDaemon, ctl: Ctl, asking: str) -> None:  # noqa: F811
    assert offered(ctl, "task", asking[:4]) == [asking[:8]]
    assert offered(ctl, "cancel", asking[:4]) == [asking[:8]]
    keys = [option.key for option in permission().options]
    assert offered(ctl, "input", asking, "") == keys
    assert offered(ctl, "input", "--json", "claude", "") == keys


def test_without_a_daemon_nothing_is_offered_and_none_is_started(home: Path, ctl: Ctl) -> None:
    for words in (["attach", ""], ["start", ""], ["task", ""], ["input", "claude", ""]):
        assert offered(ctl, *words) == []
    assert list(home.iterdir()) == []


def test_what_an_agent_wrote_is_a_line_of_its_own(daemon: FakeDaemon, ctl: Ctl) -> None:
    asks(daemon, "1", "a\n2\tb\x1b[2J")
    assert ctl("completion", "--words", "--", "input", "codex", "").out == "1\ta 2 b\\x1b[2J\n"


def test_the_value_of_an_option_in_one_word_with_it(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert offered(ctl, "send", "--priority=") == [f"--priority={number}" for number in range(1, 6)]
    assert offered(ctl, "send", "claude", "--from=co") == ["--from=codex"]
    assert ctl("completion", "--words", "--", "send", "--file=a").out == "\tfile\n"
    assert offered(ctl, "send", "--priority=1", "co") == ["codex"]
    assert offered(ctl, "send", "--priority=1", "--prio") == []
    assert offered(ctl, "send", "--wait=") == []
    assert offered(ctl, "send", "--", "--priority=") == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a ", ["a", ""]),
        ("  a   b", ["a", "b"]),
        ("a 'b c' \"d e", ["a", "b c", "d e"]),
        ("a ''", ["a", ""]),
        ("a '' b", ["a", "", "b"]),
        ("a b\\ c\\", ["a", "b c"]),
        ('a "b\\"c\\d" \'e\\', ["a", 'b"c\\d', "e\\"]),
        ("a --file='b c", ["a", "--file=b c"]),
    ],
)
def test_words_of_a_line(line: str, words: list[str]) -> None:
    assert split(line) == words


@pytest.mark.timeout(2 * PATIENCE_S)
@pytest.mark.parametrize(
    "name", ["bash", pytest.param("zsh", marks=pytest.mark.night), pytest.param("fish", marks=pytest.mark.night)]
)
def test_in_a_real_shell(name: str, daemon: FakeDaemon, home: Path, asking: str) -> None:  # noqa: F811
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name} here")
    asks(daemon, "yes-always", "Yes")
    (home / "my bin").mkdir()
    (home / "my bin" / "synapsectl").symlink_to(BIN / "synapsectl")
    (home / "bin").symlink_to("my bin")
    places = {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home)}
    shell = TypedShell(name, BIN, {**os.environ, **places})
    (home / "folder-of-mine").mkdir()
    (home / "notes.txt").touch()
    for typed, to in (
        ("shutd", "shutdown"),
        ("host rem", "host remove"),
        ("send --prio", "send --priority"),
        ("attach cod", "attach codex"),
        ('attach "cod', "attach codex"),
        ("attach 'cod", "attach codex"),
        ("send 'claude' --from=cod", "send claude --from=codex"),
        (f"task {asking[:3]}", f"task {asking[:8]}"),
        ("input codex yes-", "input codex yes-always"),
        ("send claude,cod", "send claude,codex"),
        (f"start dummy --cwd {home}/fol", f"start dummy --cwd {home}/folder-of-mine"),
        (f"start dummy --cwd={home}/fol", f"start dummy --cwd={home}/folder-of-mine"),
        (f"send claude --file {home}/not", f"send claude --file {home}/notes.txt"),
        (f"send claude --file={home}/not", f"send claude --file={home}/notes.txt"),
    ):
        shell.completes(f"synapsectl {typed}", f"synapsectl {to}")
    shell.completes("~/bin/synapsectl attach cod", "~/bin/synapsectl attach codex")
    shell.completes("$HOME/bin/synapsectl attach cod", f"{home}/bin/synapsectl attach codex")
    shell.completes("nowhere/synapsectl attach cod", "nowhere/synapsectl attach cod")
    assert b"rror" not in shell.shown
    assert b"nknown" not in shell.shown
    shell.close()


@pytest.mark.parametrize(
    "name", ["bash", pytest.param("zsh", marks=pytest.mark.night), pytest.param("fish", marks=pytest.mark.night)]
)
def test_what_an_agent_offers_is_no_command_of_the_shell(name: str, daemon: FakeDaemon, home: Path) -> None:
    """The word is one word, whatever characters it has."""
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name} here")
    asks(daemon, "yes$(touch gone-wrong);`id`", "Yes")
    places = {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home)}
    shell = TypedShell(name, BIN, {**os.environ, **places})
    shell.completes("synapsectl input codex ye", "synapsectl input codex yes$(touch gone-wrong);`id`")
    assert not (home / "gone-wrong").exists()
    shell.close()
