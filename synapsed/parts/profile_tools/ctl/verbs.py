"""Additional sub-verbs of `profiles`, the verb of reports, and the daemon's verbs that perform them."""

from synapsectl.verbs import LOOKING, DaemonVerb, Verb

VERBS = {
    "report": Verb("report", "write a file for others about a state that is wrong", LOOKING, after="logs"),
}

SUBVERBS = {"profiles": "profiles"}
"""Maps a verb of the tool to the module with its additional sub-verbs."""

DAEMON_VERBS = {
    "profile": DaemonVerb(
        "synapsed.parts.profile_tools.profile_verb",
        "show a profile as it counts, or check a file before it is used",
        reads=("show", "check", "file", "prove"),
    ),
    "bundles": DaemonVerb(
        "synapsed.parts.profile_tools.bundles.bundle_verb",
        "what 'synapsectl profiles bundle' and 'update' have done: JSON on stdin, JSON on stdout",
        internal=True,
    ),
    "report": DaemonVerb(
        "synapsed.parts.profile_tools.reports.report_verb",
        "what 'synapsectl report' has done: JSON on stdin, JSON on stdout",
        internal=True,
    ),
}
