"""`/hosts`: shapes and rights."""

import pytest

from tests.api.serving import Api

BODY = {"name": "box", "target": "ssh://me@box.lan:22"}


async def test_added_shown_removed(api: Api):
    status, host = await api.json(api.http, "POST", "/hosts", json=BODY | {"socket": "/run/there.sock"})
    assert (status, host["name"], host["target"], host["socket"]) == (200, "box", BODY["target"], "/run/there.sock")
    assert host["local"].endswith("/hosts/box")
    status, hosts = await api.json(api.http, "GET", "/hosts")
    assert (status, [one["name"] for one in hosts]) == (200, ["box"])
    status, _ = await api.json(api.http, "POST", "/hosts", json=BODY)
    assert status == 200, "it is connected to again"
    status, answer = await api.json(api.http, "POST", "/hosts", json=BODY | {"target": "other"})
    assert (status, answer["error"]["code"]) == (409, "NAME_TAKEN")
    assert await api.json(api.http, "DELETE", "/hosts/box") == (200, {"status": "removed", "name": "box"})
    status, answer = await api.json(api.http, "GET", "/hosts/box")
    assert (status, answer["error"]["code"]) == (404, "UNKNOWN_AGENT")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": "a@b"}, "name"),
        ({"name": "n" * 32}, "name"),
        ({"target": "-oProxyCommand=x"}, "target"),
        ({"target": "ssh://box/ x"}, "target"),
        ({"socket": "/run/a:b"}, "socket"),
        ({"socket": "run"}, "socket"),
    ],
)
async def test_what_ssh_would_misunderstand_is_refused(api: Api, wrong: dict, field: str):
    status, answer = await api.json(api.http, "POST", "/hosts", json=BODY | wrong)
    assert (status, answer["error"]["details"]["field"]) == (400, field)
    assert await api.json(api.http, "GET", "/hosts") == (200, [])


async def test_only_a_person_may(api: Api):
    await api.json(api.http, "POST", "/hosts", json=BODY)
    api.control.tokens["token-of-codex"] = "synapse-codex-8120"
    agent = {"headers": {"Authorization": "Bearer token-of-codex"}}
    for method, path, body in (
        ("GET", "/hosts", None),
        ("GET", "/hosts/box", None),
        ("POST", "/hosts", BODY),
        ("DELETE", "/hosts/box", None),
    ):
        status, answer = await api.json(api.http, method, path, json=body, **agent)
        assert (status, answer["error"]["code"]) == (403, "FORBIDDEN"), (method, path)
    status, _ = await api.json(api.http, "GET", "/agents?hosts=1", **agent)
    assert status == 200
