"""The decision to roll back a bundle of profiles without a person. Pure.

An agent whose profile the bundle has changed does not come up if its program ends before its screen is read, or no
screen is read for UP_S. Then the bundle is set aside for TRIAL_S, and the agent is tried without it. If it comes up,
the bundle was the cause, and stays aside. If it does not, the bundle was not the cause: it counts again, and the
profile is no longer under suspicion.

A profile with which one agent came up is proved; later events of its agents have other causes. Only a launch proves
anything: a program that runs already was launched with the profile before.
"""

from dataclasses import dataclass, field
from typing import Final

from synapsed.parts.bundles.shelf import SHIPPED, Counts, Trial, after_rollback

UP_S: Final = 60.0
TRIAL_S: Final = 60.0

UP: Final = frozenset({"ready", "busy", "waiting", "limited"})
"""Activities of an agent whose screen is read."""
GONE: Final = frozenset({"exited", "backoff", "failed"})
"""States of an agent whose program has ended by itself, or could not be launched."""
AT_REST: Final = frozenset({"stopping", "stopped", "parked", "removed"})


@dataclass(slots=True)
class Suspicion:
    """The launches of agents of profiles with which no agent has come up. `launched`: the time of the launch, by the
    agent's id."""

    unproved: frozenset[str] = frozenset()
    launched: dict[str, float] = field(default_factory=dict)

    def state(self, agent: str, profile: str, state: str, now: float) -> bool:
        """Notes that an agent went into `state`. Returns True if it did not come up."""
        if profile not in self.unproved:
            return False
        if state == "starting":
            self.launched.setdefault(agent, now)
        elif state in GONE:
            return self.launched.pop(agent, None) is not None
        elif state in AT_REST:
            self.launched.pop(agent, None)
        return False

    def activity(self, agent: str, profile: str, activity: str) -> bool:
        """Notes an agent's activity. Returns True if that proves its profile."""
        if activity not in UP or self.launched.pop(agent, None) is None:
            return False
        self.unproved -= {profile}
        return True

    def silent(self, agent: str, since: float) -> bool:
        """Returns True if no screen was read of an agent since that launch; each launch is reported once."""
        return self.launched.get(agent) == since and self.launched.pop(agent, None) is not None


def begun(counts: Counts, trial: Trial) -> Counts | None:
    """Returns the counts during a trial; None if there is no reason for one any more."""
    if counts.trial is not None or counts.current != trial.digest or trial.profile not in counts.unproved:
        return None
    older, *others = counts.before or [SHIPPED]
    return counts.model_copy(update={"current": older, "before": others, "trial": trial})


def ended(counts: Counts, trial: Trial, *, came_up: bool) -> Counts | None:
    """Returns the counts after it; None if a person has gone back meanwhile."""
    if counts.trial != trial:
        return None
    restored = counts.model_copy(
        update={
            "current": trial.digest,
            "before": [counts.current, *counts.before],
            "unproved": [name for name in counts.unproved if name != trial.profile],
            "trial": None,
        }
    )
    return after_rollback(restored, trial.why) if came_up else restored


def proved(counts: Counts, digest: str, profile: str) -> Counts | None:
    """Returns the counts once an agent has come up with the profile of that bundle."""
    if counts.current != digest or profile not in counts.unproved:
        return None
    return counts.model_copy(update={"unproved": [name for name in counts.unproved if name != profile]})
