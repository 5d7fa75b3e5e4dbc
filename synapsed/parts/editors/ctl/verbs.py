"""The verb of editors."""

from synapsectl.verbs import ELSEWHERE, Verb

VERBS = {"acp": Verb("acp", "an agent in an editor that speaks ACP", ELSEWHERE, after="mcp")}
