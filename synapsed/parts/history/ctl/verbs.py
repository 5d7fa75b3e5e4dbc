"""The verbs of the history."""

from synapsectl.verbs import LOOKING, Verb

VERBS = {
    "history": Verb("history", "what was said and done, searched and exported", LOOKING, after="events"),
    "usage": Verb("usage", "tokens and cost, by agent, day or task", LOOKING, after="history"),
}
