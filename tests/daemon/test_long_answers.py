"""Answers of tens of thousands of lines from a shell: what is missing of one is said and counted, and nothing else."""

import shutil
from collections.abc import Iterator

import pytest

from synapsed.terminal.answer import SCROLLBACK_LINES
from tests.support.daemon import NO_PORTS, Daemon

pytestmark = [
    pytest.mark.night,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash"),
]

WIDE = "line {} of many that are longer than a number alone, as those of a log are"
END_S = 300
"""Seconds that a starved machine may take to draw them all."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("long"), config=NO_PORTS).start()
    daemon.start_agent(profile="generic", name="bash", args=["bash", "--norc"])
    yield daemon
    daemon.end()


@pytest.mark.parametrize(
    ("count", "line"),
    [(45_000, WIDE), (60_000, "{}"), (SCROLLBACK_LINES, "{}"), (SCROLLBACK_LINES + 1, "{}")],
    ids=["45,000", "60,000 short ones", "as many as are read", "one more"],
)
def test_what_is_missing_of_a_long_answer_is_counted(daemon: Daemon, count: int, line: str) -> None:
    task_id = daemon.send(f"seq -f '{line.format('%.0f')}' {count}", "bash")
    task = daemon.task_in(task_id, "completed", "failed", "canceled", patience=END_S)
    assert task["status"] == "completed", task["error"]
    (answer,) = [each for each in task["artifacts"] if each["artifact_id"] == "answer"]
    lines = answer["parts"][0]["text"].removesuffix("\n").split("\n")
    missing = max(0, count - SCROLLBACK_LINES)
    assert (len(lines), lines[0]) == (count - missing, line.format(missing + 1))
    assert lines == [line.format(number) for number in range(missing + 1, count + 1)]
    assert (task["truncated"], task["missing_lines"]) == (missing > 0, missing or None)
