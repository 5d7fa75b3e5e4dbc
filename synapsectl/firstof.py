"""Waiting for the first of several tasks that is completed; the others go on."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from synapsectl.client import Client, task_path
from synapsectl.errors import ApiError, BadAnswer, NoDaemon, TimedOut
from synapsectl.waiting import INTERRUPTED, RECONNECT, RETRY, TERMINAL

LOOK_S = 1.0
"""Seconds between two looks at the clock; and at all the tasks, for one who may not follow the events."""


class FirstOf:
    """Waits for one of `tasks` (ids). `note` is told of each that waits for a person, once; `deadline` is on the
    monotonic clock."""

    def __init__(
        self, client: Client, tasks: Sequence[str], *, deadline: float | None, note: Callable[[str], None]
    ) -> None:
        self._client = client
        self._open = dict.fromkeys(tasks)
        self._deadline = deadline
        self._note = note
        self._noted: set[str] = set()
        self.ended: dict[str, dict[str, Any]] = {}
        """Those that have ended otherwise, by id."""

    def wait(self) -> dict[str, Any] | None:
        """The task; None where all have ended, and none is completed. Raises TimedOut, NoDaemon, ApiError."""
        give_up: float | None = None
        while self._open:
            try:
                for task_id in self._changed():
                    give_up = None
                    if (found := self._look(task_id)) is not None:
                        return found
                    if not self._open:
                        return None
            except (NoDaemon, BadAnswer) as error:
                give_up = give_up or time.monotonic() + RECONNECT
                if time.monotonic() > give_up:
                    raise NoDaemon(f"{error}; the tasks go on: see 'synapsectl tasks'") from None
            self._check()
            time.sleep(RETRY)
        return None

    def _changed(self) -> Iterator[str]:
        """All, and then each of which something is heard."""
        try:
            with self._client.stream("/events", {"types": "taskStatus"}) as stream:
                yield from list(self._open)
                for event in stream.events(lambda: LOOK_S):
                    self._check()
                    if event is not None and event.data:
                        yield from self._named(json.loads(event.data))
        except ApiError as error:
            if error.code != "FORBIDDEN":  # an agent may look at its own tasks, and not at everybody's events
                raise
            yield from list(self._open)
            time.sleep(LOOK_S)

    def _named(self, told: dict[str, Any]) -> Iterator[str]:
        events = told["data"] if told.get("event") == "batchEvents" else [told]
        yield from [event["task"] for event in events if event.get("task") in self._open]

    def _look(self, task_id: str) -> dict[str, Any] | None:
        task: dict[str, Any] = self._client.get(task_path(task_id))["task"]
        if task["status"] == "completed":
            return task
        if task["status"] in TERMINAL:
            self._open.pop(task_id, None)
            self.ended[task_id] = task
        elif task["status"] in INTERRUPTED and task_id not in self._noted:
            self._noted.add(task_id)
            self._note(f"task {task_id[:8]} waits for a person: see 'synapsectl task {task_id[:8]}'")
        return None

    def _check(self) -> None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise TimedOut("none is completed yet; the tasks go on: see 'synapsectl tasks'")
