"""The verbs for agents elsewhere, and for other hosts."""

from synapsectl.verbs import ELSEWHERE, Verb

_ALIASES = ("/external/agents", "alias", "endpoint")

VERBS = {
    "external": Verb(
        "external",
        "reach A2A agents elsewhere, under a name of yours",
        ELSEWHERE,
        after="event",
        completes={"send AGENT": _ALIASES, "remove ALIAS": _ALIASES, "add ALIAS": _ALIASES},
    ),
    "host": Verb(
        "host",
        "reach other hosts of yours, whose agents are NAME@HOST here",
        ELSEWHERE,
        after="external",
        completes={"remove NAME": ("/hosts", "name", "target")},
    ),
}
