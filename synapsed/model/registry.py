"""An agent as the seeds' registry has it (`~/.a2a/registry`)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryEntry:
    """What the seeds' registry says of an agent (S9); `status` is a seed's word, `pid` the program's."""

    agent_id: str
    agent_type: str
    name: str
    port: int | None
    status: str
    pid: int | None
    working_dir: str
    endpoint: str
