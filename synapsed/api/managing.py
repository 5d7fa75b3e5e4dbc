"""Limits of the right `manage`: agents of a profile as it is, in folders that have one already; stopped, but kept."""

from collections.abc import Iterable
from typing import Final

from synapsed.api.request_models import RestartBody, StartBody, StopBody
from synapsed.api.rights import Rights
from synapsed.errors import Forbidden

_START: Final = frozenset({"profile", "name", "cwd", "cols", "rows"})
"""Fields that a grant may set: none of them is executed, and none weakens a profile's refusals."""


def check_start(rights: Rights, body: StartBody, folders: Iterable[str]) -> None:
    """Raises Forbidden for a start that a grant may not ask for. `folders`: those of the agents that there are."""
    if rights.grant is None:
        return
    if more := sorted(body.model_fields_set - _START):
        rights.require_whole(f"start an agent with {', '.join(more)}")
    if body.cwd not in set(folders):
        raise Forbidden(
            f"a {rights.grant.kind} may start agents only in folders (cwd) that have an agent already: start the first "
            "one with synapsectl",
            cwd=None if body.cwd is None else body.cwd[:200],
        )


def check_stop(rights: Rights, body: StopBody) -> None:
    """Raises Forbidden if a grant would remove the agent."""
    if body.remove:
        rights.require_whole("remove an agent")


def check_restart(rights: Rights, body: RestartBody) -> None:
    """Raises Forbidden if a grant, or an agent, would have it started without its deny rules."""
    if body.without_approval:
        rights.require_whole("have an agent started whose deny rules cannot be enforced")
        rights.require_person("have an agent started whose deny rules cannot be enforced")
