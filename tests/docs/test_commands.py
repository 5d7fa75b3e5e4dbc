"""The commands of the pages: those of console blocks, and of the pages to start with, are typed at a real daemon,
all others are parsed.

The scripted agent stands in for claude. A command that cannot be typed here names the test that does it.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from synapsectl.parsing import parse
from tests.docs.reading import DOCS, PAGES, README, ROOT, blocks, commands, inline_commands
from tests.support.daemon import ANY_PORTS, PATIENCE_S, Daemon
from tests.support.gated import first_of
from tests.synapsectl.pty_tool import PtyTool

START_HERE = ("first-hour", "moving", "trouble", "upgrading", "removing", "i-want")
PLACEHOLDER = re.compile(r"…|\b[A-Z]{2,}\b(?![A-Z.])")
"""A place to be filled in, such as NAME."""

IN_PLACE = (
    ("synapsectl start claude --worktree", "synapsectl start dummy --worktree"),
    ("synapsectl start claude --name api", "synapsectl start dummy --name api"),
    ("synapsectl start claude", "synapsectl start dummy --name claude"),
    ("synapsectl start codex", "synapsectl start dummy --name codex"),
    ("-- chatty", "-- sh"),
)
"""A program of an account, and what stands in for it."""

ELSEWHERE = {
    "make demo": "tests/docs/test_demo.py",
    "pip install": "tests/release/test_installed.py",
    "uv tool install": "tests/release/test_first_agent.py",
    "curl": "tests/docs/test_readme.py",
    "systemctl --user restart synapsed": "tests/service/test_systemd.py",
    "synapsectl install --start": "tests/service/test_systemd.py",
    "synapsectl install": "tests/service/test_systemd.py",
    "synapsectl report": "tests/parts/profile_tools/reports/test_ctl.py",
    "synapsectl top": "tests/synapsectl/test_top.py",
    "synapsectl web": "tests/parts/web/test_verbs.py",
    "synapsectl web --tailscale": "tests/parts/web/test_tailscale.py",
    "synapsectl run claude": "tests/synapsectl/test_attach.py",
    "synapsectl host add": "tests/parts/elsewhere",
    "synapsectl external add https://": "tests/parts/elsewhere",
    "synapsectl send research": "tests/parts/elsewhere",
}
"""The beginning of a command, and the test that types it, or a folder of such tests."""

NOT_TYPED = ("make test", "pip uninstall")
"""What runs the tests, and what takes away that which they run on."""


class Typed(NamedTuple):
    """A command, what is typed before it so that it has something to do, and the exit code that it has here."""

    command: str
    before: str = ""
    code: int = 0


STORY = (
    Typed("synapsectl start dummy", "synapsectl list || true"),
    Typed("synapsectl start claude"),
    Typed("synapsectl start claude --name api --cwd ~/src/api"),
    Typed("synapsectl start claude --worktree login"),
    Typed("synapsectl start generic --name chatty -- chatty"),
    Typed("synapsectl worktree list"),
    Typed("synapsectl diff claude"),
    Typed("synapsectl worktree merge login"),
    Typed("synapsectl list"),
    Typed("synapsectl status"),
    Typed("synapsectl screen claude"),
    Typed("synapsectl logs claude -n 1000"),
    Typed('synapsectl send claude "explain this"'),
    Typed('synapsectl send claude "explain this" --wait'),
    Typed('synapsectl send claude "Stop!" --priority 5'),
    Typed("synapsectl send claude /clear --command", "synapsectl send claude done --wait"),
    Typed("synapsectl tasks claude"),
    Typed("synapsectl approve claude", "synapsectl send claude 'ask y/n' --wait", 0),
    Typed('synapsectl deny claude --because "use the staging database"', "synapsectl send claude 'ask y/n' --wait", 0),
    Typed("synapsectl deny claude", "synapsectl send claude 'ask y/n' --wait", 0),
    Typed("synapsectl input claude 2", "synapsectl send claude 'ask 1/2/3' --wait", 0),
    Typed("synapsectl approve --all", "synapsectl send claude 'ask y/n' --wait"),
    Typed("synapsectl inbox"),
    Typed("synapsectl cancel claude", "synapsectl send claude 'busy 100'"),
    Typed("synapsectl keys claude Esc"),
    Typed("synapsectl keys claude C-u"),
    Typed("synapsectl adopt"),
    Typed("synapsectl adopt claude"),
    Typed("synapsectl adopt --all"),
    Typed('synapsectl schedule add claude "Mon..Fri 08:00" "What failed over night?"'),
    Typed('synapsectl history "flaky test"'),
    Typed('synapsectl history "flaky test" --since 3d'),
    Typed("synapsectl usage --by day"),
    Typed("synapsectl events --after 0"),
    Typed("synapsectl reload"),
    Typed("synapsectl notify test"),
    Typed("synapsectl restart claude --when-idle"),
    Typed("synapsectl restart claude"),
    Typed("synapsectl status claude --explain"),
    Typed("synapsectl version"),
    Typed("synapsectl version --json"),
    Typed("synapsectl upgrade --check"),
    Typed("synapsectl install --dry-run"),
    Typed("synapsectl doctor || true"),
    Typed("synapsectl external list"),
    Typed("synapsectl fleet leave", "", 2),  # this host is in none
    Typed("synapsectl stop claude"),
    Typed("synapsectl stop claude --remove"),
    Typed("synapsectl shutdown --keep-agents"),
    Typed("synapsectl up"),
    Typed("synapsectl stop --all --remove"),
    Typed("synapsectl shutdown"),
    Typed("synapsectl doctor --repair"),
)
"""What the sentences and tables of the pages to start with name, in an order in which each has something to do."""

ENDLESS = ("synapsectl events -f --json", "synapsectl logs claude -f >> log")
ON_A_TERMINAL = ("synapsectl attach claude", "synapsectl inbox", "synapsectl attach")

BEFORE = {
    "synapsectl approve claude": "synapsectl send claude 'ask y/n' --wait || true",
    "synapsectl send claude": "synapsectl list",
}
"""What a command of a block needs."""
ANY_CODE = ("synapsectl doctor", "synapsectl status claude --explain")


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path / "synapsed", config=ANY_PORTS)
    yield daemon
    shell(daemon, "synapsectl shutdown", codes=None)


def shell(daemon: Daemon, line: str, *, codes: tuple[int, ...] | None = (0,)) -> str:
    """Types a line in a repository of a home of the test's own; returns what it prints."""
    home = daemon.home.parent
    repository = home / "repository"
    if not repository.exists():
        (home / "src" / "api").mkdir(parents=True)
        for words in (["init", "-q", "repository"], [*GIT, "commit", "-q", "--allow-empty", "-m", "Begin"]):
            subprocess.run(["git", *words], cwd=repository if repository.exists() else home, check=True)
    for ours, instead in IN_PLACE:
        line = line.replace(ours, instead)
    environ = {**daemon.env, "HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{daemon.env['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", line],
        env=environ,
        cwd=repository,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert codes is None or done.returncode in codes, (line, done)
    return done.stdout


