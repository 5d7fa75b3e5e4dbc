"""Keys pressed on a program's behalf: stopping a turn, leaving, emptying a composer of what synapsed typed into it."""

import asyncio
import re
import signal
from collections.abc import Awaitable, Callable, Sequence

from synapsed.keepers.client import WriteResult
from synapsed.model.link import LinkExited
from synapsed.profiles import Profile
from synapsed.terminal.composer import puts_off
from synapsed.terminal.menus import Move
from synapsed.terminal.observer import Look
from synapsed.terminal.verdict import screen_sign

__all__ = ["TAKE_BACK_S", "VAIN_TRIES", "Keyboard", "leaving"]

CLEAR_TRIES = 20
"""A composer may need its key once per line."""

VAIN_TRIES = 3
"""Where it changes nothing so many times in a row it does something else there (of vim's keys, Esc), and what stands in
the composer is left to a person."""

CLEAR_WAIT_S = 3.0
"""How long a program may take to show what the key did; it is not pressed again before: some programs take it for
their end when the composer is empty already."""

ANSWER_S = 24 * 3600.0
"""How long a person may take to answer the dialog, or to remove what else hides the composer."""

OPENED_S = 1.0
"""How long what keys open may take to be drawn, where they were pressed more than once: what changed after the first
time may have been the end of a paste, and nothing have been left for the second."""

TAKE_BACK_S = 10.0
"""How long a busy machine's program may take to show what was pasted. Without that it would be left to stand there."""

INTERRUPT_TRIES = 2

AGAIN_S = 1.0
"""How long a busy machine's program may take to show that it works, and that it wants the keys once more. Pressed again
before it has read the first, the two may be another key."""

LOST_PRESSES = 1
"""So often they are pressed where nothing came of them."""

SHOWN_S = 3.0
"""How long a busy machine's program may take to show a step of an answer; the next one follows then all the same."""

RETURNED_WAIT_S = 0.4
"""How long a program takes to give an interrupted message back into its composer."""


def leaving(look: Look) -> str | None:
    """The keys that close the dialog on the screen, where it is one that keys of ours may have opened."""
    asked = look.verdict.asked
    return asked.dialog.leave if asked is not None and asked.dialog is not None else None


