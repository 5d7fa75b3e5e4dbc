"""Names that were released, and the part of each: what is said where that part is not installed.

Also for `synapsectl`, so that nothing else is loaded here.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

CONFIG_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "a2a.push.enabled": "a2a",
        "a2a.repeats": "a2a",
        "fleet": "fleet",
        "history": "history",
        "hosts": "elsewhere",
        "metrics": "telemetry",
        "moods": "moods",
        "notify": "attention",
        "profiles": "bundles",
        "rule": "rules",
        "schedule": "schedules",
        "traces": "telemetry",
        "webhooks": "rules",
        "attach.mentions": "mentions",
        "api.tls_cert": "web",
        "api.tls_key": "web",
        "api.tls_listen": "web",
    }
)
"""Sections of config.toml, keys in them, and keys in `[agents.NAME]`."""

CONFIG_FILES: Final[Mapping[str, str]] = MappingProxyType({"fleet.toml": "fleet"})
"""Files beside config.toml."""

DAEMON_VERBS: Final[Mapping[str, str]] = MappingProxyType({"broker": "fleet", "bundles": "bundles", "fleet": "fleet"})
"""Verbs of `synapsed`."""

DISTRIBUTIONS: Final[Mapping[str, str]] = MappingProxyType({"fleet": "synapsed[fleet]"})
"""Parts that are distributions of their own, and what is asked of pip for each."""


NOT_INSTALLED: Final = "is not installed"


def installing(part: str) -> str:
    """Returns the command that installs a part which is a distribution of its own; nothing for one that comes with
    synapsed."""
    return f"pip install '{DISTRIBUTIONS[part]}'" if part in DISTRIBUTIONS else ""


def missing(part: str, why: str = NOT_INSTALLED) -> str:
    """Returns what is said of a part that is not there, as "is not installed", with what installs it."""
    how = installing(part)
    return f"{why}: {how}" if how else why


METADATA: Final[Mapping[str, str]] = MappingProxyType({"fired": "rules", "fleet": "fleet", "scheduled": "schedules"})
"""Keys of tasks' metadata that parts set, and no client, whether the part is there or not."""

ALIASED: Final = "external:"
"""The beginning of what stands as `agent_id` in a task for an agent that has an alias here. No agent's name or id has a
colon, nor an `@`."""

CARRIER: Final = "elsewhere"
"""The part that carries a task for an agent elsewhere, if `metadata.external.via` names none."""

ADDRESSES: Final[Mapping[str, str]] = MappingProxyType({"any:": "fleet"})
"""By the beginning of an address, the part that alone knows whom it means."""

AutomatedKind = Literal["schedule", "rule", "webhook", "sink"]
"""What `/control/automation` tells of."""

type Right = Literal["answer_prompts", "read_screens", "stop_agents", "make_schedules"]
"""What a profile may grant its agents beyond what every agent may: answering other agents' prompts, reading their
screens, stopping and restarting them; and seeing what is scheduled, and scheduling messages in its own name."""