GIT = ("-C", ".", "-c", "user.name=Ann", "-c", "user.email=ann@example.com")


def named_elsewhere(command: str) -> bool:
    return any(
        command == told or command.startswith(f"{told} ") or (told.endswith("://") and command.startswith(told))
        for told in (*ELSEWHERE, *NOT_TYPED)
    )


def test_what_is_typed_elsewhere_is() -> None:
    for command, place in ELSEWHERE.items():
        path = ROOT / place
        text = "".join(file.read_text() for file in ([path] if path.is_file() else sorted(path.glob("test_*.py"))))
        words = command.split()
        assert words[0 if len(words) < 2 else -1].strip("-").removesuffix("://") in text, (command, place)


def test_each_page_with_a_block_of_commands_is_typed() -> None:
    with_blocks = {page for page in PAGES if any(commands(block) for block in blocks(page, "console"))}
    assert with_blocks == {
        README,
        DOCS / "profiles.md",
        DOCS / "bundles.md",
        *(DOCS / f"{name}.md" for name in IN_BLOCKS),
    }


IN_BLOCKS = ("a2a", "automation", "first-hour", "moving", "removing", "trouble", "upgrading")
"""Those of the README, of profiles.md and of bundles.md are typed by tests of their own."""


@pytest.mark.parametrize("name", first_of(IN_BLOCKS, 3))
def test_the_blocks_of_a_page(daemon: Daemon, name: str) -> None:
    typed = [command for block in blocks(DOCS / f"{name}.md", "console") for command in commands(block)]
    here = [command for command in typed if not named_elsewhere(command)]
    assert here
    if not any(command.startswith("synapsectl start") for command in here):
        shell(daemon, "synapsectl start claude")
    for command in here:
        if before := BEFORE.get(command):
            shell(daemon, before, codes=(0, 7))
        shell(daemon, command, codes=None if command in ANY_CODE else (0,))


def wanted(name: str) -> set[str]:
    """The commands of a page's sentences and tables that can be typed as they stand."""
    found = [command.removesuffix(".") for command in inline_commands(DOCS / f"{name}.md")]
    return {command for command in found if not PLACEHOLDER.search(command) and not named_elsewhere(command)}


@pytest.mark.night
@pytest.mark.timeout(300)
def test_the_pages_to_start_with_say_what_can_be_typed(daemon: Daemon) -> None:
    told = {command for name in START_HERE for command in wanted(name)}
    known = {typed.command.removesuffix(" || true") for typed in STORY} | set(ENDLESS) | set(ON_A_TERMINAL)
    assert told - known - {"synapsectl start dummy --name claude"} == set()
    for typed in STORY:
        if typed.before:
            shell(daemon, typed.before, codes=(0, 7))
        shell(daemon, typed.command, codes=(typed.code,))


def test_what_has_no_end_begins(daemon: Daemon) -> None:
    shell(daemon, "synapsectl start claude")
    for command in ENDLESS:
        words = shlex.split(command.partition(" >>")[0])
        tool = PtyTool(*words[1:], env=daemon.env)
        begun = b"dummy>" if "logs" in words else b"taskStatus"
        while begun not in tool.shown:  # each may be over before the command follows
            shell(daemon, "synapsectl send claude hello --wait")
        tool.type(b"\x03")
        assert tool.end() == 130, command
        tool.close()


def test_the_others_are_command_lines() -> None:
    """A verb alone is the verb's name; all else has to be whole."""
    wrong = []
    for page in PAGES:
        for command in inline_commands(page):
            if PLACEHOLDER.search(command) or any(sign in command for sign in "|[<>") or len(command.split()) < 3:
                continue
            try:
                parse(shlex.split(command)[1:])
            except SystemExit as ended:
                wrong += [f"{page.name}: {command}"] if ended.code else []
    assert sorted(set(wrong) - MENTIONS) == []


MENTIONS = {
    "configuration.md: synapsectl start --save",
    "modules.md: synapsectl profiles try",
    "web.md: synapsectl devices remove",
}
"""A verb with one of its options, or its parts."""
