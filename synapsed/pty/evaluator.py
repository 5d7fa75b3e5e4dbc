"""When a terminal is looked at: whatever changes it only says so, and looks follow at most once per `EVALUATE_EVERY_S`,
also when time alone changes a verdict.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

from synapsed.clock import Clock
from synapsed.keepers.heartbeat import SILENT
from synapsed.model.agent import Activity
from synapsed.profiles import Profile
from synapsed.pty.readiness import Moment, Obstacle, obstacle
from synapsed.terminal.observer import Look, TerminalObserver
from synapsed.terminal.verdict import LOST_S, QUIET_UNKNOWN_S, STALE_S, START_UNKNOWN_S

__all__ = ["EVALUATE_EVERY_S", "HANDS_OFF_S", "Watch"]

EVALUATE_EVERY_S = 0.015
"""The screen is judged at most so often: a snapshot costs about a millisecond, a program draws in bursts."""

HANDS_OFF_S = 1.0
"""Nothing is typed for a message so soon after a person's key: what they write may not be on the screen yet."""


class Watch:
    """The looks at one terminal. `looked` is called with every one, `judged` with those that follow a change (and the
    time); `due` are times at which somebody wants one, monotonic seconds; `unread`: see `unread.Unread`; `silent`:
    `pulse.Pulse`."""

    def __init__(
        self,
        *,
        profile: Profile,
        clock: Clock,
        observer: TerminalObserver,
        looked: Callable[[Look], None],
        judged: Callable[[Look, float], None],
        due: Callable[[], Iterable[float]],
        unread: Callable[[], bool],
        silent: Callable[[], bool] = lambda: False,
    ) -> None:
        self._profile = profile
        self._clock = clock
        self._observer = observer
        self._looked = looked
        self._judged = judged
        self._due = due
        self._unread = unread
        self._silent = silent
        self._timer: asyncio.TimerHandle | None = None
        self._open = self._closed = False
        self.hands_at = -HANDS_OFF_S
        """When a person last pressed a key, monotonic seconds."""
        self._waiting: list[tuple[Callable[[Look], bool], asyncio.Future[None]]] = []
        self.looked_at = 0.0
        """When the last look was, monotonic seconds."""

    def begin(self) -> None:
        """From now on changes are followed by looks; the first is now."""
        self._open = True
        self.judge()

    def end(self) -> None:
        """Nothing is looked at any more unless it is asked for."""
        self._closed = True
        self._cancel()

    def soon(self) -> None:
        """Something changed."""
        if self._open and not self._closed:
            self._wake_at(max(self.looked_at + EVALUATE_EVERY_S, self._clock.monotonic()))

    def judge(self) -> None:
        """Look now, unless the program is drawing: then as soon as it has drawn."""
        self._cancel()
        if self._closed:
            return
        now = self._clock.monotonic()
        if self._observer.mid_frame(now):
            self._wake_at(now + EVALUATE_EVERY_S)
            return
        look = self.look()
        self._judged(look, now)
        self._plan_next(look, now)

    def look(self) -> Look:
        """A look at this moment."""
        now = self._clock.monotonic()
        self.looked_at = now
        look = self._observer.look(now)
        if self._silent():  # the screen may be an old one
            look = replace(look, verdict=replace(look.verdict, activity=Activity.UNKNOWN, evidence=SILENT))
        self._looked(look)
        for wanted, future in list(self._waiting):
            if not future.done() and wanted(look):
                future.set_result(None)
        return look

    def obstacle(self, look: Look, *, in_turn: bool = False, pasted: bool = False) -> Obstacle | None:
        """Why nothing can be typed for a message at this moment, of which `look` is."""
        return obstacle(
            Moment(
                look=look,
                silent=self._silent(),
                unread=self._unread(),
                hands=self.hands_on,
                in_turn=in_turn,
                pasted=pasted,
            )
        )

    async def until(self, wanted: Callable[[Look], bool], timeout: float) -> bool:
        """Whether a look that satisfies `wanted` comes (or is had) within `timeout` seconds."""
        if wanted(self.look()):
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (wanted, future)
        self._waiting.append(entry)
        try:
            await asyncio.wait_for(future, timeout)
        except TimeoutError:
            return wanted(self.look())
        finally:
            self._waiting.remove(entry)
        return True

    def pressed(self) -> None:
        """A person pressed a key."""
        self.hands_at = self._clock.monotonic()

    @property
    def hands_on(self) -> bool:
        """A person pressed a key just now."""
        return self._clock.monotonic() - self.hands_at < HANDS_OFF_S

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake_at(self, when: float) -> None:
        """Look at `when`, or earlier if that is planned."""
        loop = asyncio.get_running_loop()
        at = loop.time() + max(0.0, when - self._clock.monotonic())
        if self._timer is not None and self._timer.when() <= at:
            return
        self._cancel()
        self._timer = loop.call_at(at, self.judge)

    def _plan_next(self, look: Look, now: float) -> None:
        """Time alone changes some verdicts: a screen comes to rest, a turn's patience ends."""
        times = [look.steady_at, look.unreadable_at, self.hands_at + HANDS_OFF_S, *self._due()]
        if not look.verdict.settled:
            times.append(look.changed_at + self._profile.ready.quiet_ms / 1000)
        if look.verdict.activity is not Activity.READY:
            times += [look.changed_at + wait for wait in (QUIET_UNKNOWN_S, START_UNKNOWN_S, STALE_S)]
            times += [look.still_since + wait for wait in (self._profile.interrupt.still_ms / 1000, STALE_S, LOST_S)]
        coming = [when for when in times if when > now]
        if coming:
            self._wake_at(min(coming) + 0.001)
