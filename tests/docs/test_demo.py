"""`make demo` as on a machine without any agent program."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.daemon import PATIENCE_S

ROOT = Path(__file__).parents[2]


def test_the_demo(tmp_path: Path) -> None:
    environ = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "COLUMNS": "120",
    }
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"],
        env=environ,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done
    assert "You said: Say in one sentence what you can do.\n" in done.stdout
    assert "synapsectl attach" in done.stdout
    assert "the daemon is down" in done.stdout
    assert not list(tmp_path.glob("synapsed-demo-*")), "nothing stays"
