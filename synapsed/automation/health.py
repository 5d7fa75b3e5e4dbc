"""What keeps rules, webhooks and sinks from their work, as `synapsectl doctor` tells it."""

from collections.abc import Iterator

from synapsed.attention.notify import WebSink
from synapsed.automation.notifier import Notifier
from synapsed.clock import iso
from synapsed.config import Config
from synapsed.errors import SynapsedError
from synapsed.interfaces import Directory
from synapsed.kernel import Automated
from synapsed.model.event_pattern import fits
from synapsed.model.follower import FollowerState
from synapsed.parts.rules.rule import RuleConfig
from synapsed.parts.rules.webhooks import Webhooks


class Health:
    """`config` is what counts now."""

    def __init__(
        self,
        directory: Directory,
        *,
        config: Config | None = None,
        webhooks: Webhooks | None = None,
        notifier: Notifier | None = None,
    ) -> None:
        self._directory = directory
        self._webhooks = webhooks
        self._notifier = notifier
        self.config = config or Config()

    def look(self) -> list[Automated]:
        """Each of them."""
        return [*map(self._rule, self.config.rule), *self._receivers(), *self._sinks()]

    def _rule(self, rule: RuleConfig) -> Automated:
        found = Automated(kind="rule", name=rule.name)
        target = rule.do.send or rule.do.restart
        if target is not None and "{" not in target and (problem := self._unknown(target)):
            return found.model_copy(update={"state": "wrong", "problem": f"do.{rule.do.action}: {problem}"})
        names = (name for view in self._directory.agents() for name in (view.name, view.id))
        if rule.on.agent != "*" and not any(fits(rule.on.agent, name) for name in names):
            problem = f"on.agent: no agent is called {rule.on.agent!r}"
            return found.model_copy(update={"state": "idle", "problem": problem})
        return found

    def _receivers(self) -> Iterator[Automated]:
        states = {} if self._webhooks is None else self._webhooks.states()
        told = {rule.do.webhook for rule in self.config.rule}
        for name in self.config.webhooks:
            found = Automated(kind="webhook", name=name)
            problem = _failing(states.get(name))
            if problem:
                yield found.model_copy(update={"state": "wrong", "problem": problem})
            elif name not in told:
                yield found.model_copy(update={"state": "idle", "problem": "no rule tells it anything"})
            else:
                yield found

    def _sinks(self) -> Iterator[Automated]:
        problems = {} if self._notifier is None else self._notifier.states()
        of_browsers = {name for name, sink in self.config.notify.sinks.items() if isinstance(sink, WebSink)}
        for name in {**self.config.notify.sinks, **problems}:
            if name in of_browsers:
                continue
            problem = problems.get(name, "")
            yield Automated(kind="sink", name=name, state="wrong" if problem else "ok", problem=problem)

    def _unknown(self, address: str) -> str:
        """Why the address means no agent, empty if it means one."""
        try:
            self._directory.resolve(address)
        except SynapsedError as error:
            return error.message
        return ""


def _failing(state: FollowerState | None) -> str:
    """Since when a receiver is not reached, and why; empty if it is."""
    if state is None or (state.state == "active" and state.failing_since is None):
        return ""
    if state.failing_since is None:
        return f"it is not told anything: {state.problem}"
    if state.state == "given_up":
        return f"it failed since {iso(state.failing_since)} and is given up: {state.problem}"
    times = "1 attempt" if state.attempt == 1 else f"{state.attempt} attempts"
    return f"it fails since {iso(state.failing_since)} ({times}): {state.problem}"
