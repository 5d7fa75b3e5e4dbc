"""What is wrong with an agent and stands until it is mended: told once when it begins and once when it ends."""

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
