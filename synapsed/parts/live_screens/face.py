"""Agents' screens for pages, as rows of cells over a WebSocket, sent as they change."""

from synapsed.kernel import Face, Route, WantedBy

FACE = Face(
    name="live_screens",
    opens="synapsed.parts.live_screens.screen",
    wanted=WantedBy(),
    routes=(Route(method="GET", path="/screen/live", handler="screen.live", needs=frozenset({"look"}), at="agent"),),
    routes_in="synapsed.parts.live_screens",
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
