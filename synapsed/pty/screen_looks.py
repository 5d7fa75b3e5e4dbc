"""Looks at a program: plans when to look at its screen (a look is one reading of it), for all callers that wait for a
look; and asks the keeper and the kernel who reads the terminal, if the input is read, and if the program works.

A change of the screen is only announced; a look follows, at most once per `EVALUATE_EVERY_S`, and also when time alone
changes a verdict (the judgement of what the program does). The stage returns a look when all earlier output is drawn.

If the program's prompt has to be learned, the keeper and the kernel are asked each time the screen comes to rest; for a
line-oriented program that shows no prompt and is quiet, repeatedly.

The terminal keeps typed text until the program reads it. A program that is stopped, hangs or is swapped out shows none
of this text, and all of it when it goes on. So no message is typed while input is unread, nor in the moment when the
input is read but not shown yet.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from synapsed import aio
from synapsed.errors import KeeperLost
from synapsed.keepers.client import KeeperClient
from synapsed.model.agent import Activity
from synapsed.model.link import LinkObserved
from synapsed.pty.foreground import Foreground
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.session import Session
from synapsed.pty.session_commands import SessionCommand
from synapsed.terminal.line_prompts.evidence import TerminalFacts
from synapsed.terminal.look import Look

ASK_AGAIN_S = 0.25

AHEAD_S = 0.2
"""Seconds after which the answer to a question asked ahead is too old; a commit to the database takes as long. Keys of
the daemon or of a person in that time are known without asking."""


class Unread:
    """The input that the program has not read. `read` is called when all of it is read."""

    def __init__(self, keeper: Callable[[], KeeperClient], read: Callable[[], None]) -> None:
        self._keeper = keeper
        self._read = read
        self.now = False
        """True if there was unread input when the keeper was last asked."""
        self.line_mode: bool | None = None
        """True if the terminal gave the program whole lines at that time: no line editor is running. None: unknown."""
        self.echo: bool | None = None
        """True if the terminal showed typed text at that time."""
        self.foreground: int | None = None
        """The process group that read the terminal at that time."""
        self._ahead: tuple[float, asyncio.Task[int]] | None = None

    def ahead(self) -> None:
        """Asks now, for a later call of `asked_ahead`: the answer comes while the caller waits for something else."""
        asked = aio.at_once(self.amount(), name="asked ahead")
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())  # perhaps no caller waits for it
        self._ahead = asyncio.get_running_loop().time(), asked

    async def asked_ahead(self) -> bool:
        """Returns the same as `ask`, by the answer that was asked `ahead` if it is not too old. Raises KeeperLost."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or asyncio.get_running_loop().time() - ahead[0] > AHEAD_S:
            return await self.ask()
        return await ahead[1] > 0

    async def ask(self) -> bool:
        """Returns True if there is unread input. Raises KeeperLost."""
        return await self.amount() > 0

    async def amount(self) -> int:
        """Returns the number of unread bytes, with those that the keeper could not write yet. Raises KeeperLost."""
        keeper = await self._keeper().ping()
        before, self.now = self.now, keeper.unread > 0
        self.line_mode, self.echo, self.foreground = keeper.line_mode, keeper.echo, keeper.foreground
        if before and not self.now:
            self._read()
        return keeper.unread

    async def until_read(self) -> None:
        """Waits until all input is read. Raises KeeperLost."""
        while await self.ask():  # noqa: ASYNC110 - the kernel reports no event for this
            await asyncio.sleep(ASK_AGAIN_S)


ASK_AFTER_S = 2.0
"""Seconds of a still screen before the kernel is asked: a changing screen needs no other evidence of work."""

ASK_LEARNING_S = 0.5
"""The same if a prompt counts only while a process reads the terminal: it may be printed a moment before that."""

ASK_EVERY_S = 1.0


class FactsOfTerminal:
    """Asks for facts about the terminal's readers, and passes them to the session."""

    def __init__(self, session: Session, unread: Unread, *, leader: int) -> None:
        """`leader` is the pid of the launched program."""
        self._session = session
        self._unread = unread
        self._leader = leader
        self._foreground = Foreground()

    async def ask(self) -> bool:
        """Passes the present facts to the session. Returns True if there is unread input. Raises KeeperLost."""
        offset = self._session.offset
        unread = await self._unread.ask()
        group, line_mode = self._unread.foreground, self._unread.line_mode
        names, cwd, reads = await asyncio.to_thread(self._foreground.describe, group, line_mode=line_mode)
        self._session.prompts.inform(
            TerminalFacts(
                offset=offset,
                line_mode=line_mode,
                echo=self._unread.echo,
                group=group,
                names=names,
                reads=reads,
                cwd=cwd,
            ),
            own=group == self._leader,
        )
        return unread


