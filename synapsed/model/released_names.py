"""Names that were released, and the part of each: what is said where that part is not installed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CONFIG_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "history": "history",
        "metrics": "telemetry",
        "moods": "moods",
        "traces": "telemetry",
        "api.tls_cert": "web",
        "api.tls_key": "web",
        "api.tls_listen": "web",
    }
)
"""Sections of config.toml, keys in them, and keys in `[agents.NAME]`."""
