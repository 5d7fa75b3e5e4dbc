"""Notifies a person: sends each sink one notice of each item, and takes the notice back when the item is over.

A sink's work is always the difference between the open items and the notices that it has got: there is no queue that
could be full, and an item that is over before a sink can be reached is never sent. Each sink has a task of its own, so
that a failing sink does not delay others; it is tried again with pauses that grow, and reported in the log of events
and by `doctor`. The browser of each device that has turned notifications on is a sink like those of the configuration.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Final, Literal

import structlog
from pydantic import BaseModel, ConfigDict

from synapsed.aio import TaskSet, Timers, cancel_all, pause
from synapsed.clock import Clock, backoff, iso
from synapsed.errors import InvalidRequest, NotInInbox, StoreError, UnknownSink
from synapsed.interfaces import STORE_RETRY_S, Control, NewEvent, Store, Subscriber
from synapsed.model.events import AgentAlert, AttentionItem, Origin
from synapsed.model.masking import mask_text
from synapsed.parts.attention import notification_policy
from synapsed.parts.attention.browsers import PREFIX, Browsers
from synapsed.parts.attention.inbox import PersonInbox
from synapsed.parts.attention.notify import NotifyConfig, NtfySink, Sink, SinkRule, WebSink
from synapsed.parts.attention.sent_notices import Mark, Marks, digest, new_token
from synapsed.parts.attention.sinks.base import Buttons, SinkPort, Untold
from synapsed.shared.choices import choice

LOOK_EVERY_S: Final = 0.5
"""Seconds between two looks while an item waits for its time: quiet hours, a person who is there, a rule's answer."""

RETRY_S: Final = 1.0
RETRY_MAX_S: Final = 60.0
ACT_S: Final = 60.0
"""Seconds for a sink to take one notice."""

FAILING_AFTER: Final = 3
"""Failures in a row after which there is an alert."""

REFUSALS: Final = 5
"""Refusals to take a notice back after which it is given up."""

WITHDRAWALS: Final = 500
"""Attempts to take a notice back at an unreachable sink: more than eight hours."""

FAILING: Final = "NOTIFY_FAILING"

log = structlog.stdlib.get_logger("synapsed.notify")


class SinkTested(BaseModel):
    """Answer of a sink of `[notify]` to a test: `detail` is for people."""

    model_config = ConfigDict(extra="forbid")

    sink: str
    type: Literal["desktop", "webhook", "ntfy", "mail", "web"]
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyMeans:
    inbox: PersonInbox
    control: Control
    store: Store
    idle: Callable[[], float]
    """Returns the seconds since the person did something."""
    make: Callable[[Sink], Awaitable[SinkPort]]
    clock: Clock
    timers: Timers
    zone: Callable[[], tzinfo]
    browsers: Browsers | None = None
    """Browsers to notify; None: no browser is notified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A sink that is to be notified. `browser`: the device's browser, if it is one; `sink` is its configuration."""

    name: str
    sink: Sink
    rule: SinkRule
    contact: str | None = None
    browser: Subscriber | None = None

    @property
    def label(self) -> str:
        """Name of the sink for people."""
        return self.name if self.browser is None else f"{self.browser.name} ({self.browser.id})"


