"""The verb of what tells a person."""

from synapsectl.verbs import DAEMON, Verb

VERBS = {
    "notify": Verb("notify", "where you are told what waits for you: does it work", DAEMON, after="profiles"),
}
