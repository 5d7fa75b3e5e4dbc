"""Opens the part: one follower of the log that does the actions of rules, and one for each receiver of webhooks."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from synapsed.clock import iso
from synapsed.errors import SynapsedError
from synapsed.interfaces import Directory, FollowerState
from synapsed.kernel import Automated, Kernel, Running
from synapsed.model.event_pattern import fits
from synapsed.parts.rules.rule import RuleConfig
from synapsed.parts.rules.rule_runner import Desktop, Ruler
from synapsed.parts.rules.webhooks import Webhooks


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[Running]:
    """Opens the part, which continues where the last daemon ended."""
    rules = Rules(kernel)
    await rules.ruler.restore()
    rules.reconfigured()
    yield rules


class Rules(Running):
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.webhooks = Webhooks(kernel)
        self.ruler = Ruler(
            control=kernel.control,
            store=kernel.store,
            clock=kernel.clock,
            timers=kernel.timers,
            notify=Desktop(kernel.environ),
            receivers=self.webhooks,
        )

    def started(self) -> None:
        self.ruler.start()

    async def stopping(self) -> None:
        await self.ruler.close()
        await self.webhooks.close()

    def reconfigured(self) -> None:
        self.ruler.reconfigure(self._kernel.config.rule)
        self.webhooks.reconfigure(self._kernel.config.webhooks)

    async def seen(self, agent_id: str) -> None:
        await self.ruler.seen(agent_id)

    async def automated(self) -> list[Automated]:
        directory = self._kernel.control.directory
        return [*(_of_rule(rule, directory) for rule in self._kernel.config.rule), *self._receivers()]

    def _receivers(self) -> Iterator[Automated]:
        states = self.webhooks.states()
        told = {rule.do.webhook for rule in self._kernel.config.rule}
        for name in self._kernel.config.webhooks:
            found = Automated(kind="webhook", name=name)
            problem = _failing(states.get(name))
            if problem:
                yield found.model_copy(update={"state": "wrong", "problem": problem})
            elif name not in told:
                yield found.model_copy(update={"state": "idle", "problem": "no rule uses it"})
            else:
                yield found


def _of_rule(rule: RuleConfig, directory: Directory) -> Automated:
    found = Automated(kind="rule", name=rule.name)
    target = rule.do.send or rule.do.restart
    if target is not None and "{" not in target:
        try:
            directory.resolve(target)
        except SynapsedError as error:
            return found.model_copy(update={"state": "wrong", "problem": f"do.{rule.do.action}: {error.message}"})
    names = (name for view in directory.agents() for name in (view.name, view.id))
    if rule.on.agent != "*" and not any(fits(rule.on.agent, name) for name in names):
        problem = f"on.agent: no agent is called {rule.on.agent!r}"
        return found.model_copy(update={"state": "idle", "problem": problem})
    return found


def _failing(state: FollowerState | None) -> str:
    """Returns, in words, since when and why a receiver is not reached; empty if it is reached."""
    if state is None or (state.state == "active" and state.failing_since is None):
        return ""
    if state.failing_since is None:
        return f"it is not told anything: {state.problem}"
    if state.state == "given_up":
        return f"it failed since {iso(state.failing_since)} and is given up: {state.problem}"
    times = "1 attempt" if state.attempt == 1 else f"{state.attempt} attempts"
    return f"it fails since {iso(state.failing_since)} ({times}): {state.problem}"