class Notifier:
    """Notifier of all sinks. First call `reconfigure`, once the agents are there, and at the end `close`."""

    def __init__(self, means: NotifyMeans) -> None:
        self._means = means
        self._config = NotifyConfig()
        self._running: dict[str, tuple[_Teller, asyncio.Task[None]]] = {}
        self._live = False
        self._forgetting = TaskSet()
        if means.browsers is not None:
            means.browsers.on_change(self._look)

    @property
    def browsers(self) -> Browsers | None:
        return self._means.browsers

    def reconfigure(self, config: NotifyConfig) -> None:
        """Takes the sinks of `config`. A sink whose configuration or secrets changed begins again, and still knows its
        notices."""
        self._live, self._config = True, config
        for name, (_, task) in list(self._running.items()):
            if task.done():
                del self._running[name]
        self._arrange()

    def _look(self) -> None:
        """Looks at the browsers again after some were turned on or off."""
        if self._live:
            self._arrange()

    def _arrange(self) -> None:
        wanted = {one.name: one for one in self._wanted()}
        for name, (teller, task) in list(self._running.items()):
            if wanted.get(name) != teller.wanted:
                task.cancel()
                del self._running[name]
                if name not in wanted and teller.wanted.browser is not None:
                    self._forgetting.spawn(self._forget(name, teller, task))
        for name, one in wanted.items():
            if name not in self._running:
                teller = _Teller(one, self._means)
                running = asyncio.get_running_loop().create_task(teller.run(), name=f"sink {name}")
                self._running[name] = (teller, running)

    def _wanted(self) -> list[_Wanted]:
        config, browsers = self._config, self._means.browsers
        wanted = [
            _Wanted(name=name, sink=sink, rule=config.rule(sink))
            for name, sink in config.sinks.items()
            if not isinstance(sink, WebSink)
        ]
        for browser in () if browsers is None else browsers.all():
            sink = config.for_browser(browser.name, browser.id)
            name, rule = f"{PREFIX}{browser.id}", config.rule(sink)
            wanted.append(_Wanted(name=name, sink=sink, rule=rule, contact=config.contact, browser=browser))
        return wanted

    async def _forget(self, name: str, teller: "_Teller", task: asyncio.Task[None]) -> None:
        """Forgets the marks of a browser that was turned off: if it is turned on again, it begins with the items that
        are open then."""
        await asyncio.wait({task})
        if name not in self._running:
            await teller.marks.forget()

    def states(self) -> dict[str, str]:
        """Returns the problem of each sink, by name; empty for a sink that works. Browsers have their names for
        people."""
        return {teller.wanted.label: teller.problem for teller, _ in self._running.values()}

    async def test(self, name: str | None) -> list[SinkTested]:
        """Sends a test to a sink, or to all; for one of the kind `web` to its browsers. Raises UnknownSink."""
        wanted, sinks = self._wanted(), self._config.sinks
        if name is None:
            chosen = wanted
        else:
            labelled = [one for one in wanted if name in (one.name, one.label)]
            chosen = labelled or [one for one in wanted if one.browser is not None and one.sink is sinks.get(name)]
            if not chosen and name in sinks:
                return [SinkTested(sink=name, type="web", ok=False, detail="no browser has notifications on")]
            if not chosen:
                known = ", ".join(one.label for one in wanted) or "none; write [notify.sinks.NAME] in config.toml"
                raise UnknownSink(f"[notify] has no sink {name[:64]!r}; there are {known}", sink=name[:64])
        return list(await asyncio.gather(*(self._test(one) for one in chosen)))

    async def answer(self, token: str) -> str:
        """Answers the item to which a pressed button belongs, and returns its id. Raises NotInInbox for an unknown or
        expired token, and the errors of the answer."""
        now = self._means.clock.wall()
        for name, (teller, _) in list(self._running.items()):
            if (found := await teller.marks.take(token, now=now)) is not None:
                item_id, yes = found
                await self._answer(item_id, yes, sink=name)
                return item_id
        raise NotInInbox("this button is not valid (any more): the question may be answered already")

    async def close(self) -> None:
        """Stops all sinks. May be called again."""
        self._live = False
        tasks = [task for _, task in self._running.values()]
        self._running = {}
        await cancel_all(tasks)
        await self._forgetting.finish()

    async def _answer(self, item_id: str, yes: bool, *, sink: str) -> None:
        item = self._means.inbox.get(item_id)
        if item is None or item.prompt is None:
            raise NotInInbox("this is answered already, or not asked any more", id=item_id)
        prompt, origin = item.prompt, Origin("person", who=f"notify:{sink}", where="http")
        text = choice(prompt.model_dump(), accept=yes)
        control = self._means.control
        if item.task_id is not None:
            await control.tasks.provide_input(item.task_id, text, prompt.prompt_id, origin)
        else:
            await control.terminals.answer(item.agent_id, text, prompt.prompt_id, origin)
        log.info("answered by a button", sink=sink, item=item_id, yes=yes)

    async def _test(self, wanted: _Wanted) -> SinkTested:
        told = SinkTested(sink=wanted.label, type=wanted.sink.type, ok=True, detail="told")
        port: SinkPort | None = None
        try:
            port = await _port(wanted, self._means)
            await _act(port.tell(notification_policy.trial(self._means.clock.wall()), None))
        except InvalidRequest as error:
            told.ok, told.detail = False, error.message
        except Untold as error:
            told.ok, told.detail = False, error.problem
        finally:
            if port is not None:
                await port.close()
        return told


