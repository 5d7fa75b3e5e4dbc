"""The daemon of the version before can still work on a database of this one: else an upgrade cannot be taken back, and
the archive has to be made again (`python -m tests.faults.before`) of a version that can."""

import subprocess
import sys
from pathlib import Path

from synapsed.store.schema import OLDEST
from tests.faults import before


def test_the_version_before_knows_what_this_one_asks_for(tmp_path: Path) -> None:
    asked = "from synapsed.store.schema import MIGRATIONS; print(len(MIGRATIONS))"
    older = before.unpack(tmp_path)
    done = subprocess.run([sys.executable, "-c", asked], cwd=older, capture_output=True, text=True, check=True)
    assert int(done.stdout) >= OLDEST
