"""Messages that are sent at planned times, from `[[schedule]]` or added by the verb.

`calendar` and `spec` parse times, `due` finds those to handle; `scheduler` sends, and `table` keeps the progress of
each. `running` is the running part.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from synapsed.config.config import ConfigKey
from synapsed.kernel import Face, Route, WantedBy
from synapsed.parts.schedules.schedule import FILE, SCHEDULES_MAX, NewSchedule, as_schedule


def _named_once(config: Any) -> str | None:
    """Returns an error if two schedules have the same name."""
    ids = [as_schedule(schedule, now=0).id for schedule in config.schedule]
    for number, schedule_id in enumerate(ids):
        if (first := ids.index(schedule_id)) != number:
            name = schedule_id.removeprefix(FILE)
            return (
                f"schedule.{number}: another [[schedule]] (schedule.{first}) is called {name!r}, or says the same: "
                "give them names of their own"
            )
    return None


def _changes(old: Sequence[NewSchedule], new: Sequence[NewSchedule]) -> list[str]:
    """Returns a sentence about each schedule that is gone, new or changed."""
    before, after = ({one.id: one for one in (as_schedule(each, now=0) for each in kept)} for kept in (old, new))
    words = [
        *((before[gone].called, "is gone") for gone in before.keys() - after.keys()),
        *((after[new_one].called, "is new") for new_one in after.keys() - before.keys()),
        *((after[same].called, "changed") for same in before.keys() & after.keys() if before[same] != after[same]),
    ]
    return [f"[[schedule]] {name} {what}" for name, what in sorted(words)]


_ONE = "/schedules/{schedule}"
_NAMED = {"schedule": "a schedule's name, or its id"}

FACE = Face(
    name="schedules",
    opens="synapsed.parts.schedules.running",
    wanted=WantedBy(
        config=lambda config: bool(config.schedule), rows=("SELECT 1 FROM schedules", "SELECT 1 FROM occurrences")
    ),
    sections={
        "schedule": ConfigKey(
            Annotated[list[NewSchedule], Field(max_length=SCHEDULES_MAX)], default=[], changes=_changes
        )
    },
    check=_named_once,
    routes=(
        Route(method="GET", path="/schedules", handler="list_schedules", needs=frozenset({"look"})),
        Route(method="POST", path="/schedules", handler="add"),
        Route(method="DELETE", path=_ONE, handler="remove", parameters=_NAMED),
        Route(method="POST", path=f"{_ONE}/run", handler="run", parameters=_NAMED),
    ),
    routes_in="synapsed.parts.schedules.routes",
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
