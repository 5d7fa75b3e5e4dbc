"""Which agent a process belongs to: by its ancestors, its unit, and the token it was started with."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from synapsed.keeper.processes import start_mark
from synapsed.keepers.process_owner import Root, owner_of
from synapsed.model.records import LaunchRecord

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")

TOKEN = "f" * 64


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits, with a token in its environment."""
    with waiting() as process:
        yield process


@contextmanager
def waiting() -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-S", "-E", "-c", "import sys; print(flush=True); sys.stdin.read()"]
    env = {"SYNAPSE_AGENT_TOKEN": TOKEN}
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def root(agent: str, pid: int, *, start: int | None = None, keeper: int = 2**22 + 1) -> Root:
    started = start_mark(pid) if start is None else start
    keeper_start = start_mark(keeper) or 0
    assert started is not None
    return Root(
        agent,
        LaunchRecord(
            launch_id="l", socket="s", keeper_pid=keeper, keeper_start=keeper_start, pid=pid, pid_start=started,
            spool_start=0, started_at=0,
        ),
    )  # fmt: skip


def test_ancestry_is_believed_with_its_start_time(child: subprocess.Popen[bytes]) -> None:
    assert owner_of(child.pid, [root("a", os.getpid())]) == "a"
    assert owner_of(child.pid, [root("a", os.getpid(), start=1)]) is None
    assert owner_of(os.getpid(), [root("a", child.pid)]) is None


def test_the_nearest_ancestor_counts(child: subprocess.Popen[bytes]) -> None:
    assert owner_of(child.pid, [root("outer", os.getpid()), root("inner", child.pid)]) == "inner"


def test_the_token_a_process_was_started_with(child: subprocess.Popen[bytes]) -> None:
    """Also before its launch is known, and wherever it went."""
    assert owner_of(child.pid, [], {TOKEN: "a"}) == "a"
    assert owner_of(child.pid, [], {"0" * 64: "a"}) is None
    assert owner_of(os.getpid(), [], {TOKEN: "a"}) is None


def test_the_unit_of_a_keeper(tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
    """Of one that lives: pids come again, and other daemons have units too."""
    with waiting() as other:
        _check_units(tmp_path, child, other)


def _check_units(tmp_path: Path, child: subprocess.Popen[bytes], other: subprocess.Popen[bytes]) -> None:
    app = "0::/user.slice/user-1000.slice/user@1000.service/app.slice"
    keeper = root("a", 2**22, start=1, keeper=child.pid)
    others = root("b", 2**22, start=1, keeper=other.pid)
    for pid, group in [
        (child.pid, f"{app}/synapse-agent-a.service\n"),
        (other.pid, f"{app}/session.scope\n"),
        (os.getpid(), f"{app}/synapse-agent-a.service/inner\n"),
    ]:
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cgroup").write_text(group)
    assert owner_of(os.getpid(), [others, keeper], proc=tmp_path) == "a"
    assert owner_of(os.getpid(), [others], proc=tmp_path) is None
    (tmp_path / str(os.getpid()) / "cgroup").write_text(f"{app}/synapse-agent-another.service\n")
    assert owner_of(os.getpid(), [others, keeper], proc=tmp_path) is None
    dead = Root("a", keeper.launch.model_copy(update={"keeper_start": 1}))
    (tmp_path / str(os.getpid()) / "cgroup").write_text(f"{app}/synapse-agent-a.service\n")
    assert owner_of(os.getpid(), [dead], proc=tmp_path) is None
