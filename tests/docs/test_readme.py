"""What the README says to type, typed: with the scripted agent in place of a real one, and ports of the test's own."""

import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import ANY_PORTS, PATIENCE_S, Daemon
from tests.support.threaded import KINDS
from tests.synapsectl.pty_tool import PtyTool

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


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


def blocks(language: str) -> list[str]:
    """The README's blocks of a language, with the scripted agent as `claude`."""
    return [
        match["text"] for match in BLOCK.finditer((ROOT / "README.md").read_text()) if match["language"] == language
    ]


def commands(block: str) -> list[str]:
    joined = block.replace("\\\n", " ")
    return [line[2:].partition("  #")[0].strip() for line in joined.splitlines() if line.startswith("$ ")]


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
    (block,) = [block for block in blocks("console") if "synapsectl start" in block]
    typed = [command for command in commands(block) if command.startswith("synapsectl")]
    typed.remove("synapsectl install --start")  # tests/service types that one, into a user manager of its own
    verbs = [command.split()[1] for command in typed]
    assert verbs == ["start", "send", "list", "attach", "send", "stop", "restart", "shutdown"]
    for command in typed:
        if command.startswith("synapsectl attach"):
            tool = PtyTool("attach", "claude", env=daemon.env)
            tool.until(b"You said: What is in this folder?")
            tool.type(b"\x1d")
            assert tool.end() == 0
            tool.close()
            continue
        said = shell(daemon, command.replace("synapsectl start claude", "synapsectl start dummy --name claude"))
        if "--wait" in command:
            assert said == "You said: What is in this folder?\n"
        if command == "synapsectl list":
            assert said.startswith("claude\tready\t")


def test_the_table_of_agents_has_the_columns_shown() -> None:
    from synapsectl.commands.list_ import HEADINGS

    (block,) = [block for block in blocks("console") if "synapsectl list" in block]
    assert tuple(next(line for line in block.splitlines() if line.startswith("NAME")).split()) == HEADINGS


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl(served: Daemon) -> None:
    endpoint = started(served)["endpoint"]
    (command,) = [command for block in blocks("console") for command in commands(block) if command.startswith("curl")]
    assert "http://localhost:8100/" in command
    said = shell(served, command.replace("http://localhost:8100", endpoint))
    assert '"status":"' in said.replace(" ", "")
    assert '"agent_id":"synapse-dummy-' in said.replace(" ", "")


def test_the_official_client(served: Daemon) -> None:
    started(served)
    port = served.port
    (program,) = blocks("python")
    program = textwrap.dedent(program).replace("127.0.0.1:8090", f"127.0.0.1:{port}")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "You said: Hello" in done.stdout


def started(daemon: Daemon) -> dict[str, str]:
    assert daemon.ctl("start", "dummy", "--name", "claude").code == 0
    agent: dict[str, str] = daemon.ready("claude")
    return agent
