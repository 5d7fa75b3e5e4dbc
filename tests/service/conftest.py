"""One user manager for the module, a fresh home of synapsed for each test."""

from collections.abc import Iterator

import pytest

from tests.service.house import House
from tests.support import systemd
from tests.support.systemd import UserManager


@pytest.fixture(scope="module")
def user_manager() -> Iterator[UserManager]:
    if reason := systemd.obstacle():
        pytest.skip(f"THE SERVICE WAS NOT TESTED ON A REAL systemd --user: {reason}")
    with systemd.user_manager() as manager:
        yield manager


@pytest.fixture
def house(user_manager: UserManager) -> Iterator[House]:
    house = House(user_manager)
    yield house
    house.clear()
