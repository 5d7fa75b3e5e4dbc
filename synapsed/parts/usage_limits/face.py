"""Messages of an agent wait after a usage limit, or when its account does not work, until its program can work on them
again.

`limit_notices` finds the program's words about such a fault and reads its end; `limit_record` decides what follows;
`accounts` distinguishes accounts, and finds that one may work again; `holding` holds back the messages of each agent.
"""

from typing import Literal

from pydantic import Field

from synapsed.config.config import ConfigKey, Section
from synapsed.kernel import WITH_AGENTS, Face


class UsageLimitPolicy(Section):
    """`usage_limit = {...}`: behaviour when the account's limit is reached. Times are seconds."""

    task: Literal["fail", "continue"] = "fail"
    """Effect on the task that met the limit: it fails (RATE_LIMITED), or goes on when the limit is over."""
    probe: float = Field(default=60.0, gt=0, le=86_400)
    """Pause before the next message if the program does not name the limit's end; it doubles each time."""
    maximum: float = Field(default=3600.0, gt=0, le=604_800)
    attempts: int = Field(default=12, ge=1, le=1000)
    """Number of times that one task may meet a limit."""


FACE = Face(
    name="usage_limits",
    opens="synapsed.parts.usage_limits.holding",
    wanted=WITH_AGENTS,
    agent_settings={"usage_limit": ConfigKey(UsageLimitPolicy, UsageLimitPolicy())},
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
