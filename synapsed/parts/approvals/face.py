"""Declares the part: rules that allow or refuse a program's tool calls without a person, as `approval = {...}` in
`[agents.NAME]`.

`policy` describes a rule's syntax and decides about a call; `deciding` answers the program's questions.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from synapsed.config.config import ConfigKey, Section
from synapsed.kernel import WITH_AGENTS, Face
from synapsed.parts.approvals.policy import Policy, Rule


def _rules(value: list[str]) -> list[str]:
    for text in value:
        Rule.parse(text)
    return value


Rules = Annotated[list[str], AfterValidator(_rules)]


class ApprovalConfig(Section):
    """`approval = {...}`: the tool calls that need no person. The module `policy` describes the syntax of a rule."""

    default: Literal["escalate", "allow", "deny"] = "escalate"
    """Decision for calls that no rule covers; `escalate`: the person is asked."""
    allow: Rules = Field(default=[])
    deny: Rules = Field(default=[])

    @property
    def policy(self) -> Policy:
        return Policy.of(self.default, self.allow, self.deny)


FACE = Face(
    name="approvals",
    opens="synapsed.parts.approvals.deciding",
    wanted=WITH_AGENTS,
    agent_settings={"approval": ConfigKey(ApprovalConfig, ApprovalConfig())},
    guards=True,
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
