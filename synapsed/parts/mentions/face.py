"""`@agent message` in an attached terminal goes to that agent."""

from synapsed.config.config import AttachConfig
from synapsed.kernel import Face


class MentionsConfig(AttachConfig):
    """`[attach]` with mentions."""

    mentions: bool = True
    """`@agent message` and Enter goes to that agent."""


FACE = Face(name="mentions", opens="synapsed.parts.mentions.routing", extends={"attach": MentionsConfig})
