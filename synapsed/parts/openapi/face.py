"""The OpenAPI document, which describes this API for programs, on the daemon's listeners and on agents' own ports."""

from synapsed.interfaces import RIGHTS
from synapsed.kernel import Face, Route, WantedBy

FACE = Face(
    name="openapi",
    opens="synapsed.parts.openapi.routes",
    wanted=WantedBy(),
    routes=(
        Route(
            method="GET",
            path="/openapi.json",
            handler="openapi",
            needs=frozenset(RIGHTS),
            of_caller=True,
            public=True,
            on_ports=True,
        ),
    ),
    routes_in="synapsed.parts.openapi.routes",
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
