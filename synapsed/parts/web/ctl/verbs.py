"""The verbs of the page, and of its visitors."""

from synapsectl.verbs import DAEMON, Verb

VERBS = {
    "web": Verb("web", "the page, at the desk and on the phone", DAEMON, after="profiles"),
    "devices": Verb("devices", "which browsers were let in", DAEMON, after="web"),
    "token": Verb("token", "tokens for scripts, which may some things only", DAEMON, after="devices"),
}
