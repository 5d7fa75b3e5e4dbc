"""Handles signals to an attached terminal (to end, to stop, of another size), and to a request that is under way."""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Self

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


class TerminalSignals:
    """A context manager: inside, signals are noted here, and `fd` becomes readable with each."""

    def __init__(self) -> None:
        self.fd = -1
        self.ended: int | None = None
        """The first signal that ends the process."""
        self.suspended = False
        """True if this process got a signal to stop."""
        self.resized = False

    def __enter__(self) -> Self:
        self.fd, self._wake = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._wake, False)
        handlers = {**dict.fromkeys(ENDING, self._on_end), signal.SIGWINCH: self._on_resize}
        handlers[signal.SIGTSTP] = self._on_suspend
        self._before = {signum: signal.signal(signum, handler) for signum, handler in handlers.items()}
        self._fd_before = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        return self

    def __exit__(self, *exc_info: object) -> None:
        signal.set_wakeup_fd(self._fd_before)
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        os.close(self.fd)
        os.close(self._wake)

    def unblock(self) -> None:
        """Unblocks the signals that were blocked at the beginning of the attach until they are noted here."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*ENDING, signal.SIGTSTP))

    def drain(self) -> None:
        """Makes `fd` unreadable until the next signal."""
        with suppress(BlockingIOError):
            os.read(self.fd, 4096)

    def stop(self) -> None:
        """Stops this process, until it is continued."""
        self.suspended = False
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)

    def _on_end(self, signum: int, frame: FrameType | None) -> None:
        self.ended = self.ended or signum

    def _on_suspend(self, signum: int, frame: FrameType | None) -> None:
        self.suspended = True

    def _on_resize(self, signum: int, frame: FrameType | None) -> None:
        self.resized = True


class DeferredInterrupt:
    """A context manager: the first Ctrl-C inside is only noted, so that the answer to a request is still read, which
    names the thing to end; `on_first` is called at that first Ctrl-C. The second one interrupts. Outside the main
    thread, where no signal arrives, it does nothing."""

    def __init__(self, on_first: Callable[[], None]) -> None:
        self.came = False
        self._on_first = on_first

    def __enter__(self) -> Self:
        self._here = threading.current_thread() is threading.main_thread()
        if self._here:
            self._before = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._here:
            signal.signal(signal.SIGINT, self._before)

    def _on_interrupt(self, signum: int, frame: FrameType | None) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True
        self._on_first()
