"""What `synapsectl doctor` is told of sinks, and how it says that."""

from collections.abc import Mapping
from typing import Any

from synapsectl.checkup.finding import OK, WRONG
from synapsectl.checkup.home import look_at_automation
from synapsed.clock import SystemClock
from synapsed.kernel import Automated
from synapsed.parts.attention.running import opened
from synapsed.parts.loading import config_model
from tests.fakes.clock import FakeClock
from tests.fakes.control import FakeControl
from tests.support.kernels import kernel_of


async def looked_at(notify: Mapping[str, Any], states: Mapping[str, str]) -> list[Automated]:
    """What the part tells of sinks of this configuration, with what is wrong with each."""
    control = FakeControl()
    kernel = kernel_of(
        control=control,
        store=control.store,
        clock=SystemClock(),
        timers=FakeClock(),
        config=config_model().model_validate({"notify": notify}),
        paths=None,
    )
    async with opened(kernel) as attention:
        attention._notifier.states = lambda: dict(states)  # type: ignore[method-assign]
        return await attention.automated()


async def test_sinks() -> None:
    sinks = {"desk": {"type": "desktop"}, "mail": {"type": "ntfy", "topic": "t" * 20}, "browsers": {"type": "web"}}
    states = {"mail": "no such host", "phone": "its browser has gone"}
    told = await looked_at({"sinks": sinks}, states)
    found = {one.name: (one.state, one.problem) for one in told}
    assert found == {"desk": ("ok", ""), "mail": ("wrong", "no such host"), "phone": ("wrong", "its browser has gone")}
    shown = list(look_at_automation([each.model_dump() for each in told]))
    assert [(each.what, each.status) for each in shown] == [("sinks", OK), ("sink mail", WRONG), ("sink phone", WRONG)]
    assert "synapsectl notify test mail" in shown[1].mend


async def test_nothing_is_there() -> None:
    assert await looked_at({}, {}) == []
    assert list(look_at_automation([])) == []
