"""The verbs of worktrees."""

from synapsectl.verbs import LOOKING, Verb

_NAMES = "checkout:names"

VERBS = {
    "diff": Verb("diff", "what has changed in an agent's folder", LOOKING, after="usage"),
    "worktree": Verb(
        "worktree",
        "folders and branches of their own for agents",
        LOOKING,
        after="diff",
        completes={"diff NAME": _NAMES, "merge NAME": _NAMES, "remove NAME": _NAMES},
    ),
}
