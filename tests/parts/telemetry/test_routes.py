"""`GET /metrics`: what it answers, and to whom."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapsed.clock import SystemClock
from synapsed.config.paths import Paths
from synapsed.parts.loading import config_model
from synapsed.parts.telemetry.pipeline import Telemetry
from tests.api.serving import Api, serving
from tests.fakes.clock import FakeClock
from tests.fakes.control import FakeControl
from tests.support.kernels import kernel_of

TOKEN = "token-metrics-token"


@pytest.fixture
def control() -> FakeControl:
    fake = FakeControl()
    fake.add("claude", "claude", 8100)
    return fake


def telemetry(control: FakeControl, home: Path, **sections: Any) -> Telemetry:
    return Telemetry(
        kernel_of(
            control=control,
            store=control.store,
            clock=SystemClock(),
            timers=FakeClock(),
            config=config_model()(**sections),
            paths=Paths.from_environ({"SYNAPSED_HOME": str(home), "HOME": str(home)}),
        )
    )


@pytest.fixture
async def api(control: FakeControl, tmp_path: Path) -> AsyncIterator[Api]:
    async with serving(control, tmp_path, running={"telemetry": telemetry(control, tmp_path)}) as api:
        yield api


async def test_metrics(api: Api) -> None:
    for accept, kind in [
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "application/openmetrics-text; version=1.0.0"),
    ]:
        async with api.http.get("/metrics", headers={"Accept": accept}) as response:
            assert response.headers["Content-Type"].startswith(kind)
            text = await response.text()
        assert 'synapse_build_info{python="' in text
        assert "synapse_subscribers 0.0\n" in text


async def test_metrics_that_are_switched_off(control: FakeControl, tmp_path: Path) -> None:
    async with serving(
        control, tmp_path, running={"telemetry": telemetry(control, tmp_path, metrics={"enabled": False})}
    ) as api:
        status, body = await api.json(api.http, "GET", "/metrics")
    assert (status, body["error"]["code"]) == (404, "NOT_FOUND")


async def test_the_token_of_the_metrics_reads_them_and_nothing_else(api: Api) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for client in (api.http, api.unix):
        async with client.get("/metrics", headers=headers) as response:
            assert response.status == 200
        async with client.get("/healthz", headers=headers) as response:
            assert response.status == 200
    refused_to = [
        "/agents",
        "/events",
        "/whoami",
        "/agents/claude/status",
        "/control/status",
        "/hosts",
    ]
    for path in refused_to:
        async with api.http.get(path, headers=headers) as response:
            assert response.status in (401, 403), path
        async with api.unix.get(path, headers=headers) as response:
            assert response.status == 401, path
    async with api.http.post("/agents/claude/message", headers=headers, json={"content": "x"}) as response:
        assert response.status == 401
        assert "this token reads /metrics, and nothing else" in (await response.json())["error"]["message"]
    assert api.control.calls == []


def test_traces_go_by_the_configured_proxy(control: FakeControl, tmp_path: Path) -> None:
    """And whoever passes a trace on is told which share of them is sent."""
    traces = {"endpoint": "http://collector.example:4318/v1/traces", "sample": 0.5}
    part = telemetry(control, tmp_path, traces=traces, outgoing={"proxy": "http://127.0.0.1:3128"})
    assert part.tracer is not None
    assert part.tracer._settings.proxy == "http://127.0.0.1:3128"
    assert part._kernel.sampling.share == 0.5
    assert telemetry(control, tmp_path)._kernel.sampling.share is None
