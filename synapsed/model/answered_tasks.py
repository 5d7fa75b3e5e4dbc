"""Tasks whose end was delivered to a client that asked for exactly this task."""

from synapsed.model.events import Event, TaskStatusChanged
from synapsed.model.task import TERMINAL_STATES

HEARD_MAX = 2000


def is_end(event: Event) -> bool:
    """Returns True if the event reports the end of a task."""
    return isinstance(event.data, TaskStatusChanged) and event.data.state in TERMINAL_STATES


class HeardEnds:
    """Remembers these tasks from the daemon's start on; the oldest beyond HEARD_MAX are forgotten."""

    def __init__(self) -> None:
        self._tasks: dict[str, None] = {}

    def add(self, task_id: str) -> None:
        self._tasks.pop(task_id, None)
        self._tasks[task_id] = None
        if len(self._tasks) > HEARD_MAX:
            del self._tasks[next(iter(self._tasks))]

    def __contains__(self, task_id: object) -> bool:
        return task_id in self._tasks
