import pytest

from tests.support.daemon import Daemon
from tests.support.threaded import KINDS


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> type[Daemon]:
    """What a daemon of this test is: one in a thread, and at night a process."""
    found: type[Daemon] = request.param
    return found
