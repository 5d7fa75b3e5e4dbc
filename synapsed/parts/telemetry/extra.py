"""Tests if the packages for traces are installed: the extra `otel`."""

from importlib.util import find_spec
from typing import Any

MISSING = (
    "traces are configured, but OpenTelemetry is not installed: install synapsed with the extra 'otel' "
    "(pip install 'synapsed[otel]'), or remove 'endpoint' under [traces] of config.toml"
)

_WANTED = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")


def missing(config: Any) -> str | None:
    """Returns the advice for a person; None if no package is missing, or no traces are configured. The test loads only
    empty parent packages."""
    if not config.traces.endpoint:
        return None
    try:
        found = all(find_spec(name) is not None for name in _WANTED)
    except ModuleNotFoundError:  # a parent package is missing
        found = False
    return None if found else MISSING
