"""Alerts: what is wrong with an agent and stands until it is mended, told once when it begins and once when it ends;
among it messages that wait behind what stands in its program's composer, a program that does not come up, and one whose
rules nobody keeps. Pure.

Who waits for a message is told what it waits for; but perhaps nobody does. The person who began to write may have gone,
or it is what a daemon that was killed could not take back.
"""

from synapsed.model.events import AgentAlert
from synapsed.model.link import LinkAlert


class Alerts:
    """Of the program that runs; `clear` when it is gone."""

    def __init__(self) -> None:
        self._standing: dict[str, str] = {}

    @property
    def standing(self) -> list[str]:
        """For people, oldest first."""
        return list(self._standing.values())

    def told(self, alert: LinkAlert) -> AgentAlert:
        """Take note of it; the event that tells of it."""
        if alert.state == "begins":
            self._standing[alert.code] = alert.message
        elif alert.state == "over":
            self._standing.pop(alert.code, None)
        return AgentAlert(code=alert.code, message=alert.message, details={"state": alert.state, **alert.details})

    def clear(self) -> None:
        self._standing.clear()


HELD_UP_S = 300.0
"""Nobody writes one line for so long."""

HELD_UP = "MESSAGES_HELD"


class HeldMessages:
    """Of one agent."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._told = False

    def look(self, held: str | None, queue: int, now: float) -> LinkAlert | None:
        """What is to be told now that the program is kept from messages by `held`, and `queue` of them wait, one
        whose turn has begun already among them."""
        if held != "typing" or queue == 0:
            self._since = None
            if not self._told:
                return None
            self._told = False
            return LinkAlert(HELD_UP, "messages wait no more behind what stands in its composer", "over")
        self._since = now if self._since is None else self._since
        if self._told or now - self._since < HELD_UP_S:
            return None
        self._told = True
        wait = "1 message waits" if queue == 1 else f"{queue} messages wait"
        message = f"{wait} behind what stands in its composer: send it or take it out at its terminal (attach)"
        return LinkAlert(HELD_UP, message, "begins")


START_SLOW_S = 180.0
"""On a busy machine some programs show nothing for a minute or two."""

NOT_STARTED = "NOT_STARTED"


class SlowStart:
    """Of one agent. Its restart policy counts ends: a program that does not come up, and does not end, is left to it,
    for it may come yet."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._told = False

    def look(self, starting: str | None, now: float) -> LinkAlert | None:
        """What is to be told of a program that runs and is `starting`, which says why it is held to be; None of any
        other."""
        if starting is None:
            self._since = None
            if not self._told:
                return None
            self._told = False
            return LinkAlert(NOT_STARTED, "its program has started", "over")
        self._since = now if self._since is None else self._since
        if self._told or now - self._since < START_SLOW_S:
            return None
        self._told = True
        message = (
            f"its program runs and has not started for {START_SLOW_S / 60:.0f} minutes ({starting}): it is used when "
            "it comes, and not ended; attach shows what it does, 'synapsectl restart' starts it again"
        )
        return LinkAlert(NOT_STARTED, message, "begins")


NOT_ENFORCED = "NOT_ENFORCED"


class UnkeptRules:
    """Tells of one agent whose program was started when its rules were kept, and runs on with a daemon in which nobody
    keeps them."""

    def __init__(self) -> None:
        self._told: str | None = None

    def look(self, why: str | None) -> LinkAlert | None:
        """Returns what is to be told of a program that runs and whose rules nobody keeps, which `why` says; None of any
        other."""
        if why == self._told:
            return None
        self._told = why
        if why is None:
            return LinkAlert(NOT_ENFORCED, "it has no such rules any more, or its program is gone", "over")
        message = (
            f"{why}; each call that its program asks about is refused: mend that and restart the daemon, or run "
            "'synapsectl restart' with --without-approval"
        )
        return LinkAlert(NOT_ENFORCED, message, "begins")
