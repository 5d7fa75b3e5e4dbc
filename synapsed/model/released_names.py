"""Names that were released, and the part of each: what is said where that part is not installed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CONFIG_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {"history": "history", "metrics": "telemetry", "moods": "moods", "traces": "telemetry"}
)
"""Sections of config.toml, and keys in `[agents.NAME]`."""

METADATA: Final[Mapping[str, str]] = MappingProxyType({"fired": "rules", "fleet": "fleet", "scheduled": "schedules"})
"""Keys of tasks' metadata that parts set, and no client, whether the part is there or not."""
