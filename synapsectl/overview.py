"""What `synapsectl -h` shows: every verb in a line, those of a kind together."""

from synapsectl.output import PROGRAM
from synapsectl.verbs import VERBS

PURPOSE = "keeps agents on the command line running, and talks to them"

SYNONYMS = {
    "ask": "send",
    "connect": "attach",
    "detach": "attach",
    "interrupt": "cancel",
    "log": "logs",
    "new": "start",
    "open": "attach",
    "ps": "list",
    "resume": "adopt",
    "rm": "stop --remove",
    "remove": "stop --remove",
    "spawn": "start",
    "tell": "send",
    "up": "start",
    "down": "shutdown",
    "no": "deny",
    "yes": "approve",
}
"""What people who come from other tools type, and the verb that they mean."""


def overview() -> str:
    """The verbs by their groups, in the order of `VERBS`."""
    lines = [f"usage: {PROGRAM} VERB …"]
    group = None
    for name, verb in VERBS.items():
        if verb.group != group:
            group = verb.group
            lines += ["", f"{group}:"]
        lines.append(f"  {name:<12}{verb.help}")
    lines += [
        "",
        f"'{PROGRAM} VERB -h' tells more of one, with examples.",
        "Where no daemon runs, start, run, adopt, send and host add start one.",
    ]
    return "\n".join(lines) + "\n"
