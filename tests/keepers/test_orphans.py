"""The daemon reaps what has lost its parent below it, and never what somebody waits for."""

import subprocess
import sys

import pytest

from tests.support.daemon import PATIENCE_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process becomes another's parent")

SCRIPT = """
import os, subprocess, threading
from synapsed.keeper.processes import become_subreaper
from synapsed.process.orphans import Strays

become_subreaper()


def orphan():
    hear, tell = os.pipe()
    if (parent := os.fork()) == 0:
        if pid := os.fork():
            os.write(tell, str(pid).encode())
        os._exit(0)
    os.waitpid(parent, 0)
    return int(os.read(hear, 20))


orphans = [orphan() for _ in range(3)]
waited = subprocess.Popen(["/bin/sh", "-c", "exit 7"])
in_a_thread = []
begun, go = threading.Event(), threading.Event()


def start():
    in_a_thread.append(subprocess.Popen(["/bin/sh", "-c", "exit 8"]))
    begun.set()
    go.wait(60)


threading.Thread(target=start).start()
begun.wait(60)
for pid in (*orphans, waited.pid):
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
strays = Strays()
strays.reap_ended()
print([os.path.exists(f"/proc/{pid}") for pid in orphans], waited.wait())
strays.reap_ended()
strays.reap_ended()
print([os.path.exists(f"/proc/{pid}") for pid in orphans], in_a_thread[0].wait())
go.set()
"""


def test_orphans_are_reaped_at_the_second_look() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True
    )
    assert done.stdout.splitlines() == ["[True, True, True] 7", "[False, False, False] 8"]
