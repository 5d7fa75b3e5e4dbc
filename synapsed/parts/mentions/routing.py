"""`@agent message` in an attached terminal: does the I/O for `typed_line`, which finds such lines.

An Enter that would submit a line for another agent is held until the program's composer (its input line) shows just
that line; the line is removed there, and only then the message is sent. In case of doubt the Enter goes to the program,
as without this part.
"""

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Literal

import structlog

from synapsed.aio import TaskSet
from synapsed.errors import AmbiguousAddress, SynapsedError, UnknownAgent
from synapsed.interfaces import Attachment, Directory, EventLog, LineRouting, SendRequest, Tasks, TypedLine
from synapsed.kernel import Kernel, Running
from synapsed.model.events import TaskStatusChanged
from synapsed.model.external import alias_of
from synapsed.model.task import INTERRUPTED_STATES, TERMINAL_STATES, Message, Task, TaskState
from synapsed.parts.mentions.typed_line import Enter, KeyLine, parse_mention

ANSWERS_MAX: Final = 8
"""Answers that one attached terminal waits for at a time; for further ones only the sending is shown."""

_SETTLED: Final = TERMINAL_STATES | INTERRUPTED_STATES

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Addressee:
    """The agent that a name means."""

    id: str
    name: str
    kind: Literal["local", "external"]


class MentionedAgents:
    """All agents with an address, here or elsewhere."""

    def __init__(self, directory: Directory, tasks: Tasks, events: EventLog) -> None:
        self._directory = directory
        self._tasks = tasks
        self._events = events

    def find(self, name: str, only: frozenset[str] | None = None) -> Addressee | None:
        """Returns an agent of this daemon, else one elsewhere, else None. Raises AmbiguousAddress. With `only`, just
        those names are found, and other agents are treated as absent."""
        if only is not None:
            return self._find_among(name, only)
        try:
            found = self._directory.resolve(name, folders=False)  # many programs take @FOLDER for a file
            if (alias := alias_of(found)) is not None:
                return Addressee(found, alias, "external")
            view = self._directory.view(found)
        except UnknownAgent:
            return None
        return Addressee(view.id, view.name, "local")

    def _find_among(self, name: str, only: frozenset[str]) -> Addressee | None:
        with contextlib.suppress(UnknownAgent, AmbiguousAddress):
            view = self._directory.view(self._directory.resolve(name, folders=False))
            if view.name in only:
                return Addressee(view.id, view.name, "local")
        return None

    async def send(self, to: Addressee, text: str) -> Task:
        return await self._tasks.send(to.id, SendRequest(message=Message.of(text)))

    async def settled(self, task: Task) -> Task:
        """Returns the task when it is over or waits for a person."""
        cursor = self._events.last_id
        now = await self._tasks.find(task.id)
        if now.status in _SETTLED:
            return now
        async with contextlib.aclosing(self._events.follow(cursor, task_id=task.id)) as news:
            async for event in news:
                if isinstance(event.data, TaskStatusChanged) and event.data.state in _SETTLED:
                    break
        return await self._tasks.find(task.id)


class Mentions(Running):
    """Creates the typed line of each attachment, if the configuration enables mentions."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._addressees = MentionedAgents(kernel.control.directory, kernel.control.tasks, kernel.store.events)
        self.provides = {LineRouting: self}

    def line(self, attachment: Attachment, agent_id: str, only: frozenset[str] | None) -> TypedLine | None:
        wanted = self._kernel.config.attach.mentions and only != frozenset()
        return MentionLine(attachment, agent_id, self._addressees, only) if wanted else None


@asynccontextmanager
async def opened(kernel: Kernel) -> AsyncIterator[Running]:
    yield Mentions(kernel)


class MentionLine:
    """Implements `interfaces.TypedLine` for an attachment to agent `own`. Its person may write to the agents whose
    names are in `only`; None: to all."""

    def __init__(
        self, attachment: Attachment, own: str, addressees: MentionedAgents, only: frozenset[str] | None = None
    ) -> None:
        self._attachment = attachment
        self._own = own
        self._addressees = addressees
        self._only = only
        self._line = KeyLine()
        self._answers = TaskSet()

    def passes(self, data: bytes) -> bool:
        """Returns True if these keys may go to the program at once: they cannot end a line for another agent."""
        return self._line.sure and self._line.is_plain(data)

    def passed(self, data: bytes) -> None:
        """Follows keys that the program got at once."""
        for _ in self._line.feed(data):
            pass  # it holds no Enter

    async def write(self, data: bytes) -> None:
        """Types the bytes, except an Enter that ends a line for another agent, which is sent to that agent instead."""
        if not self._line.sure and not await self._attachment.composes():
            self._line.clear()
        for part in self._line.feed(data):
            if isinstance(part, Enter) and part.line is not None and await self._routed(part.line):
                continue
            await self._attachment.type(part.data)

    async def close(self) -> None:
        await self._answers.cancel()

    async def _routed(self, line: str) -> bool:
        """Returns True if the line was for another agent, and is handled."""
        mention = parse_mention(line)
        if mention is None:
            return False
        try:
            to = self._addressees.find(mention.name, self._only)
        except AmbiguousAddress as error:
            self._attachment.notice(f"[→ {mention.name}: {error.message}]", stays=False)
            return True
        if to is None or to.id == self._own or not await self._attachment.take_line(line):
            return False
        try:
            task = await self._addressees.send(to, mention.text)
        except SynapsedError as error:
            await self._give_back(line)
            self._attachment.notice(f"[→ {to.name}: not sent: {error.message}]", stays=True)
            return True
        log.info("sent from a terminal", agent_id=self._own, to=to.id, task_id=task.id)
        self._attachment.notice(f"[→ {to.name} ({to.kind})]", stays=False)
        if mention.response:
            self._await_answer(to, task)
        return True

    async def _give_back(self, line: str) -> None:
        """Types a line that could not be sent into the composer again, if that submits nothing."""
        if line.isprintable():
            for part in self._line.feed(line.encode()):
                await self._attachment.type(part.data)

    def _await_answer(self, to: Addressee, task: Task) -> None:
        if len(self._answers) >= ANSWERS_MAX:
            self._attachment.notice(
                f"[→ {to.name}: too many answers are awaited here: synapsectl task {task.id}]", stays=True
            )
            return
        self._answers.spawn(self._show_answer(to, task))

    async def _show_answer(self, to: Addressee, task: Task) -> None:
        with contextlib.suppress(SynapsedError):
            self._attachment.notice(f"[← {to.name}] {_outcome(await self._addressees.settled(task))}", stays=True)


def _outcome(task: Task) -> str:
    """Returns the text for a person about a task that is over."""
    if task.status is TaskState.COMPLETED:
        return task.answer or "(nothing)"
    if task.error is not None:
        return f"({task.status}: {task.error.message})"
    return f"({task.status}: synapsectl task {task.id})"
