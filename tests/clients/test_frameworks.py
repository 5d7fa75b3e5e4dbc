"""Agent frameworks as clients of a real daemon: each one's text is the answer, once, and its question gets its answer.

`make test-clients` installs and runs them; they are too many, and too large, for the gate.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.programs import FRAMEWORKS, JS_FRAMEWORKS
from tests.support.daemon import ANY_PORTS, Daemon

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(400)]

PATIENCE_S = 300
SCRIPTS = Path(__file__).parent / "frameworks"
SEND = "echo It is said."
STREAM = "lines 30\nsleep 1\nlines 3\nsleep 1\necho That is all."
ASK = "ask y/n"
ANSWER = "y"
NODE = shutil.which("node")
PYTHON = sorted(FRAMEWORKS.keys() - {"sdk03", "synapse-a2a"})


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("frameworks"), config=ANY_PORTS).start()
    try:
        yield daemon
    finally:
        daemon.end()


def run(home: Path, command: list[str], **env: str) -> dict[str, Any]:
    """What the client says that it has read, in the last line of JSON that it wrote."""
    done = subprocess.run(
        command,
        env={
            "PATH": os.defpath,
            "HOME": str(home),
            "CREWAI_DISABLE_TELEMETRY": "true",
            "OTEL_SDK_DISABLED": "true",
            "LITELLM_LOCAL_MODEL_COST_MAP": "true",
            **env,
        },
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    told: dict[str, Any] = json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])
    return told


def judge(daemon: Daemon, agent: str, told: dict[str, Any]) -> None:
    """Against the daemon's own answers, as a framework may put words of its own around a message."""
    tasks = daemon.get(f"/control/tasks?agent={agent}").json
    answers = [task["artifacts"][0]["parts"][0]["text"] for task in sorted(tasks, key=lambda one: one["created_at"])]
    assert [task["status"] for task in tasks] == ["completed"] * len(answers)
    assert told.get("sent", answers[0]) == answers[0]
    if told.get("spaced"):  # it puts a blank between the pieces
        assert told["streamed"].split() == answers[1].split()
    else:
        assert told["streamed"] == answers[1]
    if "answered" in told:
        assert "Proceed? (y/n)" in told["asked"]
        assert told["answered"] == answers[2]
        assert answers[2].endswith("Answered: y")
    assert len(answers) == (3 if "answered" in told else 2)


@pytest.mark.parametrize("name", PYTHON)
def test_a_framework_reads_the_answer_once(daemon: Daemon, tmp_path: Path, name: str) -> None:
    cache = FRAMEWORKS[name]
    if (missing := cache.missing()) is not None:
        pytest.skip(f"*** {name} NOT TRIED: {missing} ***")
    endpoint = str(daemon.start_agent(name=name)["endpoint"])
    told = run(
        tmp_path, [cache.program("python"), "-I", str(SCRIPTS / f"{name}.py"), endpoint, SEND, STREAM, ASK, ANSWER]
    )
    judge(daemon, name, told)


def test_the_provider_of_the_ai_sdk_reads_the_answer_once(daemon: Daemon, tmp_path: Path) -> None:
    missing = JS_FRAMEWORKS.missing() if NODE else "node is not on PATH"
    if missing is not None:
        pytest.skip(f"*** a2a-ai-provider NOT TRIED: {missing} ***")
    assert NODE is not None
    endpoint = str(daemon.start_agent(name="provider")["endpoint"])
    script = str(SCRIPTS / "a2a-ai-provider.mjs")
    modules = str(JS_FRAMEWORKS.folder / "node_modules")
    told = run(tmp_path, [NODE, script, endpoint, SEND, STREAM], NODE_MODULES=modules)
    judge(daemon, "provider", told)
