"""A program of the simulated machine that takes messages over a server of its own, and the channel to that server.

The server takes whatever it is given, also what it was given before: only whoever asks by the key first gives a message
once. A request is on its way also when the daemon that made it is gone. With the trick `drops` a part of the requests
ends with the connection, before or behind the server's work. With the trick `steers` a person's Enter may come just
before a message, which joins that turn then, or follows it where the turn ends first.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from synapsed.errors import ChannelAway
from synapsed.interfaces import FoundTurn, Reach, Submitted
from synapsed.model.facts import ChannelFact, PromptAccepted, TurnEnded, TurnInterrupted, TurnOver
from tests.simulation.loop import LIFE, Life
from tests.simulation.plan import Plan, Player
from tests.simulation.programs import Tui

if TYPE_CHECKING:
    from tests.simulation.machine import Machine

__all__ = ["Served", "ServedChannel", "served"]

NAME = "server"

KEPT = frozenset({"late", "asks", "slow", "stubborn", "sluggish"})
"""Tricks of such a program; the others are of a composer into which everything is typed."""


def served(plan: Plan) -> Plan:
    """The plan, with its TUIs served: in every second run over unsteady connections, in half of the others steering."""
    rng, steering = Random(f"served {plan.seed}"), Random(f"steered {plan.seed}")

    def player(one: Player) -> Player:
        tricks = {name: value for name, value in one.tricks if name in KEPT}
        if drops := rng.choice((0, 0, 0.1, 0.4)):
            tricks["drops"] = drops
        elif steering.random() < 0.5:
            tricks["steers"] = True
        return Player("served", tuple(sorted(tricks.items())))

    return replace(plan, players=tuple(player(one) if one.reads else one for one in plan.players))


class Served(Tui):
    """A TUI with a server: `turns` has by its key what it was given."""

    def begin(self) -> None:
        self.connections: list[ServedChannel] = []
        self.turns: dict[str, FoundTurn] = {}
        self._queue: list[tuple[str, str]] = []
        self._steered: list[tuple[str, str]] = []
        """What was given while a person's turn ran: the turn does not show it yet."""
        self._key: str | None = None
        self._persons = 0
        self.turn = ""
        super().begin()

    @property
    def status(self) -> Reach:
        if self.dialog == "work":
            return "asking"
        return "busy" if self.work is not None or self.taken or self._queue else "idle"

    def tell(self, fact: ChannelFact | None) -> None:
        for connection in self.connections:
            connection.receive(fact, self.status)

    def now_ns(self) -> int:
        return int(self._machine.clock.monotonic() * 1e9)

    # --- requests ---

    def give(self, key: str, text: str) -> Submitted:
        self.say_submitted(text)
        if self.tricks.get("steers") and self.status == "idle" and self._rng.random() < 0.5:
            self._begin_work("hello")
            self._steered.append((key, text))
            return Submitted(turn=self.turn, joined=True)
        return Submitted(turn=self._enqueue(key, text))

    def _enqueue(self, key: str, text: str) -> str:
        turn = f"turn-{self.now_ns()}-{len(self.turns)}"
        self.turns[key] = FoundTurn(turn=turn)
        self._queue.append((key, text))
        self.later(self.tricks.get("sluggish", 0), self._next)
        return turn

    def stop_turn(self, turn: str | None) -> None:
        waits = next((one for one in self._queue if self.turns[one[0]].turn == turn), None)
        if waits is not None:
            self._queue.remove(waits)
            self._over(TurnInterrupted(channel=NAME, at_ns=self.now_ns(), turn=turn))
        elif turn in (None, self.turn):
            self._stop()
            self.draw()

    # --- its turns ---

    def _next(self) -> None:
        if self._queue and self.work is None and not self.taken:
            self._key, text = self._queue.pop(0)
            self.history.append("> " + text.split("\n")[0])
            self._begin_work(text)

    def _over(self, fact: TurnOver) -> None:
        for key, known in self.turns.items():
            if known.turn == fact.turn:
                self.turns[key] = replace(known, over=fact)
        self.tell(fact)
        self.later(0.01, self._next)

    def _report(self, event: str, payload: dict[str, Any]) -> None:
        if event != "UserPromptSubmit":
            if self._steered and self._rng.random() < 0.5:
                self._goes_on(*self._steered.pop(0))
            else:
                self._over(TurnEnded(channel=NAME, at_ns=self.now_ns(), turn=self.turn, answer=payload["answer"]))
                self._take_steered()
            return
        key, self._key = self._key, None
        self._persons += 1
        self.turn = self.turns[key].turn if key is not None else f"person-{self._persons}"
        said = {"prompt": payload["prompt"], "turn": self.turn, "key": key, "own": key is not None}
        self.tell(PromptAccepted(channel=NAME, at_ns=self.now_ns(), **said))

    def _goes_on(self, key: str, text: str) -> None:
        """The turn goes on with that message."""
        self._key, self.turns[key] = key, FoundTurn(turn=self.turn)
        self.history.append("> " + text.split("\n")[0])
        self._begin_work(text)

    def _take_steered(self) -> None:
        """The turn has ended before it came to these messages."""
        steered, self._steered = self._steered, []
        for key, text in steered:
            self._enqueue(key, text)

    def _ask(self) -> None:
        super()._ask()
        self.tell(None)

    def _answered(self, key: str) -> None:
        super()._answered(key)
        self.tell(None)

    def _stop(self) -> None:
        before = self.work
        super()._stop()
        if before is not None and self.work is None:
            self._over(TurnInterrupted(channel=NAME, at_ns=self.now_ns(), turn=self.turn))
            self._steered.clear()

    def _end(self, code: int | None, signum: int | None) -> None:
        super()._end(code, signum)
        for connection in self.connections:
            connection.lose()


