"""Estimates the feelings of the person who works with an agent, from messages and actions.

`words` and `text` read a message, `likeness` finds repeated questions, `signals` is the table of signals and their
weights, `scorer` takes an agent's events one after the other and returns changed levels; these are pure, and without a
clock. `following` applies them to the log.
"""

from synapsed.config.config import ConfigKey, Section
from synapsed.kernel import Face, WantedBy


class MoodsConfig(Section):
    """`[moods]`."""

    enabled: bool = True
    """True if `emotionUpdate` events are sent about the person who works with an agent."""


FACE = Face(
    name="moods",
    opens="synapsed.parts.moods.following",
    wanted=WantedBy(agents=lambda config: config.moods.enabled, rows=["SELECT 1 FROM followers WHERE name = 'moods'"]),
    sections={"moods": ConfigKey(MoodsConfig, MoodsConfig())},
    agent_settings={"moods": ConfigKey(bool, True)},  # if `[moods]` is enabled
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
