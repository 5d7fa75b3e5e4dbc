"""The TypeScript types of the events: a client that is written by them compiles, and reads what is sent."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.events import TYPES
from synapsed.model.events import AgentTransition, EmotionUpdate, Event, EventData, ToolExecution
from synapsed.model.events.wire import batch, encoded, gap
from tests.clients.programs import CACHE

CLIENT = Path(__file__).with_name("ts") / "client.ts"
STRICT = ["--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--noImplicitReturns"]
PATIENCE_S = 90.0

NODE = shutil.which("node")
MISSING = CACHE.missing() if NODE else "node is not on PATH"

pytestmark = pytest.mark.skipif(MISSING is not None, reason=f"*** TYPESCRIPT NOT TRIED: {MISSING} ***")


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    assert NODE is not None
    return subprocess.run(
        [NODE, *arguments],
        check=False,
        cwd=cwd,
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def compiled(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    shutil.copyfile(TYPES, folder / "events.d.ts")
    (folder / "client.ts").write_text(source)
    tsc = CACHE.folder / "node_modules" / "typescript" / "bin" / "tsc"
    return run(str(tsc), *STRICT, "--target", "es2022", "--module", "commonjs", "client.ts", cwd=folder)


def sent(number: int, data: EventData) -> bytes:
    return encoded(Event(id=number, at=1.0, agent_id="synapse-claude-8100", task_id=None, data=data))


def test_a_client_compiles_and_reads_events(tmp_path: Path):
    done = compiled(tmp_path, CLIENT.read_text())
    assert (done.returncode, done.stdout) == (0, "")
    large = ToolExecution(tool_name="Bash", status="completed", output={"text": "x" * 20_000}, duration_ms=12)
    transition = AgentTransition(to_agent="synapse-codex-8120")
    mood = EmotionUpdate(emotion_type="joy", level=4, detected_from="text_analysis")
    messages = [gap(1, 2, at=1.0), batch([sent(3, large), sent(4, transition)], last=4, at=1.0), sent(5, mood)]
    told = run("client.js", *(message.decode() for message in messages), cwd=tmp_path)
    lines = ["null 1-2", "Bash completed 20014 12", "a person -> synapse-codex-8120", "joy 4 text_analysis", "5"]
    assert (told.stdout.splitlines(), told.stderr) == (lines, "")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("event.data.emotion_type", "event.data.emotion"),
        pytest.param('case "gap":', 'case "gaps":', marks=pytest.mark.night),
        pytest.param("output.size", "output.text", marks=pytest.mark.night),
    ],
)
def test_what_is_not_sent_does_not_compile(tmp_path: Path, right: str, wrong: str):
    source = CLIENT.read_text()
    assert right in source
    assert compiled(tmp_path, source.replace(right, wrong)).returncode != 0
