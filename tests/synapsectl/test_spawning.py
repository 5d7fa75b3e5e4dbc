"""A daemon that a verb starts: what it has of that verb's shell."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.daemon import PATIENCE_S, Daemon

ROOT = Path(__file__).parents[2]

CODE = """
import json, os, sys
from synapsectl.spawn import spawn_detached
os.umask(0o077)
tell = (
    "import json, os; print(json.dumps([os.umask(0), os.getpriority(os.PRIO_PROCESS, 0),"
    " len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else 1]), flush=True)"
)
output = os.open("output", os.O_RDWR | os.O_CREAT, 0o600)
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
alive = spawn_detached([sys.executable, "-c", tell], dict(os.environ), output, umask=0o027)
os.read(alive, 1)  # its end
"""


def test_it_has_the_umask_and_neither_priority_nor_cpus(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(["nice", "-n", "5", sys.executable, "-c", CODE], cwd=tmp_path, env=environ, check=True, timeout=60)
    umask, nice, cpus = json.loads((tmp_path / "output").read_text())
    assert umask == 0o027
    assert nice == (0 if os.geteuid() == 0 else 5)
    assert cpus == (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)


def test_a_shell_that_ignores_its_children_has_a_daemon_that_hears_of_its_own(tmp_path: Path) -> None:
    home = Daemon(tmp_path / "home")
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    up = [sys.executable, "-c", ignoring, sys.executable, "-m", "synapsectl", "up"]
    done = subprocess.run(up, env=home.env, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False)
    try:
        assert done.returncode == 0, done
        started = home.ctl("start", "dummy", "--cwd", "/")
        assert started.code == 0, started
    finally:
        home.ctl("shutdown")


CHILDREN = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
from synapsed.own_python import hear_of_children
hear_of_children()
child = os.fork()
if not child:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
"""


def test_a_process_hears_of_its_children_whatever_its_parent_ignores() -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", CHILDREN], env=environ, check=True, timeout=60)
