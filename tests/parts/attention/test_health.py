"""What `synapsectl doctor` is told of sinks, and how it says that."""

from typing import cast

from synapsectl.checkup.automation import look_at_automation
from synapsectl.checkup.finding import OK, WRONG
from synapsed.config.schema import Config
from synapsed.parts.attention.health import Health
from synapsed.parts.attention.notifier import Notifier


class Problems:
    def states(self) -> dict[str, str]:
        return {"mail": "no such host", "phone": "its browser has gone"}


def test_sinks() -> None:
    sinks = {"desk": {"type": "desktop"}, "mail": {"type": "ntfy", "topic": "t" * 20}, "browsers": {"type": "web"}}
    health = Health(cast("Notifier", Problems()), config=Config.model_validate({"notify": {"sinks": sinks}}))
    found = {one.name: (one.state, one.problem) for one in health.look()}
    assert found == {"desk": ("ok", ""), "mail": ("wrong", "no such host"), "phone": ("wrong", "its browser has gone")}
    shown = list(look_at_automation([each.model_dump() for each in health.look()]))
    assert [(each.what, each.status) for each in shown] == [("sinks", OK), ("sink mail", WRONG), ("sink phone", WRONG)]
    assert "synapsectl notify test mail" in shown[1].mend


def test_nothing_is_there() -> None:
    assert Health().look() == []
    assert list(look_at_automation([])) == []
