"""Controls from another host for a task that it has sent here: to cancel it, or to answer its question."""

import json
from contextlib import suppress
from typing import Any, Final

from synapsed.errors import Forbidden, TaskNotCancelable
from synapsed.interfaces import SendRequest, Store, Tasks
from synapsed.model.sender import KEY as SENDER
from synapsed.model.sender import Sender, Tier
from synapsed.model.task import INTERRUPTED_STATES
from synapsed.tasks import transitions
from synapsed_fleet import receipts
from synapsed_fleet.fleet_rows import FleetChange, FleetOrigin, InRow
from synapsed_fleet.fleet_table import FleetTable
from synapsed_fleet.names import MailKind
from synapsed_fleet.outgoing import Speaker

OPEN_QUESTIONS: Final = frozenset({"question", "text", "selection"})
"""Prompts that the sender of the message may answer from another host; the others are for a person at the agent's
host."""


def refusal(src: str, named: str, kind: str, code: str, message: str) -> InRow:
    """Returns the row of a message that is refused for good."""
    return InRow(
        src=src, id=named, kind=kind, refused=json.dumps({"code": code, "message": message}, ensure_ascii=False)
    )


class Controls:
    """Performs controls; each has its effect once, even if it comes again. `persons` are the hosts whose persons count
    as persons here."""

    def __init__(self, *, me: Speaker, store: Store, table: FleetTable, tasks: Tasks, persons: frozenset[str]) -> None:
        self._me = me
        self._store = store
        self._table = table
        self._tasks = tasks
        self._persons = persons

    async def cancel(self, src: str, named: str, document: dict[str, Any]) -> None:
        origin = FleetOrigin(src, receipts.task_of(document))
        known = await self._table.taken(*origin)
        if known is None:  # the message is still on its way: it is not taken any more
            row = refusal(*origin, MailKind.MESSAGE, "CANCELED", "it was canceled before it came")
            await self._table.change(FleetChange(taken=(row,)))
        elif known.task_id is not None:
            with suppress(TaskNotCancelable):
                await self._tasks.cancel(known.task_id)

    async def answer(self, src: str, named: str, document: dict[str, Any]) -> None:
        message, prompt_id = receipts.answer_of(document)
        known = await self._table.taken(src, receipts.task_of(document))
        task = None if known is None or known.task_id is None else await self._store.task(known.task_id)
        if task is None:
            raise Forbidden("there is no such task of that host here", host=src)
        message = message.model_copy(update={"message_id": named})
        if transitions.has_answer(task, message):
            return
        person = src in self._persons
        asked = task.prompt
        if not person and task.status in INTERRUPTED_STATES and asked and asked.type not in OPEN_QUESTIONS:
            raise Forbidden(
                f"the question is for a person of {self._me.name}: 'persons = [\"{src}\"]' under [fleet] there lets "
                f"persons of {src} answer it",
                prompt=asked.prompt_id,
            )
        sender = Sender(id=f"{receipts.PERSON}@{src}", tier=Tier.EXTERNAL)
        request = SendRequest(
            message=message,
            task_id=task.id,
            prompt_id=prompt_id,
            named=True,
            of_agent=not person,
            metadata={} if person else {SENDER: sender.metadata()},
        )
        await self._tasks.send(task.agent_id, request)
