"""Full text over messages, answers and tool calls, and usage of turns: a file of its own that follows the log.

`service` has one thread that brings the file up to the log (`indexing`, `reading`) and one that answers questions
(`searching`); `texts` makes the kept form of a text.
"""

from typing import Final

from synapsed.config.config import ConfigKey, Section
from synapsed.kernel import Face, Route, WantedBy


class HistoryConfig(Section):
    """`[history]`."""

    enabled: bool = True
    """Messages, answers and tool calls can be searched, and usage is added up."""


FILE: Final = "history.db"
"""Name of the file in the state's folder."""

_LOOK = frozenset({"look"})

FACE = Face(
    name="history",
    opens="synapsed.parts.history.service",
    wanted=WantedBy(agents=lambda config: config.history.enabled, files=lambda paths: [paths.state / FILE]),
    sections={"history": ConfigKey(HistoryConfig, HistoryConfig(), restart=True)},
    routes=(
        Route(method="GET", path="/control/history", handler="search", needs=_LOOK),
        Route(method="GET", path="/control/history/stats", handler="stats", needs=_LOOK),
        Route(method="GET", path="/control/usage", handler="usage", needs=_LOOK),
    ),
    routes_in="synapsed.parts.history.routes",
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
