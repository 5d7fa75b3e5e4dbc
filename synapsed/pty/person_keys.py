"""Passes a person's keys to the program: typed at an attached terminal (a viewer), or pressed by name. While a message
or an answer is being typed, the person's keys wait, so that the two are never mixed. If it takes too long, only the
keys that interrupt are typed, and all others are refused."""

import asyncio
import re
from collections.abc import Sequence

from synapsed.errors import KeeperLost, NotReady
from synapsed.pty.driver import Driver
from synapsed.pty.keyboard import CTRL_Z, TAKE_BACK_S
from synapsed.pty.linked_terminal import LinkedTerminal
from synapsed.pty.stopping import Stopping
from synapsed.pty.viewers import FOCUS, are_reports, without_reports
from synapsed.shared.regex import regex
from synapsed.terminal.composer import shows_line
from synapsed.terminal.keynames import as_bytes, encode
from synapsed.terminal.look import Look
from synapsed.terminal.screen_messages import KeysTyped, StopAsked

ECHO_S = 5.0
"""Seconds within which a program shows a person's text. Only a line addressed to another agent waits for this."""

DECCKM = 1
"""The private mode in which a terminal sends other codes for the arrow keys."""

PRESS_GAP_S = 0.05
"""Seconds between two keys: one piece would be taken as a paste, and Esc as the beginning of another key."""

INTERRUPTS = (b"\x1b", b"\x03", b"\x1c", b"\x1a")
"""Esc, Ctrl-C, Ctrl-\\ and Ctrl-Z, which pass also beside a message that is typed for too long, several at once too."""

RELEASED = rb"\x1b\[[\d:]+;\d*:3u"
"""Report of a terminal with an extended keyboard protocol that a key was let go."""

PRESS_WAIT_S = 3.0
"""Seconds that keys wait for a message that is being typed."""


class PersonKeys:
    """A person's keys at one program. All methods that type raise KeeperLost while the link is not open."""

    def __init__(self, terminal: LinkedTerminal, driver: Driver, stopping: Stopping) -> None:
        spec = terminal.profile.delivery
        self._patience = (spec.settle_max_ms + 2 * spec.accept_ms) / 1000 + TAKE_BACK_S
        interrupts = {*INTERRUPTS, (terminal.profile.interrupt.keys or "").encode()}
        self._interrupts = regex(b"(?:%s|%s)*" % (b"|".join(map(re.escape, sorted(interrupts - {b""}))), RELEASED))
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
        """Removes a line from the program's input. Returns True if it was the only text there and was removed. The line
        may not be on the screen yet; if it does not appear in ECHO_S, the input has other text, which stays."""
        if not await self._driver.looks.until(lambda look: shows_line(look.composer, look.screen, line), ECHO_S):
            return False
        self._session.pressed(self._clock.monotonic())
        return await self._driver.perform(self._keyboard.erase())

    async def type(self, data: bytes) -> None:
        """Types `data`. Raises NotReady if a message is typed for too long, unless `data` interrupts or reports."""
        # Only then is a look needed: it would take most of the time between a key and the program.
        busy = self.busy() and not await self._driver.looks.until(self._free, self._patience)
        if busy and not self._interrupts.fullmatch(as_bytes(without_reports(data))):
            raise NotReady(
                "a message or an answer is being typed there: your keys were left out, only Esc, Ctrl-C, Ctrl-\\ and"
                " Ctrl-Z pass"
            )
        self._touched(data)
        await self._keeper().write(data)
        self._typed(data)

    def type_now(self, data: bytes) -> bool:
        """Types a few keys if they can be typed without waiting. Returns True if they were typed."""
        try:
            keeper = self._keeper()
        except KeeperLost:
            return False
        if self.busy() or not keeper.can_write_now(data):
            return False
        keeper.write_now(data)  # first: a person waits for the echo, which cannot come before the loop's next turn
        self._touched(data)
        self._typed(data)
        return True

    async def press(self, keys: Sequence[str]) -> None:
        """Presses the keys by name. Raises NotReady if a message or answer is typed for longer than `PRESS_WAIT_S`."""
        modes = (await self._driver.looks.look()).screen.modes
        for number, data in enumerate(presses := encode(keys, application_cursor=DECCKM in modes.dec)):
            if number:
                await asyncio.sleep(PRESS_GAP_S)
            if not await self._driver.looks.until(self._free, PRESS_WAIT_S):
                left = f" ({number} of {len(presses)} keys were pressed)" if number else ""
                raise NotReady(f"a message or an answer is being typed there just now{left}: try again in a moment")
            await self.type(data)

    def busy(self) -> bool:
        """Returns True if a message or an answer may be half typed; a look is needed to know."""
        return self._session.half_typed or self._keyboard.answering

    def _free(self, look: Look) -> bool:
        """Returns True if no message and no answer is being typed now."""
        return not (self._session.typing(look) or self._keyboard.answering)

    def _touched(self, data: bytes) -> None:
        """Notes that a person types `data`."""
        now = self._clock.monotonic()
        if not are_reports(data):
            self._session.pressed(now, data)
            self._session.lag.typed(now)
            self._session.prompts.typed(data, self._session.last)
        if data not in FOCUS:
            self._session.observations.touch()
        self._stage.note(KeysTyped(now))

    def _typed(self, data: bytes) -> None:
        if CTRL_Z in as_bytes(data) and not self._keyboard.suspended:
            self._driver.undertake(self._keyboard.resume())
        if self._stopping.asks_to_stop(data):
            self._stage.note(StopAsked(self._clock.monotonic()))