class _Teller:
    """Task that notifies one sink."""

    def __init__(self, wanted: _Wanted, means: NotifyMeans) -> None:
        self.wanted = wanted
        self._name = wanted.label
        self._rule = wanted.rule
        self._means = means
        self.marks = Marks(wanted.name, means.store)
        self.problem = ""
        self._failures = 0
        self._tried: dict[str, int] = {}
        """Failed attempts to take a notice back, by item."""
        self._in_vain = 0
        """Failures in a row."""
        self._withdraws_at = float("-inf")
        """Monotonic seconds before which no notice is taken back: the sink is away, and new notices must not wait for
        that."""
        self._last = ""
        """The item that failed last; it is tried last."""

    async def run(self) -> None:
        port: SinkPort | None = None
        try:
            while True:
                try:
                    port = port or await _port(self.wanted, self._means)
                    await self.marks.restore(once=port.once, sure=port.sure)
                    await self._tell(port)
                except InvalidRequest as error:
                    await self._failed(error.message, final=True)
                    return
                except StoreError as error:
                    if error.details.get("reason") == "closed":
                        return
                    log.warning("the store refused", sink=self._name, error=error.message)
                    await pause(self._means.timers, STORE_RETRY_S)
                except Exception as error:  # a defect: the sink is tried again, and does not end without a word
                    log.exception("a sink has a fault", sink=self._name)
                    self.problem = self.problem or f"a fault within synapsed ({type(error).__name__})"
                    await pause(self._means.timers, RETRY_MAX_S)
        finally:
            if port is not None:
                await port.close()

    async def _tell(self, port: SinkPort) -> None:
        """Notifies the sink until it is cancelled."""
        while True:
            moved = self._means.inbox.moved
            try:
                waits = await self._round(port, moved)
            except Untold as error:
                await self._failed(error.problem)
                delay = backoff(self._failures - 1, initial=RETRY_S, factor=2.0, maximum=RETRY_MAX_S)
                await pause(self._means.timers, max(delay, error.after or 0.0))
                continue
            await self._wait(moved, LOOK_EVERY_S if waits else None)

    async def _wait(self, moved: asyncio.Event, seconds: float | None) -> None:
        """Returns once something changes in the inbox, or the time is over."""
        waiting: list[asyncio.Future[Any]] = [asyncio.ensure_future(moved.wait())]
        if seconds is not None:
            waiting.append(asyncio.ensure_future(pause(self._means.timers, seconds)))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    async def _round(self, port: SinkPort, moved: asyncio.Event) -> bool:
        """Does the work that is due now, until the inbox has `moved`; returns True if an item waits for its time.
        Raises Untold."""
        inbox = self._means.inbox
        items = {item.id: item for item in inbox.items()}
        waits = False
        for item_id, mark in sorted(self.marks.gone(items), key=lambda gone: self._tried.get(gone[0], 0)):
            if self._means.clock.monotonic() < self._withdraws_at or not await self._withdrawn(port, item_id, mark):
                waits = True
                break
        for item in sorted(items.values(), key=lambda item: item.id == self._last):
            if item.id in self.marks:
                continue
            match notification_policy.verdict(item, self._rule, self._now(item)):
                case "tell":
                    self._last = item.id
                    await self._tell_of(port, item)
                    if moved.is_set():  # a sink may be slow, and the next item be over by now
                        return True
                case "wait":
                    waits = True
                case _:
                    pass
        return waits

    async def _tell_of(self, port: SinkPort, item: AttentionItem) -> None:
        notice = notification_policy.notice(_masked(item), self._rule.content)
        mark, buttons = self._buttons(notice)
        if port.once or port.sure or buttons is not None:  # a button may be pressed before `tell` returns
            await self.marks.put(item.id, mark)
        try:
            ref = await _act(port.tell(notice, buttons))
        except Untold:
            await self.marks.drop(item.id)
            raise
        await self.marks.told(item.id, mark, ref)
        await self._worked()
        log.info("a person is told", sink=self._name, item=item.id, kind=item.kind, agent=item.agent)

    def _buttons(self, notice: notification_policy.Notice) -> tuple[Mark, Buttons | None]:
        sink = self.wanted.sink
        if not isinstance(sink, NtfySink) or sink.answers is None or notice.answers is None:
            return Mark(state="telling"), None
        approve, deny = new_token(), new_token()
        expires = self._means.clock.wall() + sink.answer_within
        mark = Mark(state="telling", approve=digest(approve), deny=digest(deny), expires=expires)
        return mark, Buttons(f"{sink.answers}/answers/{approve}", f"{sink.answers}/answers/{deny}")

    async def _withdrawn(self, port: SinkPort, item_id: str, mark: Mark) -> bool:
        """Takes a notice back; returns False if it is to be tried once more. Its tokens are made invalid before, so
        that no button works."""
        if mark.expires:
            await self.marks.spend(item_id)
        try:
            await _act(port.withdraw(item_id, mark.ref, self._means.inbox.outcome(item_id)))
        except Untold as error:
            self._in_vain += 1
            delay = backoff(self._in_vain - 1, initial=RETRY_S, factor=2.0, maximum=RETRY_MAX_S)
            self._withdraws_at = self._means.clock.monotonic() + max(delay, error.after or 0.0)
            self._tried[item_id] = self._tried.get(item_id, 0) + 1
            if self._tried[item_id] < (REFUSALS if error.refused else WITHDRAWALS):
                return False
            log.info("a notice could not be taken back", sink=self._name, item=item_id, why=str(error))
        else:
            await self._worked()
        self._in_vain = 0
        self._tried.pop(item_id, None)
        await self.marks.drop(item_id)
        return True

    def _now(self, item: AttentionItem) -> notification_policy.Now:
        wall = self._means.clock.wall()
        return notification_policy.Now(
            open_s=wall - datetime.fromisoformat(item.since).timestamp(),
            idle_s=self._means.idle(),
            local=datetime.fromtimestamp(wall, self._means.zone()),
        )

    async def _worked(self) -> None:
        told, self._failures, self.problem = self._failures >= FAILING_AFTER, 0, ""
        if told:
            await self._alert("over", f"the sink {self._name} is told again")

    async def _failed(self, problem: str, *, final: bool = False) -> None:
        self._failures += 1
        since = "" if final else f"it fails since {iso(self._means.clock.wall())}: "
        self.problem = f"{since}{problem}" if self._failures == 1 or not self.problem else self.problem
        log.warning("a sink cannot be told", sink=self._name, why=problem, failures=self._failures)
        if final or self._failures == FAILING_AFTER:
            await self._alert("begins", f"the sink {self._name} is not told: {problem}")

    async def _alert(self, state: str, message: str) -> None:
        alert = AgentAlert(code=FAILING, message=message, details={"state": state, "sink": self._name})
        await self._means.store.commit(events=[NewEvent("", alert)])


async def _port(wanted: _Wanted, means: NotifyMeans) -> SinkPort:
    """Returns the port of a sink. Raises InvalidRequest."""
    if wanted.browser is not None and means.browsers is not None:
        return await means.browsers.port(wanted.browser, wanted.contact)
    return await means.make(wanted.sink)


async def _act[T](call: Awaitable[T]) -> T:
    """Awaits a call of a sink and turns each failure into Untold, which ends neither the sink nor its other notices.
    Raises Untold."""
    try:
        async with asyncio.timeout(ACT_S):
            return await call
    except Untold:
        raise
    except TimeoutError:
        raise Untold(f"it took more than {ACT_S:g} s") from None
    except Exception as error:  # noqa: BLE001 - its own words may have the notice in them
        raise Untold(f"a fault within synapsed ({type(error).__name__})") from None


def _masked(item: AttentionItem) -> AttentionItem:
    """Returns the item with all likely secrets masked."""
    command = mask_text(item.command) if item.command is not None else None
    diff = mask_text(item.diff) if item.diff is not None else None
    options = [option.model_copy(update={"label": mask_text(option.label)}) for option in item.options]
    told = {"question": mask_text(item.question), "command": command, "diff": diff, "options": options}
    return item.model_copy(update=told)
