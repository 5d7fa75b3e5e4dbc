"""Asks the keeper and the kernel who reads a program's terminal, whether that reads what is typed, and what whoever has
it does.

Where a prompt is learned that is asked for each screen that comes to rest; of a line-oriented program that shows no
prompt, and is quiet, again and again.

The terminal keeps what is typed until the program reads it. One that is stopped, hangs or is swapped out shows nothing
of it then, and all of it whenever it goes on. So nothing is typed for a message while anything is unread, nor in the
moment in which what was read is not shown yet.
"""

import asyncio
from collections.abc import Callable

from synapsed import aio
from synapsed.clock import Clock
from synapsed.errors import NotReady
from synapsed.keepers.client import KeeperClient
from synapsed.model.agent import Activity
from synapsed.model.link import LinkObserved
from synapsed.profiles.profile import Profile
from synapsed.pty.foreground import Foreground
from synapsed.pty.session import Session
from synapsed.terminal.line_prompts.evidence import TerminalFacts

ASK_AGAIN_S = 0.25

AHEAD_S = 0.2
"""How old an answer may be that was asked for ahead: as old as a commit takes. What the daemon itself or a person typed
meanwhile is known without asking."""


class Unread:
    """`read` is called when the program has read what it had not."""

    def __init__(self, keeper: Callable[[], KeeperClient], read: Callable[[], None]) -> None:
        self._keeper = keeper
        self._read = read
        self.now = False
        """Something was unread when the keeper was last asked."""
        self.line_mode: bool | None = None
        """Whether the terminal gave the program whole lines then: it has no line editor up. None: unknown."""
        self.echo: bool | None = None
        """Whether it showed what was typed."""
        self.foreground: int | None = None
        """The process group that read the terminal then."""
        self._ahead: tuple[float, asyncio.Task[int]] | None = None

    def ahead(self) -> None:
        """Ask now for who is about to: the answer comes while something else is waited for."""
        asked = aio.at_once(self.amount(), name="asked ahead")
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())  # perhaps nobody waits for it
        self._ahead = asyncio.get_running_loop().time(), asked

    async def asked_ahead(self) -> bool:
        """The same as `ask`, by what was asked `ahead` where that is not too old. Raises KeeperLost."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or asyncio.get_running_loop().time() - ahead[0] > AHEAD_S:
            return await self.ask()
        return await ahead[1] > 0

    async def ask(self) -> bool:
        """Whether anything is unread. Raises KeeperLost."""
        return await self.amount() > 0

    async def amount(self) -> int:
        """Bytes that are unread, also those that the keeper could not write yet. Raises KeeperLost."""
        keeper = await self._keeper().ping()
        before, self.now = self.now, keeper.unread > 0
        self.line_mode, self.echo, self.foreground = keeper.line_mode, keeper.echo, keeper.foreground
        if before and not self.now:
            self._read()
        return keeper.unread

    async def until_read(self) -> None:
        """Raises KeeperLost."""
        while await self.ask():  # noqa: ASYNC110 - the kernel tells nobody: it is asked
            await asyncio.sleep(ASK_AGAIN_S)

    async def read_within(self, seconds: float) -> None:
        """Raises NotReady where it is not, KeeperLost."""
        try:
            await asyncio.wait_for(self.until_read(), seconds)
        except TimeoutError:
            raise NotReady("the program does not read what is typed now: try again when it goes on") from None


ASK_AFTER_S = 2.0
"""What moves on the screen needs no other witness."""

ASK_LEARNING_S = 0.5
"""The same where a prompt counts only with somebody who reads: it may be printed a moment before that."""

ASK_EVERY_S = 1.0


class FactsOfTerminal:
    """`ask` tells the session what it finds."""

    def __init__(self, session: Session, unread: Unread, *, leader: int) -> None:
        """`leader` is the process that was launched."""
        self._session = session
        self._unread = unread
        self._leader = leader
        self._foreground = Foreground()

    async def ask(self) -> bool:
        """Whether anything is unread, as `Unread.ask`. Raises KeeperLost."""
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
    """Asks the kernel about a line-oriented program that shows no prompt and is quiet, and tells the observer."""

    def __init__(
        self,
        profile: Profile,
        clock: Clock,
        session: Session,
        unread: Unread,
        facts: FactsOfTerminal,
        look_soon: Callable[[], None],
    ) -> None:
        self._wanted = profile.composer.at_cursor
        self._after = ASK_LEARNING_S if profile.composer.usual else ASK_AFTER_S
        self._facts = facts if profile.composer.usual else None
        self._clock = clock
        self._session = session
        self._unread = unread
        self._look_soon = look_soon
        self._foreground = Foreground()
        self._asked_at = 0.0

    @property
    def _changed_at(self) -> float:
        return self._session.last.changed_at if self._session.last is not None else 0.0

    def _needless(self, told: LinkObserved, now: float) -> bool:
        """The screen itself says what the program does."""
        return told.activity is Activity.READY or now - self._changed_at < self._after

    def is_due(self, told: LinkObserved | None) -> bool:
        """Whether `ask` would do anything. Called twice a second."""
        if not self._wanted or told is None:
            return False
        now = self._clock.monotonic()
        if self._needless(told, now):
            return self._session.kernel is not None
        return now - self._asked_at >= ASK_EVERY_S

    async def ask(self, told: LinkObserved | None) -> None:
        """Raises KeeperLost."""
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
