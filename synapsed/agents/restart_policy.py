"""The restart policy, decided purely: the consequence of an exit, given the exits before it.

After a program ended, `RestartState.exited` returns one of three decisions:

- `Rest`: it is not started again (policy `never`, or `on-failure` and the exit code is fine);
- `Retry(delay)`: it is started again after `delay` seconds: `initial * factor**n`, at most `maximum`, where n counts
  the restarts since the last stable run, times a random factor within ±`jitter`, so that many agents that ended
  together are not started together;
- `GiveUp(delay)`: it ended more than `limit` times within `window` seconds: a crash loop. It is tried again, but only
  every `retry` seconds, until a run is stable. A program that refused its arguments would do so again: it is given up
  at its first exit.

A run of at least `stable` seconds forgives everything before it. All times are differences of a monotonic clock, so a
jump of the wall clock changes nothing.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from synapsed.clock import backoff
from synapsed.config.config import RestartPolicy
from synapsed.model.events.kinds import FINE


@dataclass(frozen=True, slots=True)
class Rest:
    """Decision not to start the program again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Decision to start the program again after `delay` seconds."""

    delay: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Decision about a crash loop: the program is tried again only after `delay` seconds."""

    delay: float
    exits: int


Decision = Rest | Retry | GiveUp


class RestartState:
    """The exits of one agent that still count. `rng` gives numbers in [0, 1)."""

    def __init__(self, policy: RestartPolicy, *, fine_codes: frozenset[int], rng: Callable[[], float]) -> None:
        self._policy = policy
        self.fine_codes = fine_codes
        """The exit codes that are no failure."""
        self._rng = rng
        # The policy only asks whether there are more than `limit`.
        self._exits: deque[float] = deque(maxlen=policy.limit + 1)
        self._consecutive = 0

    def exited(
        self, code: int | None, *, now: float, uptime: float, refused: bool = False, crashed: bool = False
    ) -> Decision:
        """Returns the decision after an exit with `code` (None: not known) at `now`, after `uptime` seconds. `refused`:
        it did not take its arguments; `crashed`: it failed even if its code says otherwise."""
        policy = self._policy
        if uptime >= policy.stable:
            self.forgive()
        if policy.policy == "never":
            return Rest("the restart policy is 'never'")
        if policy.policy == "on-failure" and code in self.fine_codes and not crashed:
            return Rest(f"exit code {code} {FINE}")
        self._exits.append(now)
        while self._exits and self._exits[0] <= now - policy.window:
            self._exits.popleft()
        if refused or len(self._exits) > policy.limit:
            return GiveUp(self.slow_retry(), len(self._exits))
        delay = self._backoff()
        self._consecutive += 1
        return Retry(delay)

    def first_delay(self) -> float:
        """Returns the seconds before a restart when the number of earlier ones is unknown."""
        return self._jittered(self._policy.initial)

    def slow_retry(self) -> float:
        """Returns the seconds until a failed program is tried again."""
        return self._jittered(self._policy.retry)

    def forgive(self) -> None:
        """Forgets the exits so far: after a stable run, or when a person starts the agent."""
        self._exits.clear()
        self._consecutive = 0

    def _backoff(self) -> float:
        policy = self._policy
        return self._jittered(
            backoff(self._consecutive, initial=policy.initial, factor=policy.factor, maximum=policy.maximum)
        )

    def _jittered(self, delay: float) -> float:
        return delay * (1 + self._policy.jitter * (2 * self._rng() - 1))
