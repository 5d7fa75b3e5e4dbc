"""Names that were released, and the part that each belongs to, for the error if that part is not installed.
`synapsectl` uses this module too, so it imports no other module."""

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
        "profiles": "profile_tools",
        "rule": "rules",
        "schedule": "schedules",
        "traces": "telemetry",
        "webhooks": "rules",
        "attach.mentions": "mentions",
        "api.tls_cert": "web",
        "api.tls_key": "web",
        "api.tls_listen": "web",
        "approval": "approvals",
        "usage_limit": "usage_limits",
    }
)
"""Sections of config.toml, keys in them, and keys in `[agents.NAME]`."""

CONFIG_FILES: Final[Mapping[str, str]] = MappingProxyType({"fleet.toml": "fleet"})
"""Files beside config.toml."""

DAEMON_VERBS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "broker": "fleet",
        "bundles": "profile_tools",
        "fleet": "fleet",
        "profile": "profile_tools",
        "report": "profile_tools",
    }
)
"""Verbs of `synapsed`."""

DISTRIBUTIONS: Final[Mapping[str, str]] = MappingProxyType({"fleet": "synapsed[fleet]"})
"""Parts that are distributions of their own, and the argument of pip that installs each."""


NOT_INSTALLED: Final = "is not installed"


def installing(part: str) -> str:
    """Returns the command that installs a part which is a distribution of its own; empty for one of synapsed's own."""
    return f"pip install '{DISTRIBUTIONS[part]}'" if part in DISTRIBUTIONS else ""


def missing(part: str, why: str = NOT_INSTALLED) -> str:
    """Returns the message about a missing part, as "is not installed", with the command that installs it."""
    how = installing(part)
    return f"{why}: {how}" if how else why


METADATA: Final[Mapping[str, str]] = MappingProxyType({"fired": "rules", "fleet": "fleet", "scheduled": "schedules"})
"""Keys of tasks' metadata that only parts may set, even if the part is not installed."""

ALIASED: Final = "external:"
"""Beginning of `agent_id` in a task for an agent elsewhere that has an alias on this host. No agent's name or id has a
colon or an `@`."""

CARRIER: Final = "elsewhere"
"""The part that carries a task for an agent elsewhere, if `metadata.external.via` names none."""

ADDRESSES: Final[Mapping[str, str]] = MappingProxyType({"any:": "fleet"})
"""The one part that understands an address, by the beginning of the address."""

RESUME_AT_RESET: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({"usage_limit": {"task": "continue"}})
"""Keys of an agent's configuration that have the meaning of `resume_at_reset` in a request for a start."""

AutomatedKind = Literal["schedule", "rule", "webhook", "sink"]
"""Kind of automation that `/control/automation` lists."""

type Right = Literal["answer_prompts", "read_screens", "stop_agents", "make_schedules"]
"""Rights that a profile may grant its agents beyond those of every agent: answering other agents' prompts, reading
their screens, stopping and restarting them; and seeing the schedules, and scheduling messages in its own name."""

type RefusingRules = Literal["deny", "default"]
"""Rules about an agent that may refuse a call: its deny rules, or a `default = "deny"`."""
