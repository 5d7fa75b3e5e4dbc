"""The listener with TLS comes up later if its first look at the machine fails."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.parts.web import tls
from synapsed.parts.web.service import Web
from tests.support.patience import PATIENCE_S


async def test_a_first_look_that_fails_by_an_error_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = asyncio.Event()

    class Service:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        async def look(self) -> None:
            raise OSError("too many open files")

        async def run(self) -> None:
            goes_on.set()

    monkeypatch.setattr(tls, "TlsService", Service)
    monkeypatch.setattr(tls, "settings_of", lambda _: None)
    kernel: Any = SimpleNamespace(config=SimpleNamespace(api=SimpleNamespace(tls_listen="box:443")), clock=None)
    book: Any = SimpleNamespace()
    web = Web(kernel, book)
    with pytest.raises(OSError, match="too many"):
        await web.listening(None)  # type: ignore[arg-type]  # it is only passed on
    await asyncio.wait_for(goes_on.wait(), PATIENCE_S)
    await web.stopping()
