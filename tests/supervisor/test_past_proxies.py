"""An agent's requests to this machine do not go through its shell's proxy."""

import sys
from typing import Any

import pytest

from synapsed.supervisor.environment import past_proxies

HERE = "localhost,127.0.0.1,::1"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
def test_both_spellings_are_set_where_a_proxy_is_named(name: str) -> None:
    assert past_proxies({name: "http://proxy:3128"}) == {"NO_PROXY": HERE, "no_proxy": HERE}
    assert past_proxies({name: ""}) == {}


@pytest.mark.parametrize("env", [{}, {"NO_PROXY": "corp"}, {"no_proxy": "corp", "PATH": "/bin"}])
def test_nothing_is_set_where_none_is(env: dict[str, str]) -> None:
    assert past_proxies(env) == {}


@pytest.mark.parametrize(
    ("given", "large", "small"),
    [
        ({"NO_PROXY": ".corp"}, f".corp,{HERE}", f".corp,{HERE}"),
        ({"no_proxy": ".corp, 10.0.0.0/8"}, f".corp,10.0.0.0/8,{HERE}", f".corp,10.0.0.0/8,{HERE}"),
        ({"NO_PROXY": "a", "no_proxy": "b"}, f"a,{HERE}", f"b,{HERE}"),
        ({"NO_PROXY": "::1,localhost"}, "::1,localhost,127.0.0.1", "::1,localhost,127.0.0.1"),
        ({"NO_PROXY": HERE, "no_proxy": HERE}, HERE, HERE),
        ({"NO_PROXY": "*", "no_proxy": ""}, "*", "*"),
    ],
)
def test_what_is_there_is_extended_and_nothing_doubled(given: dict[str, str], large: str, small: str) -> None:
    env = {"HTTPS_PROXY": "http://proxy:3128", **given}
    assert past_proxies(env) == {"NO_PROXY": large, "no_proxy": small}
    assert past_proxies({**env, **past_proxies(env)}) == past_proxies(env)


def test_libraries_understand_it(monkeypatch: Any) -> None:
    """`[::1]` in the list would have httpx raise, for any request."""
    from urllib.request import proxy_bypass

    import httpx
    import requests.utils

    env = {"HTTP_PROXY": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1"}
    for name, value in {**env, **past_proxies(env)}.items():
        monkeypatch.setenv(name, value)
    with httpx.Client() as client:
        for host in ("localhost", "127.0.0.1", "[::1]"):
            assert client._transport_for_url(httpx.URL(f"http://{host}:8100/")) is client._transport
        assert client._transport_for_url(httpx.URL("http://far.example/")) is not client._transport
    for host in ("localhost", "127.0.0.1"):
        assert proxy_bypass(f"{host}:8100") or sys.platform == "darwin"
        assert requests.utils.should_bypass_proxies(f"http://{host}:8100/", no_proxy=None)