class KernelWitness:
    """Asks the kernel about a line-oriented program that shows no prompt and is quiet, and reports to the observer."""

    def __init__(self, terminal: LinkedTerminal, looks: "Looks") -> None:
        self._wanted = terminal.profile.composer.at_cursor
        self._after = ASK_LEARNING_S if looks.learns else ASK_AFTER_S
        self._facts = looks.facts if looks.learns else None
        self._clock = terminal.clock
        self._session = terminal.session
        self._unread = looks.unread
        self._look_soon = looks.soon
        self._foreground = Foreground()
        self._asked_at = 0.0

    def _needless(self, told: LinkObserved, now: float) -> bool:
        """Returns True if the screen itself shows the program's activity."""
        changed_at = self._session.last.changed_at if self._session.last is not None else 0.0
        return told.activity is Activity.READY or now - changed_at < self._after

    def is_due(self, told: LinkObserved | None) -> bool:
        """Returns True if `ask` would do some work. Called twice a second."""
        if not self._wanted or told is None:
            return False
        now = self._clock.monotonic()
        if self._needless(told, now):
            return self._session.kernel is not None
        return now - self._asked_at >= ASK_EVERY_S

    async def ask(self, told: LinkObserved | None) -> None:
        """Asks the kernel, if it is time to do so. Raises KeeperLost."""
        if told is None or not self.is_due(told):
            return
        now = self._clock.monotonic()
        if self._needless(told, now):
            self._session.kernel = None
            return
        self._asked_at = now
        await (self._facts or self._unread).ask()
        group, line_mode = self._unread.foreground, self._unread.line_mode
        word = await asyncio.to_thread(self._foreground.look, group, line_mode=line_mode, now=now)
        if word is not None and word != self._session.kernel:
            self._session.kernel = word
            self._look_soon()
        elif self._facts is not None:
            self._look_soon()


EVALUATE_EVERY_S = 0.015
"""Least seconds between two looks after changes: a look costs about a millisecond, and output comes in bursts."""


