"""The mailbox of one agent: the tasks that wait for their turn, in order. Pure.

Order: tasks that were taken and given back unsubmitted, then priority (5 before 4 before 1), then arrival. Bounded: a
task that does not fit is refused with QueueFull; an accepted task is never dropped.
"""

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from synapsed.errors import QueueFull
from synapsed.model.task import Task
from synapsed.shared.counts import counted

CAPACITY = 100
"""Largest number of waiting tasks of one agent."""


@dataclass(order=True, slots=True)
class _Entry:
    returned: int
    """0 for a task that was given back, so that it sorts first; 1 otherwise."""
    urgency: int
    number: int
    task: Task = field(compare=False)


class Mailbox:
    def __init__(self, *, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._entries: list[_Entry] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Task]:
        """Yields the tasks in the order in which they will be taken."""
        return (entry.task for entry in self._entries)

    def __contains__(self, task_id: str) -> bool:
        return any(entry.task.id == task_id for entry in self._entries)

    @property
    def oldest(self) -> str | None:
        """Returns the time at which the oldest waiting task was made, RFC 3339."""
        return min((entry.task.created_at for entry in self._entries), default=None)

    def check_room(self) -> None:
        """Raises QueueFull if another task would not fit."""
        if len(self._entries) >= self._capacity:
            waiting = counted(len(self._entries), "message waits", "messages wait")
            raise QueueFull(f"{waiting} for this agent already; try again later", queue=len(self._entries))

    def push(self, task: Task) -> None:
        """Appends `task` behind those of its priority; raises QueueFull."""
        self.check_room()
        self._insert(task)

    def restore(self, tasks: Iterable[Task]) -> None:
        """Puts back tasks that were accepted before, in order of arrival, without a check for room."""
        for task in tasks:
            self._insert(task)

    def give_back(self, task: Task) -> None:
        """Puts back, before all others, a task that was taken but not submitted to the program."""
        self._number += 1
        bisect.insort(self._entries, _Entry(0, 0, -self._number, task))

    def peek(self) -> Task | None:
        return self._entries[0].task if self._entries else None

    def remove(self, task_id: str) -> Task | None:
        """Takes out a waiting task; None if it does not wait here."""
        for index, entry in enumerate(self._entries):
            if entry.task.id == task_id:
                return self._entries.pop(index).task
        return None

    def _insert(self, task: Task) -> None:
        self._number += 1
        bisect.insort(self._entries, _Entry(1, -task.priority, self._number, task))
