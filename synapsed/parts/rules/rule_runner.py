"""Does the actions of rules, once for each event of the log.

A follower of the log with a durable cursor. The behaviour after a kill in between depends on the action:

- `send`: the task's id follows from rule and event, so that it is made once, however often it is tried;
- `approve`, `deny`: given to the prompt of the event only, which takes one answer;
- `webhook`: the event `ruleFired` is the order; the receiver's own follower delivers it at least once, under one id;
- `notify`, `restart`: recorded first and done then, so once at most.

Events are handled one after the other, and a rule that cannot act reports the reason; no action is tried again. No rule
matches the rules' own reports, and `rules.rule` ends loops that go over agents.

Notices for the person appear on the desktop, if there is one: by `notify-send`, or on macOS by `osascript`.
"""

import asyncio
import shutil
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Literal, Protocol

import structlog

from synapsed.aio import Timers
from synapsed.clock import Clock
from synapsed.errors import NotWaiting, StoreError, SynapsedError
from synapsed.interfaces import Control, FollowerState, NewEvent, SendRequest, Store
from synapsed.model.events import Event, Origin, RuleFired, envelope
from synapsed.model.sender import KEY, Sender, Tier
from synapsed.model.task import Message
from synapsed.parts.rules.rule import (
    DEPTH_MAX,
    FIRED,
    RATE_MAX,
    RATE_S,
    Rate,
    RuleConfig,
    answers,
    depth_of,
    fill,
    is_for,
)
from synapsed.shared.choices import choice
from synapsed.store.follower import DurableFollower

ACT_S = 90.0
"""Seconds that one action may take, since others wait for it."""

SEEN_S = 15.0
"""Most seconds that a caller waits for rules: an answer takes less; an action for another agent may take longer."""

log = structlog.stdlib.get_logger("synapsed.parts.rules")

type Notifier = Callable[[str], Awaitable[None]]
"""Shows a text to the person."""


class Receivers(Protocol):
    """Receivers of webhooks."""

    def problem(self, name: str) -> str:
        """Returns the reason why that receiver gets no webhooks; empty if it gets them."""
        ...


