"""What bundles add to the verb `profiles`, and the daemon's verb that does it."""

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
