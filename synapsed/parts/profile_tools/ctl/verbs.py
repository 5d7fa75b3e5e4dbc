"""Additional sub-verbs of `profiles`, and the daemon's verb that performs them."""

from synapsectl.verbs import DaemonVerb, Verb

VERBS: dict[str, Verb] = {}

SUBVERBS = {"profiles": "bundles"}
"""Maps a verb of the tool to the module with its additional sub-verbs."""

DAEMON_VERBS = {
    "bundles": DaemonVerb(
        "synapsed.parts.profile_tools.bundles.bundle_verb",
        "what 'synapsectl profiles bundle' and 'update' have done: JSON on stdin, JSON on stdout",
        internal=True,
    ),
}
