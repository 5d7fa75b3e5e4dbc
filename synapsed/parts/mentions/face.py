"""Declares the part, which sends a line `@agent message` in an attached terminal to that agent."""

from synapsed.config.config import AttachConfig
from synapsed.kernel import Face, WantedBy


class MentionsConfig(AttachConfig):
    """`[attach]` with mentions."""

    mentions: bool = True
    """True if a line `@agent message` is sent to that agent at Enter."""


FACE = Face(
    name="mentions",
    opens="synapsed.parts.mentions.routing",
    wanted=WantedBy(agents=lambda config: config.attach.mentions),
    extends={"attach": MentionsConfig},
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
