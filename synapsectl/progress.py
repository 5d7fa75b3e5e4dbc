"""Progress of a slow action: one line on stderr, drawn over itself, and only on a terminal."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from synapsectl.ages import length
from synapsectl.colours import DIM, painted, wanted
from synapsectl.output import clip, one_line

ERASE = "\r\x1b[K"
PATIENCE = 1.0
"""Seconds after which an action is shown."""


class StatusLine:
    """One line on `stream` (stderr). Nothing is written if that is no terminal, or one without escape sequences, or if
    `on` is False."""

    def __init__(
        self,
        stream: TextIO,
        environ: Mapping[str, str],
        *,
        on: bool = True,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._on = on and stream.isatty() and environ.get("TERM") != "dumb"
        self._coloured = wanted(environ, on_terminal=self._on)
        self._now = now
        self._began = now()
        self._drawn = False

    @property
    def on(self) -> bool:
        return self._on

    def show(self, what: str) -> None:
        """Shows that `what` is going on, and for how long."""
        took = self._now() - self._began
        if not self._on or took < PATIENCE:
            return
        text = clip(one_line(f"{what} {length(int(took))}"), self._columns() - 1)
        self._stream.write(ERASE + (painted(text, DIM) if self._coloured else text))
        self._stream.flush()
        self._drawn = True

    def clear(self) -> None:
        """Clears the line, because something else is to be written."""
        if self._drawn:
            self._stream.write(ERASE)
            self._stream.flush()
            self._drawn = False

    def _columns(self) -> int:
        import os

        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (OSError, ValueError):
            return 80


@contextmanager
def in_progress(what: str, stream: TextIO, environ: Mapping[str, str]) -> Iterator[None]:
    """Shows the action while the block runs, if that takes longer than a moment."""
    import threading

    line = StatusLine(stream, environ)
    if not line.on:
        yield
        return
    over = threading.Event()

    def tick() -> None:
        while not over.wait(PATIENCE):
            line.show(what)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        line.clear()
