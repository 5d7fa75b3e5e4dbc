"""The tool and other hosts, where the part is not installed."""

from typing import Any, cast

import pytest

from synapsectl import mcp_server, reach
from synapsectl.errors import NotInstalled


def test_another_host_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "is_installed", lambda _: False)
    with pytest.raises(NotInstalled, match="'bob@box' is on another host: the part elsewhere reaches it"):
        reach.reach(cast("Any", None), "bob@box")
    assert reach.reach(cast("Any", None), "bob") == (None, "bob")


class Asked:
    """A daemon without agents, which is asked nothing of the part's."""

    def get(self, path: str, query: Any = None) -> Any:
        return {"/whoami": {"agent": "synapse-fake-8190"}, "/agents": []}[path]


def test_an_agents_tools_list_those_of_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "is_installed", lambda _: False)
    assert mcp_server.Colleagues(cast("Any", Asked())).list_agents({}) == []
