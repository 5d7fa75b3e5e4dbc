"""An agent elsewhere that a person has added under an alias."""

from pydantic import BaseModel, ConfigDict

SEEDS = "SYNAPSE"
"""`binding` of an agent that speaks as synapse-a2a does, and no A2A; its `protocol_version` is empty."""

FIRST = "0.1"
"""`protocol_version` of an agent that speaks A2A as it was first (`tasks/send`), before it had versions."""


class ExternalAgent(BaseModel):
    """What is known and shown of one. `url` is what the person gave, `endpoint` where its card says it listens; times
    are RFC 3339. What it takes to be let in is kept apart and not in here."""

    model_config = ConfigDict(extra="ignore")

    alias: str
    name: str
    description: str
    url: str
    card_url: str
    endpoint: str
    binding: str
    protocol_version: str
    tenant: str = ""
    streaming: bool
    skills: list[str]
    output_modes: list[str] = []
    """Media types that it answers with, as its card says."""
    needs: list[str] = []
    """What its card says that it needs, and was not given or is not done here, in words."""
    authenticated: bool
    other_host: bool = False
    """Whether a person has agreed to its listening on another host than its card's."""
    in_the_clear: bool = False
    """Whether a person has agreed to its credentials going there unencrypted."""
    added_at: str
    last_seen: str
