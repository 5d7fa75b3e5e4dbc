"""The verbs of worktrees."""

from synapsectl.verbs import LOOKING, Verb

_NAMES = "checkout:names"

VERBS = {
    "diff": Verb("diff", "show what has changed in an agent's folder", LOOKING, after="usage"),
    "worktree": Verb(
        "worktree",
        "list, merge and remove the worktrees of agents",
        LOOKING,
        after="diff",
        completes={"diff NAME": _NAMES, "merge NAME": _NAMES, "remove NAME": _NAMES},
    ),
}
