"""The verb of schedules."""

from synapsectl.verbs import MESSAGES, Verb

_NAMES = ("/schedules", "name", "message")

VERBS = {
    "schedule": Verb(
        "schedule",
        "send messages at their times",
        MESSAGES,
        after="event",
        completes={"remove NAME": _NAMES, "run NAME": _NAMES},
    ),
}
