"""Items that wait for a person, as hosts publish them in their records: those of this host, and those of the others.

The text of a question is in the record only if the configuration says so (`[fleet.events] content`): agent, kind and
time are enough to know where a person is needed. A question is answered at its host, or, if it is about a message that
this host sent, by the message's task here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, get_args

from synapsed.interfaces import HostSaid, HostState
from synapsed.model.events import AttentionItem, AttentionKind
from synapsed.model.task import Task
from synapsed_fleet.fleet_rows import FleetOrigin
from synapsed_fleet.host_record import WAITS_MAX, WORDS_MAX, HostRecord, WaitRecord
from synapsed_fleet.task_controls import OPEN_QUESTIONS

KINDS: Final = frozenset(get_args(AttentionKind.__value__))


@dataclass(frozen=True, slots=True)
class Waits:
    """Waiting items that a host publishes: the oldest, and the number of the others. None: the host publishes
    nothing."""

    items: list[WaitRecord] | None
    more: int = 0


NOTHING_TOLD: Final = Waits(None)


class TaskSource(Protocol):
    async def task(self, task_id: str) -> Task | None: ...


class Waiting:
    """Reads this host's waiting items for its record. `source` returns them; None if nobody here knows them. `publish`
    and `content` are the options of `[fleet.events]`."""

    def __init__(self, tasks: TaskSource, accepts: Callable[[str], bool], *, publish: bool, content: bool) -> None:
        self._tasks = tasks
        self._accepts = accepts
        self._publish = publish
        self._content = content
        self.source: Callable[[], Sequence[AttentionItem] | None] = lambda: None

    async def told(self) -> Waits:
        if not self._publish or (found := self.source()) is None:
            return NOTHING_TOLD
        mine = [item for item in found if item.host is None and self._accepts(item.agent)]
        items = [await self._record(item) for item in mine[:WAITS_MAX]]
        return Waits(items, len(mine) - len(items))

    async def _record(self, item: AttentionItem) -> WaitRecord:
        task = None if item.task is None else await self._tasks.task(item.task)
        origin = None if task is None else FleetOrigin.of(task.metadata)
        return WaitRecord(
            id=item.id,
            agent=item.agent,
            kind=item.kind,
            since=item.since,
            prompt_type=item.prompt_type,
            question=item.question[:WORDS_MAX] if self._content else "",
            src=None if origin is None else origin.src,
            task=None if origin is None else origin.id,
        )


def inbox(
    records: Sequence[HostRecord], state: Callable[[HostRecord], str], *, own: str
) -> tuple[list[AttentionItem], list[HostSaid]]:
    """Returns the items that wait on the other hosts, and each host's state. Absent hosts have no items."""
    items: list[AttentionItem] = []
    said: list[HostSaid] = []
    for told in records:
        if told.host == own:
            continue
        now = state(told)
        up = HostState.UP if now == "up" else HostState.DOWN
        if now != "up" or told.waits is None:
            why = f"{told.host} is {now}" if now != "up" else f"{told.host} does not tell who waits there"
            said.append(HostSaid(name=told.host, state=up, error=why))
            continue
        found = [one for one in told.waits if one.kind in KINDS]
        items += [_item(one, told.host, own) for one in found]
        said.append(
            HostSaid(name=told.host, state=up, items=len(found), left_out=told.more + len(told.waits) - len(found))
        )
    return items, said


def _item(one: WaitRecord, host: str, own: str) -> AttentionItem:
    mine = one.task if one.src == own else None
    ours = one.kind == "question" and (one.prompt_type is None or one.prompt_type in OPEN_QUESTIONS)
    how = f"'synapsectl input {mine[:8]}' answers it" if mine is not None and ours else f"it is answered at {host}"
    return AttentionItem(
        id=f"{one.id}@{host}",
        agent=f"{one.agent}@{host}",
        agent_id=f"{one.agent}@{host}",
        host=host,
        cwd="",
        kind=one.kind,  # type: ignore[arg-type]  # it is one of them
        question=one.question or f"it is not told here; {how}",
        since=one.since,
        task=mine,
        prompt_type=one.prompt_type,
        terminal=False,
    )
