"""The exporter's own way: directly, or through the proxy of `[outgoing]`; never that of the environment."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from synapsed.model.trace import TraceContext
from synapsed.outgoing import OutgoingConfig
from synapsed.parts.telemetry.face import TracesConfig
from synapsed.parts.telemetry.spans import Span
from synapsed.parts.telemetry.tracer import Outcome, trace_settings
from tests.support.proxy import PASSWORD, Proxy

pytest.importorskip("opentelemetry.sdk", reason="the extra `otel` is not installed")
from synapsed.parts.telemetry.otlp import exporter_of
from tests.support.collector import Collector

SPAN = Span(
    "invoke_agent x", "server", TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"), None, 1, 2
)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def sent(url: str, outgoing: OutgoingConfig) -> Outcome:
    config = TracesConfig(endpoint=url, timeout=5)
    exporter = exporter_of(
        trace_settings(
            config, cursor=Path("/nowhere"), version="1", proxy=outgoing.proxy_for(urlsplit(url).hostname or "")
        )
    )
    try:
        return exporter.send([SPAN])
    finally:
        exporter.close()


def test_by_the_proxy(collector: Collector) -> None:
    url = collector.url.replace("127.0.0.1", "collector.example")
    with Proxy(locked=True) as proxy:
        assert sent(url, OutgoingConfig(proxy=proxy.url_with_password)) == ("taken", None)
        assert proxy.asked == [f"POST {url}"]
        direct = OutgoingConfig(proxy=proxy.url, direct=["127.0.0.0/8"])
        for outgoing in (OutgoingConfig(proxy=proxy.url), direct):
            assert sent(collector.url, outgoing) == ("taken", None), "it is on this machine"
        assert len(proxy.asked) == 1
    assert not any("proxy-authorization" in headers for headers in collector.headers)


def test_the_environment_s_is_not_used(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    with Proxy() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert sent(collector.url, OutgoingConfig()) == ("taken", None)
        assert proxy.asked == []


def test_a_password_that_is_wrong_is_told_nowhere(collector: Collector, caplog: pytest.LogCaptureFixture) -> None:
    with Proxy(locked=True) as proxy:
        wrong = OutgoingConfig(proxy=proxy.url_with_password.replace(PASSWORD, "wrong-word"))
        assert sent(collector.url.replace("127.0.0.1", "collector.example"), wrong) == ("later", 407), (
            "no batch is lost by it"
        )
    assert "wrong-word" not in caplog.text
