"""The profile that docs/profiles.md teaches, taught, and the commands of that page typed."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually

PAGE = (Path(__file__).parents[2] / "docs" / "profiles.md").read_text()
WHOLE = re.MULTILINE | re.DOTALL
NAMED = re.compile(
    r"```toml\n# ~/\.config/synapsed/(?P<file>profiles/\w+\.toml)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
CONSOLE = re.compile(r"^```console\n(?P<text>.*?)^```$", WHOLE)


PROGRAM = Path(__file__).parents[1] / "tui" / "program.py"
RULES = re.compile("─{20,}")


@pytest.fixture
def chatty(tmp_path: Path) -> dict[str, str]:
    """The environment of a shell that has the program of the page, and what it received in `received`."""
    program = tmp_path / "bin" / "chatty"
    program.parent.mkdir()
    started = shlex.join([sys.executable, "-S", "-E", "-I", str(PROGRAM), str(tmp_path / "received")])
    tricks = """[ -n "$TRICKS" ] || TRICKS='{"alternate": true}'"""
    program.write_text(f'#!/bin/sh\n{tricks}\nexec {started} "$TRICKS"\n')
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS)
    daemon.start()
    yield daemon
    assert daemon.end() == 0


@pytest.mark.night
def test_a_prompt_that_is_not_found_is_shown(daemon: Daemon) -> None:
    path = daemon.home / "config" / "profiles" / "py.toml"
    path.parent.mkdir()
    path.write_text("command = 'python3'\n[composer]\nat_cursor = true\nline = '^py> (?P<text>.*)$'\n")
    assert daemon.ctl("reload").code == 0
    assert daemon.ctl("start", "py").code == 0
    eventually(lambda: "not at the cursor: '>>>'" in daemon.ctl("status", "py", "--explain").out, "the prompt is shown")


@pytest.mark.night
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs sqlite3")
def test_the_smallest_profile(daemon: Daemon) -> None:
    profile = next(found for found in NAMED.finditer(PAGE) if found["file"].endswith("sql.toml"))
    path = daemon.home / "config" / profile["file"]
    path.parent.mkdir(parents=True)
    path.write_text(profile["text"])
    session = next(found for found in CONSOLE.finditer(PAGE) if "sql.toml" in found["text"])
    typed = [line[2:].partition("  #")[0] for line in session["text"].splitlines() if line.startswith("$ synapsectl ")]
    assert [command.split()[1] for command in typed] == ["profiles", "reload", "start", "send"]
    for command in typed:
        arguments = shlex.split(command.replace(f"~/.config/synapsed/{profile['file']}", str(path)))[1:]
        done = daemon.ctl(*arguments)
        assert done.code == 0, (command, done)
        if arguments[0] == "profiles":
            assert (done.out, done.err) == (f"{path}: fine\n", "")
    assert done.out.rstrip() == session["text"].splitlines()[-1] == "42"
    several = daemon.ctl(
        "send", "sql", "create table t(a, b);\ninsert into t values (1, 'x');\nselect b from t;", "--wait"
    )
    assert several.out == "x\n"
    assert daemon.ctl("send", "sql", "select 1", "--wait").code == 0
    assert daemon.ctl("send", "sql", ";", "--wait").out == "1\n"


@pytest.mark.night
def test_a_usual_prompt_needs_none(daemon: Daemon) -> None:
    (command,) = re.findall(r"`synapsectl (start generic --name py [^`]*)`", PAGE)
    assert daemon.ctl(*shlex.split(command)).code == 0
    assert daemon.ctl("send", "py", "6*7", "--wait").out == "42\n"
    failed = daemon.ctl("send", "py", "1/0", "--wait")
    assert (failed.code, failed.out.splitlines()[-1]) == (0, "ZeroDivisionError: division by zero")


def typed_and_shown(text: str) -> list[tuple[list[str], str]]:
    """The commands of a session, each with what it prints."""
    parts = re.split(r"^\$ synapsectl ", text, flags=re.MULTILINE)[1:]
    return [(shlex.split(part.partition("\n")[0]), part.partition("\n")[2].rstrip()) for part in parts]


@pytest.mark.night
def test_a_full_screen_program_from_its_screen(daemon: Daemon, chatty: dict[str, str]) -> None:
    first, last = (found["text"] for found in CONSOLE.finditer(PAGE) if "chatty" in found["text"])
    path = daemon.home / "config" / "profiles" / "chatty.toml"
    for arguments, shown in typed_and_shown(first):
        if arguments[0] == "screen":
            eventually(lambda: ">" in daemon.ctl("screen", "tui").out, "it has drawn its screen")
        done = daemon.ctl(*arguments, env=chatty)
        assert done.code == 0, (arguments, done)
        if arguments[0] == "screen":
            assert RULES.sub("─", done.out.rstrip()) == RULES.sub("─", shown)
    drafted = path.read_text()
    assert daemon.ctl("profiles", "check", str(path)).code == 0
    assert daemon.ctl("profiles", "new", "chatty", "--from-screen", "nobody").code == 4

    text = next(found["text"] for found in NAMED.finditer(PAGE) if "chatty" in found["file"])
    for line in ('command = "chatty"', "line = '^> ?(?P<text>.*?)$'", "around = '─{8,}[^\\n]*\\n>'"):
        assert line in drafted, "what the page keeps of it is in it"
        assert line in text
    path.write_text(text)
    for arguments, shown in typed_and_shown(last):
        typed = [str(path) if argument.endswith(path.name) else argument for argument in arguments]
        done = daemon.ctl(*typed, env=chatty)
        assert done.code == 0, (typed, done)
        assert shown in done.out
    assert daemon.ctl("send", "chatty", "lines=120", "--wait").out.splitlines()[-1] == "  line 120"
    working = daemon.ctl("send", "chatty", "delay=60").out.strip()
    eventually(lambda: daemon.task(working)["status"] == "working" and daemon.agent("chatty")["activity"] == "busy", "")
    assert daemon.ctl("cancel", working).code == 0
    assert daemon.ctl("send", "chatty", "the next", "--wait").out == "You said: the next\n"

    tricks = {**chatty, "TRICKS": '{"alternate": true, "dialog": "paste"}'}
    assert daemon.ctl("start", "chatty", "--name", "asks", env=tricks).code == 0
    waiting = daemon.ctl("send", "asks", "do it", "--wait")
    assert (waiting.code, "Allow it?" in waiting.err) == (7, True)
    assert daemon.ctl("approve", "asks").code == 0
