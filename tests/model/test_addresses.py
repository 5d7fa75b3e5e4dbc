"""Addresses of agents: which one is meant, and what is said where none or several are."""

import pytest

from synapsed.errors import AmbiguousAddress, UnknownAgent
from synapsed.model.agent import AgentRef, resolve

ONE = AgentRef("api", "synapse-claude-8100", "claude", 8100, running=True)
TWO = AgentRef("claude-8101", "synapse-claude-8101", "claude", 8101, running=False)
PORTLESS = AgentRef("None", "synapse-codex-1", "codex", None, running=True)
ALL = (PORTLESS, ONE, TWO)


@pytest.mark.parametrize(
    ("address", "meant"),
    [
        ("api", ONE),
        ("@api", ONE),
        ("synapse-claude-8101", TWO),
        ("claude-8100", ONE),
        ("claude", ONE),  # the one that runs
        ("codex", PORTLESS),
    ],
)
def test_one_is_meant(address: str, meant: AgentRef) -> None:
    assert resolve(address, ALL) is meant


@pytest.mark.parametrize("address", ["codex-None", "claude-8102", "gemini", ""])
def test_none_is_meant(address: str) -> None:
    with pytest.raises(UnknownAgent):
        resolve(address, ALL)


def test_several_are_meant() -> None:
    running = AgentRef("third", "synapse-claude-8102", "claude", 8102, running=True)
    with pytest.raises(AmbiguousAddress) as told:
        resolve("claude", [*ALL, running])
    assert told.value.details["candidates"] == ["api", "third"]
