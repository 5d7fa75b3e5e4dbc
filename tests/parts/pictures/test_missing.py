"""A daemon without the part."""

import pytest

from tests.api.serving import Api
from tests.support.kernels import no_parts


@pytest.mark.parametrize("form", ["html", "svg", "png"])
async def test_who_asks_for_a_picture_is_told_what_there_is(
    api: Api, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = api.servers.context
    monkeypatch.setattr(context, "parts", no_parts())
    status, body = await api.json(api.agent, "GET", f"/screen?format={form}")
    assert (status, body["error"]["code"]) == (503, "NOT_READY")
    assert f"format={form} is drawn by a part that is not there: take text" in body["error"]["message"]
    assert (await api.json(api.agent, "GET", "/screen?format=json"))[0] == 200
