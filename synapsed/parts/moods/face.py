"""Moods: how the person who works with an agent seems to feel, by what is written and done.

`words` and `text` read a message, `likeness` finds the same question again, `signals` is the table of what counts for
how much, `scorer` takes an agent's events one after the other and says which levels changed; these are pure, and
without a clock. `following` has them follow the log.
"""

from synapsed.config.config import ConfigKey, Section
from synapsed.kernel import Face


class MoodsConfig(Section):
    """`[moods]`."""

    enabled: bool = True
    """`emotionUpdate` is told of the person who works with an agent, by what is written and done."""


FACE = Face(
    name="moods",
    opens="synapsed.parts.moods.following",
    sections={"moods": ConfigKey(MoodsConfig, MoodsConfig())},
    agent_settings={"moods": ConfigKey(bool, True)},  # where `[moods]` is enabled
)
