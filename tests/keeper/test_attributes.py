"""Umask, priority, CPUs and limits reach the program, and nobody else."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from synapsed.keeper.spawn import give
from synapsed.keeper.spec import LaunchRefused, Spec
from tests.keeper.conftest import Lab

ROOT = Path(__file__).parents[2]

TELL = (
    "import json,os,resource\n"
    "n=os.umask(0),os.getpriority(os.PRIO_PROCESS,0)\n"
    "cpus=sorted(os.sched_getaffinity(0)) if hasattr(os,'sched_getaffinity') else None\n"
    "limits={name:resource.getrlimit(getattr(resource,'RLIMIT_'+name)) for name in ('NOFILE','FSIZE','CORE')}\n"
    "print('told',json.dumps([*n,cpus,limits]),flush=True)\n"
)
MUCH = "import sys\nfor n in range(2000): print('line', n)\nprint('done',flush=True)\n"


def told(output: bytes) -> list[object]:
    line = next(line for line in output.decode().splitlines() if line.startswith("told "))
    found: list[object] = json.loads(line.removeprefix("told "))
    return found


def a_spec(**fields: object) -> Spec:
    base = {"format": 1, "launch_id": "l", "argv": ["x"], "env": {}, "cwd": "/", "state_dir": "/s", "socket": "/k"}
    return Spec(json.dumps(base | fields).encode())


@pytest.mark.parametrize("transport", ["pty", "pipes"])
async def test_they_reach_the_program_alone(lab: Lab, transport: str) -> None:
    own = resource.getrlimit(resource.RLIMIT_FSIZE), resource.getrlimit(resource.RLIMIT_NOFILE)
    cpu = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    keeper = await lab.python(
        TELL + MUCH,
        transport=transport,
        umask=0,
        nice=5,
        cpus=[cpu],
        rlimits={"NOFILE": (16, 20), "FSIZE": (2048, 4096), "CORE": (0, 0), "NOSUCH": (1, 1)},
    )
    assert keeper.withheld == ()
    watcher = await lab.watch(keeper)
    umask, nice, cpus, limits = told(await watcher.until_output(b"done"))
    assert (umask, nice) == (0, 5)
    assert cpus in ([cpu], None)
    assert limits == {"NOFILE": [16, 20], "FSIZE": [2048, 4096], "CORE": [0, 0]}
    await watcher.until_exit()  # the record of the exit is a file under another name before it is whole
    state = lab.root / "state"
    assert sum(file.stat().st_size for file in (state / "spool").iterdir()) > 4096, "the keeper writes on"
    assert all(not file.stat().st_mode & 0o077 for file in [state, *state.rglob("*")]), "with its own umask"
    process = psutil.Process(keeper.keeper_pid)
    assert process.nice() == psutil.Process().nice()
    if sys.platform == "linux":
        assert set(process.cpu_affinity()) == os.sched_getaffinity(0)
        assert (process.rlimit(psutil.RLIMIT_FSIZE), process.rlimit(psutil.RLIMIT_NOFILE)) == own


def test_a_daemon_started_under_a_small_limit_leaves_its_keepers_room() -> None:
    """`open_files` is what the daemon was started with; its programs get that where nothing else is known."""
    code = f"""
import resource, sys
sys.path.insert(0, {str(ROOT)!r})
from synapsed.keeper import launch
from tests.keeper.test_attributes import a_spec, give
launch._limit_files(16)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], give(a_spec(open_files=16)))
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["256 []", "16"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process has CPUs of its own")
@pytest.mark.parametrize("transport", ["pty", "pipes"])
async def test_what_the_program_cannot_have_is_told(lab: Lab, transport: str) -> None:
    here = min(os.sched_getaffinity(0))
    keeper = await lab.python(TELL, transport=transport, cpus=[here, 60_000])
    assert keeper.withheld == (f"CPUs 60000 (it has {here})",)
    watcher = await lab.watch(keeper)
    await watcher.until_exit()
    assert told(bytes(watcher.output))[2] == [here]
    assert (await lab.connect(keeper)).hello.launch_id == keeper.launch_id


@pytest.mark.parametrize("transport", ["pty", "pipes"])
async def test_under_a_limit_that_leaves_no_room_the_program_fails_and_the_keeper_lives(
    lab: Lab, transport: str
) -> None:
    keeper = await lab.launch("/bin/true", transport=transport, rlimits={"AS": (4096, 4096)})
    record = await (await lab.watch(keeper)).until_exit()
    if sys.platform == "linux":
        assert record.exit_code != 0
    assert psutil.pid_exists(keeper.keeper_pid)


def test_an_ordinary_user_gets_as_much_as_is_allowed() -> None:
    code = f"""
import json, os, resource, sys
sys.path.insert(0, {str(ROOT)!r})
from synapsed.keeper.spawn import give
from synapsed.keeper.spec import Spec
from tests.keeper.test_attributes import a_spec
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 64))
os.setpriority(os.PRIO_PROCESS, 0, 7)
if os.geteuid() == 0:
    os.setuid(65534)
told = give(a_spec(nice=-5, umask=0o077, rlimits={{"NOFILE": [128, 256], "CORE": [0, 0]}}))
print(json.dumps([told, os.umask(0), resource.getrlimit(resource.RLIMIT_NOFILE)]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    withheld, umask, files = json.loads(done.stdout)
    assert withheld == ["nice -5 (it has 7)", "limit NOFILE 128 of 256 (it has 64)"]
    assert (umask, files) == (0o077, [64, 64])


def test_a_specification_without_them_changes_the_umask_alone() -> None:
    before = os.umask(0o077)
    try:
        assert give(a_spec()) == []
        assert os.umask(0) == 0o022
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    "wrong",
    [
        {"nice": 21},
        {"nice": "x"},
        {"cpus": []},
        {"cpus": [-1]},
        {"cpus": "some"},
        {"oom_score_adj": 2000},
        {"rlimits": []},
        {"rlimits": {"NOFILE": 5}},
        {"rlimits": {"NOFILE": [5]}},
        {"rlimits": {"NOFILE": [5, -1]}},
    ],
)
def test_a_specification_that_is_wrong(wrong: dict[str, object]) -> None:
    with pytest.raises(LaunchRefused):
        a_spec(**wrong)


def test_null_is_unlimited_and_all_are_all() -> None:
    spec = a_spec(cpus="all", rlimits={"CORE": [None, None]})
    assert (spec.cpus, spec.rlimits) == ([], {"CORE": (resource.RLIM_INFINITY, resource.RLIM_INFINITY)})
