"""What holds for all tests."""

import asyncio.constants
import gc
import os
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

pytest_plugins = [
    "tests.runs.costs",
    "tests.support.leftovers",
    "tests.support.recorded_time",
    "tests.support.sharing",
    "tests.support.warm",
    "tests.support.worlds",
]

# A machine that is busy is slow, which says nothing about an example.
_SUITE = settings(settings.get_profile("default"), deadline=None, suppress_health_check=[HealthCheck.too_slow])

# The same examples each time, for everybody: chance has no part in whether it passes.
settings.register_profile("suite", _SUITE, derandomize=True, database=None, print_blob=True)

# The gate draws the first of them; all are for the night (docs/development.md).
settings.register_profile("gate", _SUITE, derandomize=True, database=None, print_blob=True, max_examples=25)

# A quick look in between (`make test-fast`): the first of the same examples.
settings.register_profile("fast", _SUITE, derandomize=True, database=None, print_blob=True, max_examples=20)

# The longer suite (`make fuzz`) goes on looking, and keeps what it finds: it is tried first the next time.
settings.register_profile(
    "fuzz",
    _SUITE,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(Path(__file__).parents[1] / ".hypothesis" / "examples"),
    print_blob=True,
)
settings.load_profile("fuzz" if os.environ.get("SYNAPSED_FUZZ") else "suite")

# A Unix socket's path has some hundred bytes, and a machine's own folder for temporary files may take most of them.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/tmp")

# asyncio's debug mode notes where each callback came from: one frame says it, and ten cost as much as the test itself.
asyncio.constants.DEBUG_STACK_DEPTH = 1

# In the background of a script SIGINT begins ignored, also for every program of a test that is to be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def refuse_shared_names(items: Iterable[pytest.Item]) -> None:
    """Raises UsageError for a name that several tests have: pytest-xdist would run one of them alone."""
    names = Counter(item.nodeid for item in items)
    if several := [name for name, count in names.items() if count > 1]:
        raise pytest.UsageError(f"several tests have one name: {', '.join(several)}")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collects without searches for garbage: nearly all that collecting makes stays (a seventh of its time)."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there now stays to the end: each search for garbage would go through all of it, a tenth of the time."""
    refuse_shared_names(session.items)
    gc.collect()
    gc.freeze()