class ServedChannel:
    """Implements `interfaces.Delivering`, in one life of the daemon."""

    gone: str | None = None
    settles_s = 1.0

    def __init__(self, machine: "Machine", *, name: str, channel: Any, context: Any) -> None:
        self.name = name
        self.coming = True
        self._machine = machine
        self._agent_id = context.agent_id
        self._server: Served | None = None
        self._reach: Reach = "away"
        self._life: Life | None = None
        self._line_at = 0.0
        self._connection = 0
        self._open: set[asyncio.Future[Any]] = set()
        self._closed = False
        self._changed: Callable[[], None] = lambda: None
        self._emit: Callable[[ChannelFact], None] = lambda _fact: None

    # --- its connection ---

    async def open(self, emit: Callable[[ChannelFact], None]) -> None:
        self._emit, self._life = emit, LIFE.get()
        self._connect()

    async def close(self) -> None:
        self._closed = True

    def _connect(self) -> None:
        self._machine.later(self._machine.rng.uniform(0.01, 0.6), self._try, life=self._life)

    def _try(self) -> None:
        keeper = self._machine.living(self._agent_id)
        server = keeper.program if keeper is not None else None
        if self._closed or not isinstance(server, Served):
            if not self._closed:
                self._connect()
            return
        self._server, self.coming = server, False
        server.connections.append(self)
        self.receive(None, server.status)

    def _post(self, call: Callable[..., None], *args: Any) -> None:
        """What the server sends comes in its order, if the connection still is the same then."""
        now, connection = self._machine.clock.monotonic(), self._connection
        self._line_at = max(self._line_at + 1e-6, now + self._machine.latency())

        def come() -> None:
            if connection == self._connection and not self._closed:
                call(*args)

        self._machine.later(self._line_at - now, come, life=self._life)

    def receive(self, fact: ChannelFact | None, status: Reach) -> None:
        self._post(self._told, fact, status)

    def _told(self, fact: ChannelFact | None, status: Reach) -> None:
        if fact is not None:
            self._emit(fact)
        if status != self._reach:
            self._reach = status
            self._changed()

    def lose(self) -> None:
        """The connection is gone; what was on its way does not come any more."""
        self._machine.later(0.0001, self._lost, self._connection, life=self._life)

    def _lost(self, connection: int) -> None:
        if connection != self._connection or self._server is None:
            return
        self._connection += 1
        server, self._server, self._reach = self._server, None, "away"
        if self in server.connections:
            server.connections.remove(self)
        for asked in self._open:
            if not asked.done():
                asked.set_exception(ChannelAway("the connection was lost", sent=True))
        self._changed()
        if not self._closed:
            self._connect()

    # --- requests ---

    async def _ask(self, call: Callable[[Served], Any]) -> Any:
        server, machine = self._server, self._machine
        if server is None:
            raise ChannelAway("there is no connection", sent=False)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        drops = machine.rng.random() < server.tricks.get("drops", 0)
        behind = machine.rng.random() < 0.5

        def arrive() -> None:
            if drops and not behind:
                self.lose()
            elif server.alive:
                result = call(server)
                if drops:
                    self.lose()
                else:
                    self._post(lambda: None if answer.done() else answer.set_result(result))

        self._open.add(answer)
        machine.later(machine.latency(), arrive)  # also if this daemon is gone by then
        try:
            return await answer
        finally:
            self._open.discard(answer)

    def watch(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def reach(self) -> Reach:
        return self._reach

    def key(self, task_id: str, leg: int) -> str:
        return f"{task_id}.{leg}.{self._machine.clock.monotonic():.9f}"

    async def submit(self, key: str, text: str, *, new: bool = False) -> Submitted:
        given: Submitted = await self._ask(lambda server: server.give(key, text))
        return given

    async def find(self, key: str, turn: str | None = None) -> FoundTurn | None:
        found: FoundTurn | None = await self._ask(lambda server: server.turns.get(key))
        return found

    async def interrupt(self, turn: str | None) -> bool:
        await self._ask(lambda server: server.stop_turn(turn))
        return True

    async def answer(self, request: str, option: str) -> bool:
        raise AssertionError("its questions are at its terminal")

    # --- what it does not do ---

    async def poll(self) -> None: ...

    async def last_answer(self, since_ns: int, is_ours: Callable[[str], bool]) -> str | None:
        return None

    async def reply(self, request: str, answer: dict[str, Any]) -> bool:
        return False

    async def rests(self) -> None: ...

    async def settled(self, at_ns: int) -> None: ...
