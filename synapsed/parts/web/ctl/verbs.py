"""The verbs of the page, and of its visitors."""

from synapsectl.verbs import DAEMON, Verb

VERBS = {
    "web": Verb("web", "open the page, at the desk or on the phone", DAEMON, after="profiles"),
    "devices": Verb("devices", "list and remove the browsers that were let in", DAEMON, after="web"),
    "token": Verb("token", "make tokens for scripts, which may do some things only", DAEMON, after="devices"),
}
