"""A person's keys on their way to the program: typed at a viewer, or pressed by name.

They wait for the moment in which a message or an answer is being typed: nothing is ever mixed.
"""

import asyncio
from collections.abc import Sequence

from synapsed.errors import KeeperLost, NotReady
from synapsed.pty.driver import Driver
from synapsed.pty.keyboard import CTRL_Z, TAKE_BACK_S
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.stopping import Stopping
from synapsed.pty.viewers import FOCUS, are_reports
from synapsed.terminal.composer import shows_line
from synapsed.terminal.keynames import as_bytes, encode
from synapsed.terminal.look import Look
from synapsed.terminal.screen_messages import KeysTyped, StopAsked

ECHO_S = 5.0
"""Seconds within which a program shows a person's text: only a line addressed to another agent waits for it."""

DECCKM = 1
"""The private mode in which the keys of the cursor are sent in another form."""

PRESS_GAP_S = 0.05
"""Seconds between two keys: a program takes input in one piece for a paste, and Esc for the beginning of another
key."""

PRESS_WAIT_S = 3.0
"""Seconds that keys wait for a message that is being typed."""


class PersonKeys:
    """A person's keys at one program. All methods that type raise KeeperLost while the link is not open."""

    def __init__(self, terminal: LinkedTerminal, driver: Driver, stopping: Stopping) -> None:
        spec = terminal.profile.delivery
        self._patience = (spec.settle_max_ms + 2 * spec.accept_ms) / 1000 + TAKE_BACK_S
        self._session = terminal.session
        self._keyboard = terminal.session.keyboard
        self._stage = terminal.stage
        self._driver = driver
        self._stopping = stopping
        self._keeper = terminal.program.keeper
        self._clock = terminal.clock

    async def composes(self) -> bool:
        """Returns True if a person is writing in the program's own input."""
        return (
            self._session.hands_on(self._clock.monotonic())
            or (await self._driver.looks.look()).composer.state != "empty"
        )

    async def take_line(self, line: str) -> bool:
        """Takes a line out of the program's input again; returns True if it was there alone. Typed text may not be on
        the screen yet; a line that never appears there is another one."""
        if not await self._driver.looks.until(lambda look: shows_line(look.composer, look.screen, line), ECHO_S):
            return False
        self._session.pressed(self._clock.monotonic())
        return await self._driver.perform(self._keyboard.erase())

    async def type(self, data: bytes) -> None:
        # Else there is nothing to look for: a look for each key would be most of its way.
        if self.busy():
            await self._driver.looks.until(self._free, self._patience)
        self._touched(data)
        await self._keeper().write(data)
        self._typed(data)

    def type_now(self, data: bytes) -> bool:
        """Types a few keys that need no wait; returns True if they were typed."""
        try:
            keeper = self._keeper()
        except KeeperLost:
            return False
        if self.busy() or not keeper.can_write_now(data):
            return False
        keeper.write_now(data)  # first: a person waits for it, and nothing comes of it before the loop's next turn
        self._touched(data)
        self._typed(data)
        return True

    async def press(self, keys: Sequence[str]) -> None:
        """Presses the keys by name. Raises NotReady if something else is being typed for `PRESS_WAIT_S`."""
        modes = (await self._driver.looks.look()).screen.modes
        for number, data in enumerate(presses := encode(keys, application_cursor=DECCKM in modes.dec)):
            if number:
                await asyncio.sleep(PRESS_GAP_S)
            if not await self._driver.looks.until(self._free, PRESS_WAIT_S):
                left = f" ({number} of {len(presses)} keys were pressed)" if number else ""
                raise NotReady(f"a message or an answer is being typed there just now{left}: try again in a moment")
            await self.type(data)

    def busy(self) -> bool:
        """Returns True if other keys may be on their way; only a look can tell."""
        return self._session.half_typed or self._keyboard.answering

    def _free(self, look: Look) -> bool:
        """Returns True if nothing is being typed just now."""
        return not (self._session.typing(look) or self._keyboard.answering)

    def _touched(self, data: bytes) -> None:
        """Notes that a person is about to type that."""
        now = self._clock.monotonic()
        if not are_reports(data):
            self._session.pressed(now)
            self._session.prompts.typed(data, self._session.last)
        if data not in FOCUS:
            self._session.observations.touch()
        self._stage.note(KeysTyped(now))

    def _typed(self, data: bytes) -> None:
        if CTRL_Z in as_bytes(data) and not self._keyboard.suspended:
            self._driver.undertake(self._keyboard.resume())
        if self._stopping.asks_to_stop(data):
            self._stage.note(StopAsked(self._clock.monotonic()))
