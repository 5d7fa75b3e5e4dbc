"""Asks the keeper and the kernel who reads a program's terminal, and what whoever has it does.

Where a prompt is learned that is asked for each screen that comes to rest; of a line-oriented program that shows no
prompt, and is quiet, again and again.
"""

import asyncio
from collections.abc import Callable

from synapsed.clock import Clock
from synapsed.model.agent import Activity
from synapsed.model.link import LinkObserved
from synapsed.profiles.profile import Profile
from synapsed.pty.foreground import Foreground
from synapsed.pty.input_backlog import Unread
from synapsed.pty.session import Session
from synapsed.terminal.line_prompts.evidence import TerminalFacts

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
