"""The verb of notifications."""

from synapsectl.verbs import DAEMON, Verb

VERBS = {
    "notify": Verb("notify", "test the places where you are notified", DAEMON, after="profiles"),
}
