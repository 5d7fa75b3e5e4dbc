"""Keeps data of the daemon up to date: reads them again at each event, also over restarts of the daemon.

A thread of its own reads them, so that the display stays quick: keys work while the daemon is slow, or away.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from synapsectl.client import Client
from synapsectl.errors import CtlError
from synapsed.shared.sse_parser import SseEvent

APART = 0.1
"""Least number of seconds between two reads, in spite of events."""

QUIET = 5.0
"""Seconds without an event after which the data are read again: some changes have no event."""

RETRY = 0.5
"""Seconds between two attempts to reach a daemon that is away."""


class LiveView(NamedTuple):
    """The last data (None before the first), and the reason why there is no answer now (None if there is one)."""

    told: Any = None
    away: CtlError | None = None


class Live:
    """A context manager: inside it reads data with `look`. `events` are types of events after which to read again (all
    but pieces of text if it is empty), each of which goes to `on_event`. `changed` is called, in the thread, whenever
    `seen` has changed."""

    def __init__(
        self,
        client: Client,
        look: Callable[[], Any],
        *,
        changed: Callable[[], None],
        events: str = "",
        on_event: Callable[[SseEvent], None] = lambda event: None,
    ) -> None:
        self._client = client
        self._look = look
        self._changed = changed
        self._on_event = on_event
        self._query: Mapping[str, object] | None = {"types": events} if events else None
        self._over = threading.Event()
        self._looked = 0.0
        self._stale = False
        """True if an event came since the last read."""
        self.seen = LiveView()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the thread, which ends with the process, or after `stop`."""
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """Ends the reads, once the present one has ended."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._watch()
            except CtlError as error:
                self.seen = LiveView(self.seen.told, error)
                self._changed()
            self._over.wait(RETRY)

    def _watch(self) -> None:
        """Reads, and reads again at events, until the daemon goes away."""
        with self._client.stream("/events", self._query) as stream:
            # The data are read after the stream is open, so that no later change is missed.
            self._see()
            for event in stream.events(lambda: max(0.001, self._due() - time.monotonic())):
                if self._over.is_set():
                    return
                if event is not None:
                    self._on_event(event)
                    self._stale = self._stale or event.event != "artifact"
                if time.monotonic() >= self._due():
                    self._see()

    def _due(self) -> float:
        return self._looked + (APART if self._stale else QUIET)

    def _see(self) -> None:
        self._stale = False
        told = self._look()
        self._looked = time.monotonic()
        self.seen = LiveView(told)
        self._changed()
