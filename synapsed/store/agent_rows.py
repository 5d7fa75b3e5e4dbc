"""How agents are kept, and since when each has been there.

An agent's id is that of its port (`synapse-TYPE-PORT`), and a new agent on a removed one's port has the same. What is
read of an agent is bounded where it is read, by the last event and the last task before the agent was put first: these
stand in its row. The row goes with the agent, so that what there is of an id without an agent is all of it.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

from synapsed.store.secret_encryption import Sealer

BORN: Final = "coalesce((SELECT born FROM agents WHERE agents.id = {0}), 0)"
"""SQL: the id of the last event before the agent {0}."""

BORN_TASK: Final = "coalesce((SELECT born_task FROM agents WHERE agents.id = {0}), 0)"
"""SQL: the `seq` of the last task before the agent {0}."""

_LAST: Final = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{0}'), 0)"
"""SQL: the number given last in table {0}."""


def put_agents(connection: sqlite3.Connection, agents: Sequence[tuple[str, str]], sealer: Sealer) -> None:
    """Ids and data. One that is not there begins after all that there is."""
    for agent_id, data in agents:
        connection.execute(
            "INSERT INTO agents (id, data, born, born_task) "  # noqa: S608 - constants
            f"VALUES (?, ?, {_LAST.format('events')}, {_LAST.format('tasks')}) "
            "ON CONFLICT (id) DO UPDATE SET data = excluded.data",
            (agent_id, sealer.seal(data)),
        )


def select_born(connection: sqlite3.Connection) -> dict[str, int]:
    """By agent, the last event before it."""
    return dict(connection.execute("SELECT id, born FROM agents"))
