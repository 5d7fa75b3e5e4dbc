"""Clients of the simulated daemon, and the persons who sit at its agents.

A client calls the manager in a task of the daemon's life, as over HTTP, and knows nothing when that ends first.
"""

import asyncio
import contextvars
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any

from synapsed.errors import StoreError, SynapsedError
from synapsed.interfaces import Attachment, SendRequest
from synapsed.model.task import Message
from synapsed.supervisor.manager import Manager
from synapsed.terminal.emulated_screen import Screen
from tests.simulation.judge import Judge, Violation
from tests.simulation.loop import SimClock, SimLoop
from tests.simulation.machine import Machine
from tests.simulation.plan import Act, Plan

__all__ = ["Clients", "Gone", "fails"]

ANSWER_S = 200.0
"""Virtual seconds within which each request is answered."""

SLOW_S = 15.0
"""How long a client takes little."""

SETTLES = 20
"""How often it is then looked whether the program rests."""

LOOK_S = 1.5
"""How often persons look whether something is asked."""


class Gone(Exception):
    """The daemon ended before it answered."""


class Clients:
    """What the world has to have for them stands first."""

    plan: Plan
    loop: SimLoop
    clock: SimClock
    judge: Judge
    machine: Machine
    daemon: Any
    ids: dict[int, str]
    rng: Random

    def __init__(self) -> None:
        self._tokens = itertools.count(1)
        self._texts: dict[str, str] = {}

    def trace(self, line: str) -> None:
        raise NotImplementedError

    def fail(self, error: BaseException, cause: BaseException | None = None) -> None:
        raise NotImplementedError

    def later(self, delay: float, call: Callable[..., Any], *args: Any) -> None:
        raise NotImplementedError

    def spawn(self, work: Coroutine[Any, Any, Any], context: contextvars.Context | None = None) -> asyncio.Task[Any]:
        raise NotImplementedError

    async def ask[T](self, call: Callable[[Manager], Awaitable[T]]) -> T:
        """As over HTTP. Raises Gone, SynapsedError."""
        daemon = self.daemon
        if daemon is None or daemon.manager is None:
            await asyncio.sleep(0.05)
            raise Gone
        manager, answer = daemon.manager, self.loop.create_future()
        daemon.asked.add(answer)

        async def work() -> None:
            try:
                result = await call(manager)
            except (SynapsedError, asyncio.CancelledError) as error:
                self.later(0.0002, fails, answer, error)
            else:
                self.later(0.0002, _is, answer, result)

        self.spawn(work(), daemon.context)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await answer  # type: ignore[no-any-return]
        except TimeoutError:
            raise Violation("answered within its bounds", f"a request was not answered in {ANSWER_S:.0f} s") from None
        finally:
            daemon.asked.discard(answer)

    async def insist[T](self, call: Callable[[Manager], Awaitable[T]], *, tries: int = 12) -> T | None:
        """Ask again where the daemon was gone, or could not; None where it refuses."""
        for _ in range(tries):
            try:
                return await self.ask(call)
            except Gone:
                await asyncio.sleep(self.rng.uniform(0.1, 1.0))
            except StoreError:
                await asyncio.sleep(self.rng.uniform(0.5, 2.0))
            except SynapsedError as error:
                self.trace(f"  refused: {error.code} {error.message}")
                return None
        return None

    # --- acts ---

    async def act(self, act: Act) -> None:
        agent = self.ids[act.agent]
        self.trace(f"ACT {act.kind} → {agent} {act.text}")
        causes = self.judge.causes
        match act.kind:
            case "send" | "urgent":
                await self._send(agent, act)
            case "again":
                await self._again(act)
            case "stranger":
                await self._stranger(agent, act)
            case "cancel":
                await self._cancel(act)
            case "interrupt":
                causes[agent, "stop"] += 1
                await self.insist(lambda m: m.terminals.interrupt(agent), tries=2)
            case "restart" | "restart-idle":
                causes[agent, "leave"] += 1
                idle = act.kind == "restart-idle"
                await self.insist(lambda m: m.processes.restart(agent, when_idle=idle), tries=2)
            case "stop":
                causes[agent, "leave"] += 1
                await self.insist(lambda m: m.processes.stop(agent), tries=2)
                await asyncio.sleep(self.rng.uniform(0.1, 3))
                # Until it is taken: what waits for a stopped agent waits as long as a person leaves it stopped.
                await self.insist(lambda m: m.processes.restart(agent), tries=200)
            case "park":
                causes[agent, "leave"] += 1
                await self.insist(lambda m: m.processes.park(agent), tries=1)
            case "type":
                await self._type(agent)
            case "attach":
                await self._attach(agent)

    async def _send(self, agent: str, act: Act) -> None:
        token = f"T{next(self._tokens)}"
        self.judge.agents[token] = agent
        self._texts[token] = f"{token} {act.text}".strip()
        urgent = act.kind == "urgent"
        self.judge.causes[agent, "stop"] += urgent
        request = SendRequest(message=Message.of(self._texts[token]), key=f"key {token}", priority=5 if urgent else 1)
        task = await self.insist(lambda m: m.tasks.send(agent, request))
        if task is None:
            return
        self.trace(f"  {token} is accepted")
        self.judge.told(token, task)
        if self.rng.random() < 0.3:
            again = await self.insist(lambda m: m.tasks.send(agent, request))
            if again is not None:
                self.judge.told(token, again)

    async def _again(self, act: Act) -> None:
        """A client that has lost the answer sends an old message once more."""
        if self._texts:
            token = list(self._texts)[act.number % len(self._texts)]
            agent = self.judge.agents[token]
            request = SendRequest(message=Message.of(self._texts[token]), key=f"key {token}")
            task = await self.insist(lambda m: m.tasks.send(agent, request))
            if task is not None:
                self.judge.told(token, task)

    async def _stranger(self, agent: str, act: Act) -> None:
        """An agent writes to another, which it may not where no model reads that."""
        token = f"T{next(self._tokens)}"
        self.judge.agents[token] = agent
        self._texts[token] = f"{token} from an agent"
        request = SendRequest(message=Message.of(self._texts[token]), key=f"key {token}", of_agent=True)
        task = await self.insist(lambda m: m.tasks.send(agent, request))
        if task is not None:
            if not self.plan.players[act.agent].reads:
                raise Violation("no agent's rights exceeded", f"what an agent wrote was accepted for {agent}")
            self.judge.told(token, task)

    async def _cancel(self, act: Act) -> None:
        known = list(self.judge.accepted.items())
        if known:
            token, task_id = known[act.number % len(known)]
            self.judge.cancels.add(token)
            self.judge.causes[self.judge.agents[token], "cancel"] += 1
            task = await self.insist(lambda m: m.tasks.cancel(task_id), tries=2)
            if task is not None:
                self.trace(f"  {token} is told as {task.status.value}")
                self.judge.told(token, task)

    async def _type(self, agent: str) -> None:
        """A person types a line of their own; or only half of it, and removes it later."""
        self.judge.pressed[agent].add("hi there")
        await self.insist(lambda m: m.terminals.press(agent, ["hi there"]), tries=1)
        await asyncio.sleep(self.rng.uniform(0.2, 3))
        whole = self.rng.random() < 0.5
        self.judge.pressed[agent].add("\r" if whole else "\x15")
        await self.insist(lambda m: m.terminals.press(agent, ["Enter" if whole else "C-u"]))

    async def _attach(self, agent: str) -> None:
        """A person looks on at a terminal that takes little at a time for a while, and then shows what the program
        does."""
        keeper = self.machine.living(agent)
        slow_until = self.clock.monotonic() + SLOW_S
        shown = Screen(80, 24)
        got = self.clock.monotonic()

        async def take(viewer: Attachment) -> None:
            nonlocal got
            async for data in viewer.output():
                shown.feed(data)
                got = self.clock.monotonic()
                if got < slow_until:
                    await asyncio.sleep(1.0)

        async def look_on(manager: Manager) -> None:
            viewer = await manager.terminals.attach(agent, cols=80, rows=24, read_only=True)
            shown.feed(await viewer.redraw())
            taking = asyncio.get_running_loop().create_task(take(viewer))
            await asyncio.sleep(SLOW_S)
            for _ in range(SETTLES):
                end = keeper.end if keeper is not None else 0
                await asyncio.sleep(1.5)
                if keeper is None or taking.done() or keeper is not self.machine.living(agent):
                    break
                if (keeper.end, keeper.size) == (end, (80, 24)) and self.clock.monotonic() - got > 1.0:
                    self.judge.looked_on(keeper, shown)
                    break
            await viewer.close()
            taking.cancel()

        await self.insist(look_on, tries=1)

    async def persons(self) -> None:
        """They answer what is asked."""
        while True:
            await asyncio.sleep(LOOK_S)
            for agent in list(self.ids.values()):
                daemon = self.daemon
                if daemon is None or daemon.manager is None:
                    continue
                known = daemon.manager._agents.get(agent)
                if known is not None and known._held._told:
                    self.trace(f"a person takes out what keeps messages from {agent}")
                    self.judge.pressed[agent].add("\x15")
                    await self.insist(lambda m: m.terminals.press(agent, ["C-u"]), tries=1)  # noqa: B023
                prompt = known.prompt if known is not None else None
                if prompt is None:
                    continue
                key = "y" if prompt.type == "confirmation" else self.rng.choice(("1", "1", "2"))
                self.judge.causes[agent, "answer"] += 1
                self.judge.causes[agent, "stop"] += key == "2"
                self.trace(f"a person answers {key!r} to {prompt.prompt!r} of {agent}")
                await self.insist(lambda m: m.terminals.answer(agent, key, prompt.prompt_id), tries=1)  # noqa: B023

    async def follow(self) -> None:
        """A client reads the log, and goes on where it was when the daemon was gone."""
        after = 0
        while True:
            daemon = self.daemon
            if daemon is None or daemon.manager is None:
                await asyncio.sleep(0.2)
                continue
            manager = daemon.manager
            reading = after

            async def read(manager: Manager) -> list[Any]:
                return await manager.events.read(reading, limit=50)  # noqa: B023

            try:
                events = await self.ask(read)
            except (Gone, SynapsedError):
                await asyncio.sleep(0.2)
                continue
            for event in events:
                self.judge.heard(event, after)
                after = event.id
                self._tell(event)
            if not events:
                await asyncio.sleep(0.3)
            del manager

    def _tell(self, event: Any) -> None:
        data = event.data.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        self.trace(f"  event {event.id} {event.data.type} {event.agent_id} {str(data)[:160]}")


def _is(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def fails(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
