"""What a test has started ends when the test runs out of time: daemons, keepers, programs, and what these started.

Each process inherits OWNER from the test that is running when it is started, or from the fixture that is being made,
where that one is for more than one test. So a process is found also when its parent has ended. A plugin of pytest.
"""

import contextlib
import os
import uuid
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

OWNER = "TEST_OWNER"
"""The variable: the run, and in it the test or the fixture."""

_RUN = uuid.uuid4().hex
_TIMED_OUT = pytest.StashKey[bool]()


@contextlib.contextmanager
def _owned_by(name: str) -> Iterator[None]:
    before = os.environ.get(OWNER)
    os.environ[OWNER] = f"{_RUN} {name}"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(OWNER, None)
        else:
            os.environ[OWNER] = before


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    with _owned_by(item.nodeid):
        result = yield
    if item.stash.get(_TIMED_OUT, False):
        item.config.stash[_TIMED_OUT] = True
        _kill(item.nodeid)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Any:
    with contextlib.nullcontext() if fixturedef.scope == "function" else _owned_by(f"fixture {fixturedef.argname}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    if call.excinfo is not None and "from pytest-timeout" in str(call.excinfo.value):
        item.stash[_TIMED_OUT] = True
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.stash.get(_TIMED_OUT, False):
        _kill("")


def _kill(owner: str) -> None:
    """End the processes of `owner`, of everybody in this run if it is empty."""
    from tests.support import warm

    warm.kill(f"{_RUN} {owner}")
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            own = process.pid == os.getpid()
            if not own and process.environ().get(OWNER, "").startswith(f"{_RUN} {owner}"):
                process.kill()
