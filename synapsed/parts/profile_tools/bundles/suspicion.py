"""Decides whether a bundle of profiles may keep agents from coming up. Pure.

An agent whose profile the bundle has changed does not come up if its program ends before its screen is read, or no
screen is read for UP_S.

A profile with which one agent came up is proved; later faults of its agents have other causes. Only a launch can prove
a profile: a program that runs already was launched with the profile before.

After two failed launches (or one that no other follows soon), if the program has ended, it is launched with the profile
from before the bundle. If it comes up within UP_S, the bundle was the cause, and the bundle before is in use again.
Otherwise the cause is something else.
"""

from dataclasses import dataclass, field
from typing import Final

from synapsed.parts.profile_tools.bundles.shelf import Counts, after_rollback

UP_S: Final = 60.0

UP: Final = frozenset({"ready", "busy", "waiting", "limited"})
"""Activities of an agent whose screen is read."""
GONE: Final = frozenset({"exited", "backoff", "failed"})
"""States of an agent whose program has ended by itself, or could not be launched."""
GIVEN_UP: Final = "failed"
"""The one of these states, perhaps after `exited`, in which the program is not launched again soon."""
AT_REST: Final = frozenset({"stopping", "stopped", "parked", "removed"})


@dataclass(slots=True)
class Suspicion:
    """Launches of agents whose profiles are not proved. `launched`: the time of the launch, by the agent's id.
    `reported`: agents whose launch was reported because no screen was read; they may still come up."""

    unproved: frozenset[str] = frozenset()
    launched: dict[str, float] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)

    def state(self, agent: str, profile: str, state: str, now: float) -> bool:
        """Notes that an agent went into `state`. Returns True if it did not come up."""
        if profile not in self.unproved:
            return False
        if state == "starting":
            self.launched.setdefault(agent, now)
        elif state in GONE:
            new = agent not in self.reported
            return self.forget(agent) and new
        elif state in AT_REST:
            self.forget(agent)
        return False

    def forget(self, agent: str) -> bool:
        """Forgets the agent's launch. Returns False if no launch was known."""
        self.reported.discard(agent)
        return self.launched.pop(agent, None) is not None

    def activity(self, agent: str, profile: str, activity: str) -> bool:
        """Notes an agent's activity. Returns True if that proves its profile."""
        if activity not in UP or not self.forget(agent) or profile not in self.unproved:
            return False
        self.unproved -= {profile}
        return True

    def silent(self, agent: str, since: float) -> bool:
        """Returns True if no screen of the agent was read since the launch at `since`; each launch is reported once."""
        if self.launched.get(agent) != since or agent in self.reported:
            return False
        self.reported.add(agent)
        return True


def proved(counts: Counts, digest: str, profile: str) -> Counts | None:
    """Returns the counts once an agent has come up with the profile of that bundle."""
    if counts.current != digest or profile not in counts.unproved:
        return None
    return counts.model_copy(update={"unproved": [name for name in counts.unproved if name != profile]})


def set_aside(counts: Counts, digest: str, profile: str) -> Counts | None:
    """Returns the counts during a trial without the profile of that bundle; None if there is no reason for a trial any
    more."""
    if counts.current != digest or counts.aside or profile not in counts.unproved:
        return None
    return counts.model_copy(update={"aside": profile})


def after_trial(counts: Counts, digest: str, profile: str, *, came_up: bool) -> list[Counts]:
    """Returns the counts after the trial; an empty list if it was ended already. A profile that was proved meanwhile
    stays."""
    if counts.current != digest or counts.aside != profile:
        return []
    if came_up and profile in counts.unproved:
        return [after_rollback(counts)]
    return [counts.model_copy(update={"aside": ""})]