class Ruler(DurableFollower):
    """Runs the rules. Life: `restore`, `reconfigure`, `start`, …, `close`."""

    name = "rules"

    def __init__(
        self,
        *,
        control: Control,
        store: Store,
        clock: Clock,
        timers: Timers,
        notify: Notifier,
        receivers: Receivers,
    ) -> None:
        super().__init__(store, timers)
        self._receivers = receivers
        self._control = control
        self._clock = clock
        self._notify = notify
        self._rules: list[RuleConfig] = []
        self._rates: dict[str, Rate] = {}
        self._done: list[str] = []
        """Rules that have handled the present event."""

    async def restore(self) -> None:
        await super().restore()
        self._done = list(self.state.partly)

    def reconfigure(self, rules: Iterable[RuleConfig]) -> None:
        self._rules = list(rules)

    async def seen(self, agent_id: str) -> None:
        """Returns once the rules have handled all events so far, so that the remaining questions of this agent are for
        a person; at once if no rule answers questions of this agent, and after SEEN_S in any case."""
        names = self._names(agent_id)
        if not any(answers(rule, names) for rule in self._rules):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(SEEN_S):
                await self.reached(self._store.events.last_id)

    async def handle(self, event: Event) -> None:
        kind = event.data.type
        chosen = [rule for rule in self._rules if rule.on.event == kind]
        if chosen:
            data = envelope(event)["data"]
            names = [event.agent_id] if self._is_former(event) else self._names(event.agent_id)
            for rule in chosen:
                if rule.name not in self._done and is_for(rule, kind, data, names):
                    await self._fire(rule, event, data, names)
        self._done = []

    async def pass_over(self, event: Event) -> None:
        self._done = []

    async def _fire(self, rule: RuleConfig, event: Event, data: dict[str, Any], names: list[str]) -> None:
        depth = await self._depth(event)
        if rule.do.action not in ("notify", "webhook") and (problem := self._forbids(event, depth)):
            await self._told(rule, event, outcome="held", problem=problem)
            return
        rate = self._rates.setdefault(rule.name, Rate())
        if not rate.allows(self._clock.monotonic()):
            if rate.tell():
                problem = f"it acted {RATE_MAX} times within {RATE_S:g} s: it is held back until that is over"
                await self._told(rule, event, outcome="held", problem=problem)
            return
        name = names[0] if names else event.agent_id
        if rule.do.webhook is not None and (problem := self._receivers.problem(rule.do.webhook)):
            await self._told(rule, event, outcome="failed", problem=f"webhook {rule.do.webhook}: {problem}")
            return
        if rule.do.action in ("notify", "restart", "webhook"):
            text = fill(rule.do.notify or "", event.data.type, data, agent=name, task=event.task_id)[0]
            await self._told(rule, event, outcome="done", text=text)
        sent, problem = None, ""
        try:
            async with asyncio.timeout(ACT_S):
                sent = await self._act(rule, event, data, name, depth)
        except TimeoutError:
            problem = f"it took more than {ACT_S:g} s"
        except StoreError:
            raise
        except (SynapsedError, ValueError, OSError) as error:
            problem = error.message if isinstance(error, SynapsedError) else str(error)
        if problem or rule.do.action in ("approve", "deny", "send"):
            await self._told(rule, event, outcome="failed" if problem else "done", sent=sent, problem=problem)

    def _forbids(self, event: Event, depth: int) -> str:
        """Returns the reason why the rule may not act on an agent; empty if it may."""
        if self._is_former(event):
            return f"the {event.agent_id} that it is of was removed, and another agent has that id"
        return f"{depth} rules stand behind this task already: a loop ends here" if depth >= DEPTH_MAX else ""

    async def _act(self, rule: RuleConfig, event: Event, data: dict[str, Any], name: str, depth: int) -> str | None:
        """Does the action; returns the task that was sent."""
        do = rule.do
        if do.notify is not None:
            await self._notify(fill(do.notify, event.data.type, data, agent=name, task=event.task_id)[0])
        elif do.action in ("approve", "deny"):
            await self._answer(rule, event, data, accept=do.action == "approve")
        elif do.restart is not None:
            target = fill(do.restart, event.data.type, data, agent=name, task=event.task_id)[0]
            await self._control.processes.restart(self._control.directory.resolve(target))
        elif do.send is not None:
            return await self._send(rule, event, data, name, depth)
        return None

    async def _answer(self, rule: RuleConfig, event: Event, data: dict[str, Any], *, accept: bool) -> None:
        prompt = data.get("prompt")
        if not isinstance(prompt, dict):
            raise NotWaiting("the event asks nothing")
        text, origin = choice(prompt, accept=accept), Origin("rule", who=rule.name)
        if event.task_id is not None:
            await self._control.tasks.provide_input(event.task_id, text, prompt["prompt_id"], origin)
        else:
            await self._control.terminals.answer(event.agent_id, text, prompt["prompt_id"], origin)

    async def _send(self, rule: RuleConfig, event: Event, data: dict[str, Any], name: str, depth: int) -> str:
        kind, task = event.data.type, event.task_id
        target = fill(rule.do.send or "", kind, data, agent=name, task=task)[0]
        text, told = fill(rule.do.message or "", kind, data, agent=name, task=task)
        # With words of others in it, the message is not a person's: it gets a mark for models, and is not given to
        # shells.
        sender = Sender(id=f"rule-{rule.name}", tier=Tier.CLAIMED if told else Tier.PERSON, type="rule")
        request = SendRequest(
            message=Message.of(text),
            metadata={KEY: sender.metadata()},
            key=f"rule\0{rule.name}\0{event.id}",
            marks={FIRED: {"rule": rule.name, "event": event.id, "depth": depth + 1}},
            of_agent=told,
        )
        return (await self._control.tasks.send(self._control.directory.resolve(target), request)).id

    async def _depth(self, event: Event) -> int:
        task = None if event.task_id is None else await self._store.task(event.task_id)
        return 0 if task is None else depth_of(task.metadata)

    async def _told(
        self,
        rule: RuleConfig,
        event: Event,
        *,
        outcome: Literal["done", "failed", "held"],
        sent: str | None = None,
        text: str = "",
        problem: str = "",
    ) -> None:
        """Makes durable that this rule has handled the event, with a report of the action."""
        fired = RuleFired(
            rule=rule.name,
            cause=event.id,
            cause_event=event.data.type,
            action=rule.do.action,  # type: ignore[arg-type]  # one of them, by the rule's validation
            outcome=outcome,
            sent=sent,
            webhook=rule.do.webhook,
            text=text,
            problem=problem,
        )
        self._done = [*self._done, rule.name] if rule.name not in self._done else self._done
        state = FollowerState(cursor=event.id - 1, partly=tuple(self._done))
        whose = "" if self._is_former(event) else event.agent_id
        told = NewEvent(whose, fired, event.task_id, event.context_id)
        await self.keep_state(state, events=[told])
        log.info("rule", rule=rule.name, cause=event.id, action=rule.do.action, outcome=outcome, problem=problem)

    def _is_former(self, event: Event) -> bool:
        """Returns True if its agent was removed, and another has the id."""
        return event.id <= self._store.events.born(event.agent_id)

    def _names(self, agent_id: str) -> list[str]:
        """Returns the names of the agent."""
        if not agent_id:
            return []
        try:
            return [self._control.directory.view(agent_id).name, agent_id]
        except SynapsedError:
            return [agent_id]


PATIENCE_S = 10.0


class Desktop:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)

    async def __call__(self, text: str) -> None:
        """Shows the text. Does nothing if no program for that is found: the log and the event have the text."""
        command = self._command(text)
        if command is None:
            return
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env=self._environ
            )
            async with asyncio.timeout(PATIENCE_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        except OSError as error:
            log.info("the desktop was not told", error=str(error))

    def _command(self, text: str) -> list[str] | None:
        path = self._environ.get("PATH")
        if sys.platform == "darwin" and (program := shutil.which("osascript", path=path)) is not None:
            script = 'on run argv\ndisplay notification (item 1 of argv) with title "synapsed"\nend run'
            return [program, "-e", script, text]
        if (program := shutil.which("notify-send", path=path)) is not None:
            return [program, "--app-name=synapsed", "--", "synapsed", text]
        return None
