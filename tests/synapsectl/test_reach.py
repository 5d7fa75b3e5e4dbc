"""Where a question is answered whose agent is on another host."""

import io
from typing import Any

import pytest

from synapsectl import reach
from synapsectl.context import CommandContext
from synapsectl.errors import ApiError
from synapsectl.output import CommandOutput
from synapsectl.prompts import WhoAsks
from synapsectl.reach import asks_at


class HostDaemon:
    """A daemon with a task that was sent to codex@box, where a question waits; `state` is that of the host."""

    def __init__(self, state: str | None) -> None:
        self.state = state

    def get(self, path: str, **_: Any) -> Any:
        assert path == "/hosts/box"
        if self.state is None:
            raise ApiError("UNKNOWN_AGENT", "there is no host box")
        return {"state": self.state, "error": "no route to host", "local": "/run/box.sock"}


@pytest.fixture
def ctx(monkeypatch: pytest.MonkeyPatch) -> CommandContext:
    who = WhoAsks("codex@box", "codex@box", None, {"prompt_id": "p1"})
    monkeypatch.setattr(reach, "asked", lambda client, name: who)
    return CommandContext({}, CommandOutput(io.StringIO(), io.StringIO(), columns=None))


def test_of_a_host_of_a_fleet_it_goes_to_the_task_here(ctx: CommandContext) -> None:
    ctx.client = HostDaemon(None)  # type: ignore[assignment]
    there, name, host = asks_at(ctx, "codex@box")
    assert (there is ctx, name, host) == (True, "codex@box", "")


def test_while_ssh_does_not_reach_a_host_it_goes_nowhere(ctx: CommandContext) -> None:
    ctx.client = HostDaemon("away")  # type: ignore[assignment]
    with pytest.raises(ApiError) as refused:
        asks_at(ctx, "codex@box")
    assert refused.value.code == "NOT_READY"