class Keyboard:
    """The keys of one program, as its profile tells them."""

    def __init__(
        self,
        profile: Profile,
        write: Callable[[bytes], Awaitable[WriteResult]],
        look: Callable[[], Look],
        until: Callable[[Callable[[Look], bool], float], Awaitable[bool]],
        asked_to_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """`asked_to_stop` is called when the keys that stop a turn are written."""
        self._profile = profile
        self._write = write
        self._look = look
        self._until = until
        self._asked_to_stop = asked_to_stop
        self.answering = False
        """Whether an answer is being typed in several steps: what is on the screen meanwhile is half of it."""
        self.interrupting = False
        """Whether a turn is being stopped: a dialog that is still shown goes with it, and what was typed for that would
        be text in the composer."""

    async def interrupt(
        self,
        stopped: Callable[[Look], bool],
        send_signal: Callable[[int], Awaitable[None]],
        message: str | None = None,
    ) -> bool:
        """Stop the running turn; whether `stopped` then holds. `message` is what was typed for it, which the program
        may have put off: it is then taken back."""
        self.interrupting = True
        try:
            return await self._interrupt(stopped, send_signal, message)
        finally:
            self.interrupting = False

    async def _interrupt(
        self,
        stopped: Callable[[Look], bool],
        send_signal: Callable[[int], Awaitable[None]],
        message: str | None,
    ) -> bool:
        confirmed = False

        def settled(look: Look) -> bool:
            nonlocal confirmed
            confirmed = confirmed or stopped(look)
            return confirmed or self._puts_off(look, message)

        for _ in range(INTERRUPT_TRIES):
            if self._puts_off(self._look(), message):
                await self._take_back_put_off()
            else:
                await self._stop(stopped, send_signal)
            await self._until(settled, self._profile.interrupt.confirm_ms / 1000)
            if confirmed:
                await self.leave_opened()
                return True
        return False

    async def _stop(self, stopped: Callable[[Look], bool], send_signal: Callable[[int], Awaitable[None]]) -> None:
        spec = self._profile.interrupt
        if spec.signal is not None:
            await send_signal(signal.Signals[spec.signal])
        if spec.keys is not None and spec.again is not None:
            await self._press_while_wanted(stopped, re.compile(spec.again, re.MULTILINE))
        elif spec.keys is not None:
            for press in range(spec.repeat):
                if press and await self._until(stopped, spec.gap_ms / 1000):
                    break
                await self._write(spec.keys.encode())
        self._asked_to_stop()

    async def _press_while_wanted(self, stopped: Callable[[Look], bool], again: re.Pattern[str]) -> None:
        """Press the keys when the program shows that it works, and once more whenever it says that it wants them
        `again`, or nothing comes of them: before there is anything to stop they do nothing."""
        spec, over = self._profile.interrupt, False

        def has_stopped(look: Look) -> bool:
            nonlocal over
            over = over or stopped(look)
            return over

        def wants(look: Look) -> bool:
            return any(again.search(line) for line in look.screen.lines)

        def works(look: Look) -> bool:
            return screen_sign(self._profile.busy, look.screen) is not None

        for press in range(spec.repeat + LOST_PRESSES):
            comes = wants if press else works
            await self._until(lambda look, comes=comes: has_stopped(look) or comes(look), AGAIN_S)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            if not over:
                await self._write((spec.keys or "").encode())
                self._asked_to_stop()
                await self._until(lambda look: has_stopped(look) or not wants(look), AGAIN_S)
            if over:
                return

    def _puts_off(self, look: Look, message: str | None) -> bool:
        spec = self._profile.interrupt.put_off
        return (
            spec is not None
            and message is not None
            and look.composer.state == "empty"
            and puts_off(spec, look.screen, message)
        )

    async def _take_back_put_off(self) -> None:
        """Have the message given back, and remove it. (Should the program begin with it at this very moment, that is a
        turn to be stopped.)"""
        assert self._profile.interrupt.put_off is not None
        await self._write(self._profile.interrupt.put_off.keys.encode())
        if await self._until(lambda look: look.composer.state == "draft", CLEAR_WAIT_S):
            await self.clear()

    async def answer(self, steps: Sequence[bytes], still: Callable[[Look], bool]) -> bool | None:
        """Answer a dialog, each step when it is shown what came of the one before: whether the terminal hid any of it.
        None where the dialog was not `still` there for one of them (it may be drawn again meanwhile), or its turn is
        being stopped."""
        self.answering, hidden = True, False
        try:
            for number, keys in enumerate(steps):
                there = number == 0 or await self._until(lambda look: self.interrupting or still(look), SHOWN_S)
                if self.interrupting or not there:
                    return None
                shown = self._look().screen.lines
                hidden = (await self._write(keys)).hidden or hidden
                if number + 1 < len(steps):
                    await self._until(lambda look, shown=shown: look.screen.lines != shown, SHOWN_S)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
                    await self._until(lambda _: False, self._profile.delivery.settle_ms / 1000)
        finally:
            self.answering = False
        return hidden

    async def choose(self, moves: Sequence[Move], mark: Callable[[Look], str | None]) -> bool | None:
        """Answer a menu, each move when the one before is shown: whether all were made. What comes last, and submits,
        is pressed only while the `mark` of the menu stands where it was moved to; else it is False, or None where the
        menu has left the screen, or its turn is being stopped."""
        self.answering = True
        try:
            for keys, wanted in moves:
                if self.interrupting:
                    return None
                await self._write(keys)
                if wanted is not None:
                    await self._until(lambda look, wanted=wanted: mark(look) == wanted, SHOWN_S)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
                    if (shown := mark(self._look())) != wanted:
                        return None if shown is None else False
                    await self._until(lambda _: False, self._profile.delivery.settle_ms / 1000)
        finally:
            self.answering = False
        return True

    async def take_back(self) -> bool:
        """Empty the composer of what was just pasted, which may not be shown yet; whether it is empty."""
        if self._profile.composer.line is None:
            return False
        await self._until(self._has_composer, ANSWER_S)
        await self._until(lambda look: look.composer.state == "draft", TAKE_BACK_S)
        return await self.clear()

    def _has_composer(self, look: Look) -> bool:
        """Neither a dialog nor anything else stands where the composer is."""
        there = look.composer.state != "absent" or not self._profile.composer.needed
        return look.verdict.asked is None and there

    async def clear(self) -> bool:
        """Empty the composer; whether it is."""
        vain = 0
        for tries in range(CLEAR_TRIES):
            before = self._look()
            if before.composer.state != "draft":
                await self.leave_opened(OPENED_S if tries > 1 else 0.0)
                return True
            if vain == VAIN_TRIES:
                return False
            wiped = await self._wipe(self._profile.delivery.clear, _from_composer(before))
            vain = 0 if wiped else vain + 1
            await self.leave_opened()
        return self._look().composer.state != "draft"

    async def erase(self) -> bool:
        """Take back what a person has written, a row at a time; whether the composer is empty."""
        for _ in range(CLEAR_TRIES):
            before = self._look()
            if before.composer.state != "draft":
                return True
            await self._wipe(self._profile.delivery.erase, _from_composer(before))
        return self._look().composer.state != "draft"

    async def _wipe(self, keys: str, shown: tuple[str, ...]) -> bool:
        """Press `keys` where the composer holds `shown`, and wait for what they do to it; whether that is anything."""
        await self._write(keys.encode())
        return await self._until(lambda look: _from_composer(look) != shown, CLEAR_WAIT_S)

    async def leave_opened(self, within: float = 0.0) -> None:
        """Close what these keys opened, or open `within` so many seconds: they found nothing to stop or to clear."""
        if within and any(dialog.leave is not None for dialog in self._profile.prompts.dialogs):
            await self._until(lambda look: leaving(look) is not None, within)
        if (keys := leaving(self._look())) is not None:
            await self._write(keys.encode())
            await self._until(lambda look: leaving(look) is None, CLEAR_WAIT_S)

    async def clear_if(self, holds: Callable[[str], bool]) -> None:
        """Empty the composer if it `holds` a message, which a program may give back after an interruption."""
        if await self._until(
            lambda look: look.composer.state == "draft" and holds(look.composer.text), RETURNED_WAIT_S
        ):
            await self.clear()

    async def leave(self, exited: "asyncio.Future[LinkExited]") -> None:
        """Press the program's own exit keys, each if it still runs, and give it its time."""
        spec = self._profile.exit
        for keys in spec.keys:
            await self._write(keys.encode())
            await asyncio.wait({exited}, timeout=spec.gap_ms / 1000)
            if exited.done():
                return
        if spec.keys:
            await asyncio.wait({exited}, timeout=spec.grace_ms / 1000)


def _from_composer(look: Look) -> tuple[str, ...]:
    """The screen from the composer's first row down."""
    return look.screen.lines[look.composer.row or 0 :]
