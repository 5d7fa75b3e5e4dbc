"""The profile that docs/profiles.md teaches, taught, and the commands of that page typed."""

import re
import shlex
import shutil
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


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS)
    daemon.start()
    yield daemon
    assert daemon.end() == 0


def test_a_prompt_that_is_not_found_is_shown(daemon: Daemon) -> None:
    path = daemon.home / "config" / "profiles" / "py.toml"
    path.parent.mkdir()
    path.write_text("command = 'python3'\n[composer]\nat_cursor = true\nline = '^py> (?P<text>.*)$'\n")
    assert daemon.ctl("reload").code == 0
    assert daemon.ctl("start", "py").code == 0
    eventually(lambda: "not at the cursor: '>>>'" in daemon.ctl("status", "py", "--explain").out, "the prompt is shown")


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs sqlite3")
def test_the_smallest_profile(daemon: Daemon) -> None:
    (profile,) = NAMED.finditer(PAGE)
    path = daemon.home / "config" / profile["file"]
    path.parent.mkdir(parents=True)
    path.write_text(profile["text"])
    (session,) = CONSOLE.finditer(PAGE)
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


def test_a_usual_prompt_needs_none(daemon: Daemon) -> None:
    (command,) = re.findall(r"`synapsectl (start generic [^`]*)`", PAGE)
    assert daemon.ctl(*shlex.split(command)).code == 0
    assert daemon.ctl("send", "py", "6*7", "--wait").out == "42\n"
    failed = daemon.ctl("send", "py", "1/0", "--wait")
    assert (failed.code, failed.out.splitlines()[-1]) == (0, "ZeroDivisionError: division by zero")