class Looks:
    """Plans looks. `do` performs the session's commands, `looked` is called with every look."""

    def __init__(
        self,
        terminal: LinkedTerminal,
        unread: Unread,
        *,
        do: Callable[[Sequence[SessionCommand]], None],
        looked: Callable[[Look], None],
    ) -> None:
        self._clock = terminal.clock
        self._session = terminal.session
        self._stage = terminal.stage
        self._program = terminal.program
        self.unread = unread
        self.learns = terminal.profile.composer.usual
        self.facts = FactsOfTerminal(self._session, unread, leader=terminal.program.launch.pid)
        self._do = do
        self._looked = looked
        self._timer: asyncio.TimerHandle | None = None
        self._open = self._closed = False
        self._judging = self._again = False
        self._waiting: list[tuple[Callable[[Look], bool], asyncio.Future[None]]] = []
        self._looked_at = 0.0

    async def begin(self) -> None:
        """Begins: makes the first look now; from now on looks follow changes."""
        self._open = True
        await self.judge()

    def end(self) -> None:
        """Ends the planned looks; `look` and `until` still work."""
        self._closed = True
        self._cancel()

    def soon(self, *, at_once: bool = False) -> None:
        """Plans a look after a change."""
        if self._judging:
            self._again = True
        elif self._open and not self._closed:
            now = self._clock.monotonic()
            self._wake_at(now if at_once else max(self._looked_at + EVALUATE_EVERY_S, now))

    async def judge(self) -> None:
        """Looks now and judges the turn; while the program is drawing a frame, as soon as the frame is complete."""
        self._cancel()
        if self._judging or self._closed:
            self._again = True
            return
        self._judging, self._again = True, False
        try:
            when = await self._judge(self._clock.monotonic())
        finally:
            self._judging = False
        if self._again:
            self.soon()
        if when is not None and not self._closed:
            self._wake_at(when)

    async def _judge(self, now: float) -> float | None:
        """Looks and judges. Returns the time at which this must be done again; None: only after a change."""
        turn, phase = self._session.turn, self._session.phase
        look = await self._look(whole=True)
        if look is None:
            return now + EVALUATE_EVERY_S
        if self._session.turn is not turn or self._session.phase is not phase:
            self._again = True  # the turn went on meanwhile: this look may be from before its last step
            return None
        if not self._program.exited.done():
            if self._session.wants_facts(look, now):
                await self._inform()
            self._do(self._session.judge(look, now))
        return self._session.wake_at(look, now)

    async def _inform(self) -> None:
        """Asks for the readers of the terminal, for the next look."""
        with contextlib.suppress(KeeperLost):
            await self.facts.ask()
            self._again = True

    async def look(self) -> Look:
        look = await self._look()
        assert look is not None, "one in the middle of a frame is wanted too"
        return look

    async def _look(self, *, whole: bool = False) -> Look | None:
        self._looked_at = now = self._clock.monotonic()
        self._session.silent, self._session.unread = self._program.silent, self.unread.now
        shown = await self._stage.look(self._session.ask(now, whole=whole))
        if shown is None:
            return None
        look = self._session.believed(shown)
        self._looked(look)
        if commands := self._session.looked(look, now):
            self._do(commands)
        for wanted, future in list(self._waiting):
            if not future.done() and wanted(look):
                future.set_result(None)
        return look

    async def until(self, wanted: Callable[[Look], bool], timeout: float) -> bool:
        """Returns True if a look satisfies `wanted` within `timeout` seconds, and before the program ends."""
        if wanted(await self.look()):
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (wanted, future)
        self._waiting.append(entry)
        try:
            either: set[asyncio.Future[Any]] = {future, self._program.exited}
            await asyncio.wait(either, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.remove(entry)
        return future.done() or wanted(await self.look())

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake_at(self, when: float) -> None:
        """Plans a look at `when`; an earlier planned look stays."""
        loop = asyncio.get_running_loop()
        at = loop.time() + max(0.0, when - self._clock.monotonic())
        if self._timer is not None and self._timer.when() <= at:
            return
        self._cancel()
        self._timer = loop.call_at(at, self._due)

    def _due(self) -> None:
        self._timer = None
        self._program.tasks.spawn(self.judge(), eager=True)


RESTS_LOOKS = 5
"""Number of checks in a row that must find a program at rest."""

REST_AGAIN_S = 0.2


class KernelChecks:
    """Checks with the kernel if the program works. The async methods raise KeeperLost."""

    def __init__(self, terminal: LinkedTerminal, looks: Looks) -> None:
        self._clock = terminal.clock
        self._session = terminal.session
        self._looks = looks
        self._unread = looks.unread
        self._foreground = Foreground()

    @property
    def asks_again(self) -> bool:
        """Returns True if the kernel's last answer may be out of date."""
        return self._unread.now or self._session.half_typed or self._session.given_back is not None

    async def ask_again(self) -> None:
        """Asks the kernel again, if `asks_again`. Raises KeeperLost."""
        if self._unread.now or self._session.half_typed:
            self._session.unread = await self._unread.ask()
            if self._session.half_typed:
                self._session.asked_processor(await self._computes(), self._clock.monotonic())
        elif self._session.given_back is not None:
            await self.works()

    async def works(self) -> bool:
        """Returns True if the program works: since the message was typed, another process group reads the terminal or
        the line editor is gone (then text that looks like a prompt is only printed), or lines of the message are
        unread. Raises KeeperLost."""
        unread = await (self._looks.facts.ask() if self._looks.learns else self._unread.ask())
        self._session.asked_kernel(line_mode=self._unread.line_mode, reader=self._unread.foreground)
        self._looks.soon()
        return unread or (await self._looks.look()).verdict.activity is not Activity.READY

    async def rests_with_keys_read(self) -> bool:
        """Returns True if the program has read all its input and does not compute. On a busy machine a program reads a
        key long before it acts on it, and would act on two keys at once; so do those behind a relay. Raises
        KeeperLost."""
        if await self._unread.ask():
            return False
        return not (await self._computes() or self._session.lag.left(self._clock.monotonic()))

    async def has_acted(self, submit_ns: int) -> bool:
        """Returns True if the program has nothing more to do about the submit key, which was pressed at `submit_ns`
        (CLOCK_MONOTONIC): it has read all its input, does not compute, and no process that it has started since then
        lives, such as a person's hook. Raises KeeperLost."""
        if await self._unread.ask() or self._session.lag.seconds:
            return False
        group = self._unread.foreground
        since = self._clock.boot() - (self._clock.monotonic() - submit_ns / 1e9)
        return group is None or not await asyncio.to_thread(self._foreground.acts, group, since)

    async def comes_to_rest(self, within: float, *, unless: Callable[[], bool]) -> bool:
        """Returns True if the program comes to rest within `within` seconds, and is at rest in RESTS_LOOKS checks in a
        row (a single check may fall between two parts of its work). Returns False also if `unless` returns True
        meanwhile. Raises KeeperLost."""
        until, rests = self._clock.monotonic() + within, 0
        while not unless():
            rests = rests + 1 if await self.rests_with_keys_read() else 0
            if rests == RESTS_LOOKS or self._clock.monotonic() >= until:
                return rests == RESTS_LOOKS
            await asyncio.sleep(REST_AGAIN_S)
        return False

    async def _computes(self) -> bool:
        """Returns True if the group in the foreground, just asked for by `unread`, computes; notes if it is a relay."""
        if (group := self._unread.foreground) is None:
            return False
        computes, self._session.lag.relayed = await asyncio.to_thread(self._foreground.computes_or_relays, group)
        return computes
