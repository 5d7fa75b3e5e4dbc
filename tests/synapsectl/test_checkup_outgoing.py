"""`doctor` on the proxy: named and not used, used, or away."""

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from synapsectl.checkup.finding import NOTE, OK, WRONG
from synapsectl.checkup.surroundings import look_at_proxy
from synapsectl.errors import NoDaemon
from tests.support.ports import free_port
from tests.support.proxy import Proxy


def context(status: dict[str, Any] | None = None, environ: dict[str, str] | None = None) -> Any:
    """`status` is what the daemon tells of itself; None if no daemon runs."""

    def get(path: str) -> dict[str, Any]:
        if status is None:
            raise NoDaemon("no daemon runs")
        return status

    return SimpleNamespace(client=SimpleNamespace(get=get), environ=environ or {})


@pytest.mark.parametrize("options", [{}, {"refuses": 403}, {"locked": True}])
def test_one_that_answers(options: dict[str, Any]) -> None:
    with Proxy(**options) as proxy:
        found = look_at_proxy(context(), ("127.0.0.1", proxy.port))
    assert (found.what, found.status) == ("proxy", OK)
    assert f"127.0.0.1:{proxy.port} answers" in found.detail


def test_one_that_does_not() -> None:
    found = look_at_proxy(context(), ("127.0.0.1", free_port()))
    assert found.status == WRONG
    assert "does not answer" in found.detail
    assert "Connection refused" in found.detail


def test_what_is_no_proxy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(30)
        import threading

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(b"SSH-2.0-x\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        found = look_at_proxy(context(), other.getsockname()[:2])
        thread.join()
    assert (found.status, "no HTTP proxy" in found.detail) == (WRONG, True)


def test_the_daemon_s_environment_counts_and_only_names_are_told() -> None:
    shell = {"https_proxy": "http://ann:secret@x:1", "NO_PROXY": "x"}
    found = look_at_proxy(context({"unused_proxies": ["ALL_PROXY", "HTTP_PROXY"]}, shell), None)
    assert found.status == NOTE
    assert found.detail.startswith("ALL_PROXY, HTTP_PROXY name a proxy, which is not used: ")
    assert "'proxy' under [outgoing]" in found.mend
    found = look_at_proxy(context(None, shell), None)
    assert found.detail.startswith("https_proxy names a proxy, which is not used: ")
    assert "secret" not in str(found)
    for status in ({"unused_proxies": []}, {}):
        found = look_at_proxy(context(status, shell), None)
        assert (found.status, "go out directly" in found.detail) == (OK, True), "that of the daemon counts"
