"""A daemon that a verb starts: what it has of that verb's shell."""

import json
import os
import subprocess
import sys
from pathlib import Path

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
