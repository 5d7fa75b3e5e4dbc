"""Many hosts with one address space, over their own broker (docs/fleet.md).

`running` opens the part: `service` puts together what is done over one connection (`link`), `carrier` brings messages
to the agents of other hosts, `incoming` takes theirs, and `fleet_table` keeps the messages under way. `broker` and
`operations` implement `synapsed broker` and `synapsectl fleet`.
"""

from pathlib import Path
from typing import Final

from synapsed.config.config import ConfigKey, SectionFile
from synapsed.interfaces import Right
from synapsed.kernel import Face, Route
from synapsed_fleet.fleet_config import FleetConfig

_SEND: Final[frozenset[Right]] = frozenset({"send", "answer"})


def _lacking(fleet: FleetConfig, file: Path) -> str | None:
    """Returns a message about the first missing key that a fleet needs, None if it has all."""
    missing = [key for key in ("name", "urls") if not getattr(fleet, key)]
    if not missing:
        return None
    return (
        f"fleet.{missing[0]} is missing: 'synapsectl fleet create' or 'fleet join' writes it to {file}; without a "
        "fleet, remove [fleet]"
    )


FACE = Face(
    name="fleet",
    opens="synapsed_fleet.running",
    sections={
        "fleet": ConfigKey(
            FleetConfig | None, default=None, restart=True, file=SectionFile("fleet.toml", FleetConfig, _lacking)
        )
    },
    routes=(
        Route(method="GET", path="/fleet", handler="status"),
        Route(method="GET", path="/fleet/hosts", handler="list_fleet_hosts"),
        Route(method="GET", path="/fleet/events", handler="fleet_events"),
        Route(method="GET", path="/fleet/outbox", handler="outbox"),
        Route(method="POST", path="/fleet/outbox/{row}/retry", handler="retry"),
        Route(method="POST", path="/fleet/outbox/{row}/cancel", handler="give_up"),
        Route(method="GET", path="/fleet/quarantine", handler="quarantine"),
        Route(method="GET", path="/fleet/files", handler="list_files"),
        Route(method="POST", path="/fleet/files", handler="begin_file", needs=_SEND),
        Route(method="POST", path="/fleet/files/{file}", handler="add_to_file", needs=_SEND),
        Route(method="DELETE", path="/fleet/files/{file}", handler="remove_given_file"),
        Route(method="GET", path="/fleet/files/{host}/{file}", handler="read_file"),
        Route(method="DELETE", path="/fleet/files/{host}/{file}", handler="remove_file"),
    ),
    routes_in="synapsed_fleet.routes",
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
