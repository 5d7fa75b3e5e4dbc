"""What the admin is answered by brokers that have no leader."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.errors import RemoteRefused, Unreachable
from synapsed_fleet.admin import Admin


@pytest.mark.parametrize(("code", "said"), [(503, Unreachable), (504, Unreachable), (400, RemoteRefused)])
async def test_what_may_be_better_soon_is_no_refusal(code: int, said: type[Exception]) -> None:
    class Client:
        async def request(self, subject: str, payload: bytes, timeout: float) -> Any:
            error = {"code": code, "err_code": 10008, "description": "JetStream system temporarily unavailable"}
            return SimpleNamespace(data=json.dumps({"error": error}).encode())

    with pytest.raises(said, match="temporarily unavailable"):
        await Admin(Client()).state()  # type: ignore[arg-type]
