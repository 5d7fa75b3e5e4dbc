"""What the daemon says, looked at again whenever something happens there; over its restarts too.

A thread of its own does the looking, so that whoever shows it stays quick: a daemon that takes its time, or is away,
keeps nobody from pressing keys.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from synapsectl.client import Client
from synapsectl.errors import CtlError
from synapsed.shared.sse_parser import SseEvent

APART = 0.1
"""Seconds between two looks at the least, whatever happens."""

QUIET = 5.0
"""Seconds without an event after which it is looked again: what passes by itself tells none."""

RETRY = 0.5
"""Seconds between two attempts to reach a daemon that is away."""


class LiveView(NamedTuple):
    """What was told last, and why nobody answers now; None for either where there is nothing."""

    told: Any = None
    away: CtlError | None = None


class Live:
    """`look` asks the daemon; `events` are types of events after which to look again (all but pieces of text where it
    is empty), of which `on_event` is shown each. `changed` is called, in the thread, whenever `seen` is another."""

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
        """Something happened since."""
        self.seen = LiveView()

    def start(self) -> None:
        """Begin; it ends with the process, or after `stop`."""
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """Ask no more, once what is under way has ended."""
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
        """Look, and look again as things happen, until the daemon goes away."""
        with self._client.stream("/events", self._query) as stream:
            # Only now: what happens from here on is told.
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
