"""The verbs of the history."""

from synapsectl.verbs import LOOKING, Verb

VERBS = {
    "history": Verb("history", "search and export what was said and done", LOOKING, after="events"),
    "usage": Verb("usage", "add up tokens and cost, by agent, day or task", LOOKING, after="history"),
}
