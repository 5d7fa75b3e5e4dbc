"""The verb of editors."""

from synapsectl.verbs import ELSEWHERE, Verb

VERBS = {"acp": Verb("acp", "serve an agent to an editor that speaks ACP", ELSEWHERE, after="mcp")}
