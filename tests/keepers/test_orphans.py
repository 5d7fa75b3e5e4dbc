"""Who reaps orphans: the first process, or the daemon below one that does not (in a PID namespace of their own)."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.support.daemon import PATIENCE_S

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0 or shutil.which("unshare") is None, reason="makes namespaces"
)

FIRST = """
import os, signal, sys
if sys.argv[1] == "init":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if (child := os.fork()) == 0:
    exec(sys.argv[2])
    sys.stdout.flush()
    os._exit(0)
try:
    os.waitpid(child, 0)
except ChildProcessError:
    pass
"""
"""The first process: waits for its one child, and is an `init`, which leaves no zombie, or none."""

USED = """
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
from synapsed.orphans import Strays, _orphan, take_orphans
print(take_orphans())
"""

REAPED = f"""{USED}
import subprocess, threading, time
orphans = [_orphan() for _ in range(3)]
waited = subprocess.Popen(["/bin/sh", "-c", "exit 7"])
in_a_thread = []
thread = threading.Thread(target=lambda: (in_a_thread.append(subprocess.Popen(["/bin/sh", "-c", "exit 8"])), go.wait()))
go = threading.Event()
thread.start()
for pid in (*orphans, waited.pid):
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
strays = Strays()
strays.look()
print(sorted(os.path.exists(f"/proc/{{pid}}") for pid in orphans), waited.wait())
strays.look()
strays.look()
print([os.path.exists(f"/proc/{{pid}}") for pid in orphans])
print(in_a_thread[0].wait())
go.set()
"""


def under(first: str, script: str) -> list[str]:
    """The lines that `script` prints, run by a child of a first process that is an `init`, or none."""
    command = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", FIRST, first, script)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout.splitlines()


def test_nothing_is_done_where_the_first_process_reaps() -> None:
    assert under("init", USED) == ["False"]


def test_orphans_are_reaped_where_the_first_process_does_not() -> None:
    """Those that nobody waits for, at the second look; never what has been started here."""
    assert under("sleep", REAPED) == ["True", "[True, True, True] 7", "[False, False, False]", "8"]
