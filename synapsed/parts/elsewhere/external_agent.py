"""An agent elsewhere that a person has added under an alias."""

from pydantic import BaseModel, ConfigDict

SEEDS = "SYNAPSE"
"""`binding` of an agent that speaks as synapse-a2a does, and no A2A; its `protocol_version` is empty."""

FIRST = "0.1"
"""`protocol_version` of an agent that speaks A2A as it was first (`tasks/send`), before it had versions."""


class ExternalAgent(BaseModel):
    """Record of an external agent, without its credentials. `url` is the address that the person gave, `endpoint` the
    one where its card says it listens; times are RFC 3339."""

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
    """Needs that its card states and that are not met here, in words."""
    signed_by: str = ""
    """Name of the key by which its card is signed, if it has one and `key` was given."""
    key: str = ""
    """Public keys (PEM, a JWK or a JWK set) with one of which its card must be signed; empty: any card will do."""
    extended: bool = False
    """True if its skills and modes are those of its extended card."""
    authenticated: bool
    other_host: bool = False
    """True if a person has agreed that it listens on another host than its card's."""
    in_the_clear: bool = False
    """True if a person has agreed that its credentials go there unencrypted."""
    added_at: str
    last_seen: str
