"""The installed wheel, once for a run and all its workers."""

import os

import pytest

from tests.ground.installed import Installed, install_once


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    own = tmp_path_factory.getbasetemp()
    run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    return install_once(run / "wheel")
