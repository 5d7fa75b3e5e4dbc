"""The part that cannot be opened, since its file is not as it should be: nobody is let in by it, and the rest works."""

from pathlib import Path

import pytest

from tests.api.serving import TOKEN, Api, serving
from tests.fakes.control import FakeControl


@pytest.fixture
async def without(control: FakeControl, tmp_path: Path):
    book = tmp_path / "state" / "access.json"
    book.parent.mkdir(parents=True)
    book.write_text("no JSON")
    book.chmod(0o600)
    async with serving(control, tmp_path) as api:
        yield api


@pytest.mark.parametrize("path", ["/", "/web/me", "/web/authority.crt"])
async def test_its_requests_say_why(without: Api, path: str) -> None:
    status, told = await without.json(without.http, "GET", path)
    assert (status, told["error"]["code"]) == (503, "NOT_READY")
    assert "access.json: holds no devices and tokens" in told["error"]["message"]


async def test_nobody_is_let_in_by_a_token(without: Api) -> None:
    status, told = await without.json(without.http, "GET", "/agents", headers={"Authorization": "Bearer syn_a_b"})
    assert (status, told["error"]["code"]) == (401, "UNAUTHORIZED")
    status, _ = await without.json(without.http, "GET", "/control/status", headers={"Authorization": f"Bearer {TOKEN}"})
    assert status == 200


async def test_no_name_of_a_proxy_is_this_host(without: Api) -> None:
    headers = {"Host": "box.example.net", "X-Forwarded-For": "192.0.2.7", "Cookie": "__Host-synapsed-443=a.b"}
    status, told = await without.json(without.http, "GET", "/agents", headers=headers)
    assert (status, told["error"]["code"]) == (403, "FORBIDDEN")


async def test_the_rest_works(without: Api) -> None:
    status, rows = await without.json(without.http, "GET", "/agents")
    assert (status, len(rows)) == (200, 2)
