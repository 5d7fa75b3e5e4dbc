"""What signals want of an attached terminal: its end, its stop, another size."""

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import Self

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


class TerminalSignals:
    """A context manager: inside, signals are noted here, and `fd` becomes readable with each."""

    def __init__(self) -> None:
        self.fd = -1
        self.ended: int | None = None
        """The first one that ends the process."""
        self.suspended = False
        """This process was told to stop."""
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
        """Whoever began to attach has blocked them until they are noted here."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*ENDING, signal.SIGTSTP))

    def drain(self) -> None:
        """Make `fd` unreadable until the next one."""
        with suppress(BlockingIOError):
            os.read(self.fd, 4096)

    def stop(self) -> None:
        """Stop this process, until it is continued."""
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
