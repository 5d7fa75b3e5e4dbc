"""The routes of parts: their modules are loaded beside the event loop."""

import threading
from importlib import import_module

import pytest

from synapsed.api import part_routes
from tests.api.serving import Api


async def test_a_module_is_loaded_in_a_thread(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[threading.Thread] = []

    def load(name: str) -> object:
        loaded.append(threading.current_thread())
        return import_module(name)

    monkeypatch.setattr(part_routes, "import_module", load)
    for _ in range(2):
        async with api.http.get("/web/me") as answer:
            assert answer.status == 401
    assert len(loaded) == 1, "once"
    assert loaded[0] is not threading.current_thread()
