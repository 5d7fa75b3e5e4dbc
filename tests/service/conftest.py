"""One user manager for the module, a fresh home of synapsed for each test."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.house import House
from tests.support.systemd import UserManager, obstacle


@pytest.fixture(scope="module")
def user_manager() -> Iterator[UserManager]:
    if reason := obstacle():
        pytest.skip(f"THE SERVICE WAS NOT TESTED ON A REAL systemd --user: {reason}")
    root = Path(tempfile.mkdtemp(prefix="sd-", dir="/tmp"))
    for name in ("run", "home"):
        (root / name).mkdir(mode=0o700)
    manager = UserManager(root / "run", root / "home")
    try:
        yield manager.start()
    finally:
        manager.end()
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def house(user_manager: UserManager) -> Iterator[House]:
    house = House(user_manager)
    yield house
    house.clear()
