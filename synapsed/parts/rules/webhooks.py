"""Sends the webhooks that rules order: one follower of the log for each receiver, with a durable cursor.

The order is the event `ruleFired`; the matched event is sent, signed by Standard Webhooks under an id that follows from
rule and event: the receiver recognises a repetition after a kill or a lost answer. Addresses are screened and failures
tried again as for push notifications (`synapsed.outgoing`); a receiver that is given up is reported once; when the
configuration is read again it begins with new events.
"""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import structlog

from synapsed.aio import cancel_all, pause
from synapsed.clock import iso
from synapsed.errors import InvalidRequest
from synapsed.interfaces import EventFilter, FollowerState, NewEvent
from synapsed.kernel import Kernel
from synapsed.model.events import AgentAlert, Event, RuleFired, envelope
from synapsed.outgoing.poster import Poster, Receipt
from synapsed.parts.rules.rule import WebhookConfig
from synapsed.store.follower import Changes, DurableFollower, Ended

GIVEN_UP = "WEBHOOK_GIVEN_UP"
"""Code of the alert."""

log = structlog.stdlib.get_logger("synapsed.webhooks")


class Webhooks:
    """The receivers. Life: `reconfigure`, …, `close`."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._poster = kernel.outgoing.poster()
        self._running: dict[str, tuple[_Receiver, asyncio.Task[None]]] = {}

    def reconfigure(self, webhooks: Mapping[str, WebhookConfig]) -> None:
        """Sets the receivers. One that changed, or was given up, begins again."""
        for name, (receiver, task) in list(self._running.items()):
            if webhooks.get(name) != receiver.config or task.done():
                task.cancel()
                del self._running[name]
        for name, config in webhooks.items():
            if name not in self._running:
                receiver = _Receiver(name, config, self._kernel, self._poster)
                self._running[name] = (receiver, asyncio.get_running_loop().create_task(receiver.run()))

    def problem(self, name: str) -> str:
        """Implements `rule_runner.Receivers`: the reason why a receiver is given up, or could never be notified."""
        found = self._running.get(name)
        if found is None or found[0].state.state != "given_up":
            return ""
        return f"it is not told anything: {found[0].state.problem}"

    def states(self) -> dict[str, FollowerState]:
        """Returns the progress of each receiver, by name, with its failures since the last success."""
        return {name: receiver.state for name, (receiver, _) in self._running.items()}

    async def close(self) -> None:
        """Ends the deliveries; the next daemon repeats those under way. May be called again."""
        await cancel_all(task for _, task in self._running.values())
        await self._poster.close()


class _Receiver(DurableFollower):
    wants = EventFilter(types=frozenset({"ruleFired"}))

    def __init__(self, name: str, config: WebhookConfig, kernel: Kernel, poster: Poster) -> None:
        super().__init__(kernel.store, kernel.timers)
        self.name = f"webhook:{name}"
        self._webhook = name
        self.config = config
        self._kernel = kernel
        self._poster = poster
        self._key = b""
        self._where = ""

    async def run(self) -> None:
        try:
            keys = self._kernel.outgoing.secrets
            self._key = await asyncio.to_thread(
                keys.signing_key, file=self.config.secret_file, env=self.config.secret_env
            )
            self._where = await self._poster.check(self.config.url)
        except InvalidRequest as error:
            self.state = self.state.model_copy(update={"state": "given_up", "problem": error.message})
            await self._alert(f"webhook {self._webhook} is not told anything: {error.message}")
            return
        await super().run()

    async def restore(self) -> None:
        """Sets the cursor; a new receiver, or one that was given up, begins with the next event."""
        await super().restore()
        if self.state.state == "given_up":
            self.cursor = self._store.events.last_id
            await self.keep_state(FollowerState(cursor=self.cursor))

    async def handle(self, event: Event) -> Changes | None:
        """Delivers the event, until the receiver has taken it or is given up."""
        fired, outgoing = event.data, self._kernel.outgoing
        if not isinstance(fired, RuleFired) or fired.webhook != self._webhook or fired.outcome != "done":
            return None
        while True:
            await pause(self._kernel.timers, outgoing.wait(self.state))
            receipt = await self._post(event, fired)
            if receipt.accepted:
                return Changes()
            after = outgoing.failed(self.state, receipt)
            log.info(
                "webhook failed", webhook=self._webhook, to=self._where, attempt=after.attempt, why=receipt.problem
            )
            await self.keep_state(after.model_copy(update={"problem": receipt.problem}))
            if after.state == "given_up":
                problem = f"webhook {self._webhook} ({self._where}) is not told any more: {receipt.problem}"
                failed = fired.model_copy(update={"outcome": "failed", "problem": problem})
                await self._alert(problem, NewEvent(event.agent_id, failed, event.task_id, event.context_id))
                raise Ended

    async def _post(self, event: Event, fired: RuleFired) -> Receipt:
        """Sends the webhook once. The matched event may be large, so it is read for this attempt only, once there is
        memory for it."""
        reading = self._store.events.follow(fired.cause - 1, upto=fired.cause, reserved=True)
        async with aclosing(reading) as found:
            body = await self._kernel.texts.whole(_document(fired, await anext(found, None), at=event.at))
            webhook_id, at = f"{fired.rule}_{fired.cause}", int(self._kernel.clock.wall())
            headers = await asyncio.to_thread(
                self._kernel.outgoing.headers, self._key, webhook_id=webhook_id, at=at, body=body.data
            )
            return await self._poster.post(self.config.url, [body.data], headers)

    async def _alert(self, message: str, *besides: NewEvent) -> None:
        log.warning("webhook", webhook=self._webhook, why=message)
        alert = AgentAlert(code=GIVEN_UP, message=message, details={"state": "happened", "webhook": self._webhook})
        await self._store.commit(events=[NewEvent("", alert), *besides])


def _document(fired: RuleFired, cause: Event | None, *, at: float) -> dict[str, Any]:
    """Returns `type`, `timestamp`, `data`, as Standard Webhooks recommends; `data` is the event's envelope, and null if
    the event is not kept any more."""
    return {
        "type": fired.cause_event,
        "timestamp": iso(cause.at if cause is not None else at),
        "rule": fired.rule,
        "data": None if cause is None else envelope(cause),
    }
