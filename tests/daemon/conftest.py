import pytest

from tests.support.daemon import Daemon
from tests.support.threaded import ThreadedDaemon


@pytest.fixture
def kind() -> type[Daemon]:
    """What a daemon of this test is: one in a thread, unless the test is marked `real_one`."""
    return ThreadedDaemon
