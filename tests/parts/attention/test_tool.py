"""What the person's tool does where the part is not installed."""

from types import SimpleNamespace
from typing import Any

import pytest

from synapsectl import dispatch, next_agent
from synapsectl.errors import REFUSED
from synapsectl.verbs import NEEDS


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The verbs that were begun."""
    names: list[str] = []

    def quick(name: str, arguments: list[str]) -> Any:
        return SimpleNamespace(json=False), lambda args, ctx: names.append(name) or 0

    monkeypatch.setattr(dispatch, "is_installed", lambda part: False)
    monkeypatch.setattr(next_agent, "is_installed", lambda part: False)
    monkeypatch.setattr(dispatch, "_has_inbox", lambda out: True)
    monkeypatch.setattr(dispatch, "_quick", quick)
    return names


def test_it_begins_with_the_list(begun: list[str]) -> None:
    assert dispatch.run_verb([], None) == 0
    assert begun == ["list"]


@pytest.mark.parametrize("verb", NEEDS)
def test_verbs_that_show_what_waits_say_so(verb: str, begun: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch.run_verb([verb], None) == REFUSED
    assert begun == []
    told = f"synapsectl: {verb!r} needs the part attention, which is not installed\n"
    assert capsys.readouterr().err == told


def test_the_next_agent_is_the_next_of_the_list(begun: list[str]) -> None:
    class Client:
        def get(self, path: str) -> list[dict[str, str]]:
            assert path == "/agents"
            return [{"id": "a", "state": "running"}, {"id": "b", "state": "running"}]

    assert next_agent.next_agent(Client(), "a", 1) == "b"  # type: ignore[arg-type]
