"""The sub-verbs that `profiles` has more, and the daemon's verb that does them."""

from synapsectl.verbs import DaemonVerb, Verb

VERBS: dict[str, Verb] = {}

SUBVERBS = {"profiles": "profiles"}
"""By a verb of the tool, the module with sub-verbs that it has more."""

DAEMON_VERBS = {
    "bundles": DaemonVerb(
        "synapsed.parts.bundles.bundle_verb",
        "what 'synapsectl profiles bundle' and 'update' have done: JSON on stdin, JSON on stdout",
        internal=True,
    ),
}
