"""Verbs of the fleet: one for a person, and those that installed units and `synapsectl` call."""

from synapsectl.verbs import ELSEWHERE, DaemonVerb, Verb

VERBS = {
    "fleet": Verb("fleet", "join many hosts to one address space, over a broker of yours", ELSEWHERE, after="host"),
}

DAEMON_VERBS = {
    "broker": DaemonVerb(
        "synapsed_fleet.broker_verb",
        "keep this host's broker of a fleet until SIGTERM or SIGINT",
        log="broker",
    ),
    "fleet": DaemonVerb(
        "synapsed_fleet.fleet_verb",
        "what 'synapsectl fleet' has done: JSON on stdin, JSON on stdout",
        internal=True,
    ),
}
