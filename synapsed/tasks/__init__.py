"""Tasks, apart from the agents that work on them: their transitions, the text that is typed for them, their senders,
and the replies to them."""

from synapsed.tasks.live_answer import Told
from synapsed.tasks.prompt_text import REPLY_TO, RESPONSE_EXPECTED
from synapsed.tasks.replies import DIRECTION, HOPS, IN_REPLY_TO, REPLY
from synapsed.tasks.transitions import COMMAND

__all__ = ["COMMAND", "DIRECTION", "HOPS", "IN_REPLY_TO", "REPLY", "REPLY_TO", "RESPONSE_EXPECTED", "Told"]
