"""What the README and the first hour say to type, typed: with the scripted agent in place of a real one, and ports of
the test's own. And the README's length."""

import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.reading import DOCS, README, blocks, commands
from tests.support.daemon import ANY_PORTS, PATIENCE_S, Daemon
from tests.support.threaded import KINDS
from tests.synapsectl.pty_tool import PtyTool

FIRST_HOUR = DOCS / "first-hour.md"
SCREEN_ROWS = 40
WORDS_MAX = 700
ROW_WORDS_MAX = 16
ON_A_TERMINAL = {
    "synapsectl attach claude": (b"You said: What is in this folder?", b"\x1d"),
    "synapsectl inbox": (b"q leave", b"q"),
}
"""What is typed into a terminal: what it shows, and the key that leaves it."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, config=ANY_PORTS)
    yield daemon
    assert daemon.end() == 0


@pytest.fixture(params=KINDS)
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Daemon]:
    daemon: Daemon = request.param(tmp_path, config=ANY_PORTS)
    yield daemon.start()
    assert daemon.end() == 0


def shell(daemon: Daemon, command: str) -> str:
    """What a command line prints, in a shell that has synapsectl."""
    path = f"{Path(sys.executable).parent}:{daemon.env['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        env={**daemon.env, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, (command, done)
    return done.stdout


def test_five_minutes(daemon: Daemon) -> None:
    (block,) = [block for block in blocks(README, "console") if "synapsectl start" in block]
    typed = [command for command in commands(block) if command.startswith("synapsectl")]
    assert [command.split()[1] for command in typed] == ["start", "send", "attach", "inbox", "stop"]
    for command in typed:
        if command in ON_A_TERMINAL:
            shows, leave = ON_A_TERMINAL[command]
            tool = PtyTool(*command.split()[1:], env=daemon.env)
            tool.until(shows)
            tool.type(leave)
            assert tool.end() == 0
            tool.close()
            continue
        said = shell(daemon, command.replace("synapsectl start claude", "synapsectl start dummy --name claude"))
        if "--wait" in command:
            assert said == "You said: What is in this folder?\n"


def test_the_readme_is_two_screens() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= 2 * SCREEN_ROWS
    assert len(text.split()) <= WORDS_MAX
    rows = re.findall(r"^\| (.*) \| (.*) \|$", text, re.MULTILINE)
    assert all(len(row[1].split()) <= ROW_WORDS_MAX and "](" in row[1] for row in rows), "one line, and a link to more"


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl(served: Daemon) -> None:
    endpoint = started(served)["endpoint"]
    typed = [command for block in blocks(FIRST_HOUR, "console") for command in commands(block)]
    (command,) = [command for command in typed if command.startswith("curl")]
    assert "http://localhost:8100/" in command
    said = shell(served, command.replace("http://localhost:8100", endpoint))
    assert '"status":"' in said.replace(" ", "")
    assert '"agent_id":"synapse-dummy-' in said.replace(" ", "")


def test_the_official_client(served: Daemon) -> None:
    started(served)
    port = served.port
    (program,) = blocks(FIRST_HOUR, "python")
    program = textwrap.dedent(program).replace("127.0.0.1:8090", f"127.0.0.1:{port}")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "You said: Hello" in done.stdout


def test_the_ten_lines_of_python(served: Daemon) -> None:
    started(served)
    (program,) = [block for block in blocks(DOCS / "http-api.md", "python") if "urllib" in block]
    program = textwrap.dedent(program).replace("127.0.0.1:8090", f"127.0.0.1:{served.port}")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "completed You said: Hello\n"


def started(daemon: Daemon) -> dict[str, str]:
    assert daemon.ctl("start", "dummy", "--name", "claude").code == 0
    agent: dict[str, str] = daemon.ready("claude")
    return agent
