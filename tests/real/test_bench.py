"""What measures the real programs still measures, in a size that shows only that."""

import os
import subprocess
import sys

import pytest

from bench.figures import SMOKE

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


@pytest.mark.parametrize("suite", ["ways", "wake"])
def test_it_measures(suite: str, isolated: None) -> None:
    argv = [sys.executable, "-m", f"bench.{suite}", "codex"]
    env = {**os.environ, SMOKE: "1"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("ok", "MISS"))]
    assert len(lines) == {"ways": 2, "wake": 1}[suite], done.stdout
