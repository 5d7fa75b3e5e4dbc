"""Alerts: faults of an agent that last until they are repaired, each reported once when it begins and once when it
ends. Among them are messages that wait behind a draft in the program's composer, a program that does not come up, and
one whose rules no part keeps. Pure.

A sender who waits sees why the message is held; but perhaps no sender waits. The person who wrote the draft may have
left, or the draft may be text that a killed daemon could not remove.
"""

from dataclasses import replace

from synapsed.model.events import AgentAlert
from synapsed.model.link import LinkAlert


class Alerts:
    """Standing alerts of the running program; `clear` them when it is gone."""

    def __init__(self) -> None:
        self._standing: dict[str, str] = {}

    @property
    def standing(self) -> list[str]:
        """Returns the alerts in words, oldest first."""
        return list(self._standing.values())

    def told(self, alert: LinkAlert) -> AgentAlert:
        """Notes the alert; returns the event that reports it."""
        if alert.state == "begins":
            self._standing[alert.code] = alert.message
        elif alert.state == "over":
            self._standing.pop(alert.code, None)
        return AgentAlert(code=alert.code, message=alert.message, details={"state": alert.state, **alert.details})

    def clear(self) -> None:
        self._standing.clear()


class _Lasting:
    """Watches a fault that counts once it has lasted `after_s`; `over` is reported at its end."""

    after_s: float
    over: str

    def __init__(self) -> None:
        self._since: float | None = None
        self._told = False

    def _turned(self, begins: LinkAlert, now: float, *, lasts: bool) -> LinkAlert | None:
        """Returns the alert that `begins`, or the report of its end; None if there is nothing new to report."""
        self._since = (now if self._since is None else self._since) if lasts else None
        counts = self._since is not None and (self._told or now - self._since >= self.after_s)
        if counts == self._told:
            return None
        self._told = counts
        return begins if counts else replace(begins, message=self.over, state="over")


HELD_UP_S = 300.0
"""Seconds after which a line in the composer is no longer taken for one that a person is writing."""

HELD_UP = "MESSAGES_HELD"


class HeldMessages(_Lasting):
    """Watches for messages of one agent that are held up."""

    after_s = HELD_UP_S
    over = "messages wait no more behind what stands in its input line"

    def look(self, held: str | None, queue: int, now: float) -> LinkAlert | None:
        """Returns the alert while `held` keeps `queue` messages from the program, one of them in a begun turn."""
        wait = "1 message waits" if queue == 1 else f"{queue} messages wait"
        message = f"{wait} behind what stands in its input line: send it or take it out at its terminal (attach)"
        return self._turned(LinkAlert(HELD_UP, message, "begins"), now, lasts=held == "typing" and queue > 0)


START_SLOW_S = 180.0
"""Seconds that a start may take: on a busy machine some programs show nothing for a minute or two."""

NOT_STARTED = "NOT_STARTED"


class SlowStart(_Lasting):
    """Watches for a program that does not come up. The restart policy counts exits: a program that does not come up and
    does not end is left running, because it may still come up."""

    after_s = START_SLOW_S
    over = "its program has started"

    def look(self, starting: str | None, now: float) -> LinkAlert | None:
        """Returns the alert to report of a program that runs and is still `starting`, which has the reason for this
        belief; None for any other."""
        message = (
            f"its program runs and has not started for {START_SLOW_S / 60:.0f} minutes ({starting}): it is used when "
            "it comes, and not ended; attach shows what it does, 'synapsectl restart' starts it again"
        )
        return self._turned(LinkAlert(NOT_STARTED, message, "begins"), now, lasts=starting is not None)


NOT_ENFORCED = "NOT_ENFORCED"


class UnkeptRules:
    """Watches a program that runs while its agent's rules are not kept: no part of this daemon keeps them, or they came
    after its start and it has no way to obey."""

    def __init__(self) -> None:
        self._told: str | None = None

    def look(self, why: str | None) -> LinkAlert | None:
        """Returns the alert to report of a program that runs while its rules are not kept; `why` is the reason and its
        consequence, None if they are kept. Returns None if there is nothing new to report."""
        if why == self._told:
            return None
        self._told = why
        if why is None:
            return LinkAlert(NOT_ENFORCED, "it has no such rules any more, or its program is gone", "over")
        message = f"{why}, or run 'synapsectl restart' with --without-approval"
        return LinkAlert(NOT_ENFORCED, message, "begins")
