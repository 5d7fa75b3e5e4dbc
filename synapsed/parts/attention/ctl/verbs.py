"""The verb of notifications."""

from synapsectl.verbs import DAEMON, Verb

VERBS = {
    "notify": Verb("notify", "try the places where you are told what waits for you", DAEMON, after="profiles"),
}
