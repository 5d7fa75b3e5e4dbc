"""Metrics for Prometheus, and traces of tasks for OpenTelemetry, both made from the event log.

`pipeline` puts them together. `task_lives` builds the history of one task (`Life`) from the log, and `reader` follows
the log; `observer` counts tasks and `metrics` shows the numbers (`families`, `exposition`); `tracer` makes spans of
tasks that are over (`spans`) and sends them (`otlp`).
"""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from synapsed.config.config import ConfigKey, Section
from synapsed.kernel import Face, Route, WantedBy


class MetricsConfig(Section):
    """`[metrics]`."""

    enabled: bool = True
    """True if `GET /metrics` is served, and figures about tasks are counted."""


def _collector(value: str) -> str:
    split = urlsplit(value)
    if value and (split.scheme not in ("http", "https") or not split.hostname or split.username is not None):
        raise ValueError("must be http://… or https://… without a user; empty: no traces")
    return value


def _header_names(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not (text.isascii() and text.isprintable()):
            raise ValueError(f"{name[:80]!r} is no header, or its value has other than printable ASCII characters")
    return value


class TracesConfig(Section):
    """`[traces]`: the receiver of OpenTelemetry spans of tasks."""

    endpoint: Annotated[str, AfterValidator(_collector)] = ""
    """The collector's address for traces, OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`. Empty: no traces
    are made."""
    headers: Annotated[dict[str, str], AfterValidator(_header_names)] = Field(default={}, repr=False)
    """Headers of each request, such as `Authorization`."""
    sample: float = Field(default=1.0, ge=0, le=1)
    """Share of the traces that begin here; traces from elsewhere have their own mark that they are sampled."""
    timeout: float = Field(default=5.0, gt=0, le=60)
    """Seconds for one attempt."""

    @property
    def share(self) -> float | None:
        """`sample`, None without traces."""
        return self.sample if self.endpoint else None


FACE = Face(
    name="telemetry",
    opens="synapsed.parts.telemetry.pipeline",
    wanted=WantedBy(config=lambda config: config.metrics.enabled or bool(config.traces.endpoint)),
    sections={
        "metrics": ConfigKey(MetricsConfig, MetricsConfig(), restart=True),
        "traces": ConfigKey(TracesConfig, TracesConfig(), restart=True),
    },
    routes=(Route(method="GET", path="/metrics", handler="metrics", needs=frozenset({"look"})),),
    routes_in="synapsed.parts.telemetry.routes",
    extras_in="synapsed.parts.telemetry.extra",
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
