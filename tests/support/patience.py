"""The time that a test gives anything to happen: one measure, so that a slower machine is told of it in one place."""

import os

__all__ = ["PATIENCE_S"]

PATIENCE_S = float(os.environ.get("SYNAPSED_TEST_PATIENCE_S", "60"))
"""For anything to happen: far more than it ever takes, on a machine that is busy with something else."""
