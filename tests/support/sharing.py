"""How tests are shared out among several workers: one by one, but those of a file together that share a daemon.

A plugin of pytest, for `pytest -n`. The files with the most tests to keep together come first, then single tests.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

WIDE = ('scope="module"', 'scope="package"', 'scope="session"')
ROOT = Path(__file__).parents[2]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Callable[..., None]) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class ByDaemon(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if _shares(file) else nodeid

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            """Forgets a unit that is done: all that a worker was given are counted again at each test."""
            super().mark_test_complete(node, item_index, duration)
            units = self.assigned_work[node]
            scope = self._split_scope(self.registered_collections[node][item_index])
            if all(units[scope].values()):
                del units[scope]

    return ByDaemon(config, log)


@cache
def _shares(file: str) -> bool:
    """Whether tests of `file` have a fixture in common that is made once."""
    path = ROOT / file
    texts = [one.read_text() for one in (path, path.with_name("conftest.py")) if one.exists()]
    return any(wide in text for text in texts for wide in WIDE)
