"""The way of one task to an external agent and back, continued from the step it has reached (`externals`)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, Protocol

import structlog

from synapsed.a2a_types.partial_answer import ArtifactPiece, Heard, Snapshot
from synapsed.a2a_types.remote_outcome import outcome
from synapsed.clock import Clock, iso
from synapsed.errors import (
    ExternalError,
    NotReady,
    NotWaiting,
    PromptChanged,
    RemoteRefused,
    SynapsedError,
    TaskNotCancelable,
    Unreachable,
)
from synapsed.interfaces import NewEvent, Sampling, Store, TaskFilter, context_of
from synapsed.model.events import InputAnswered, Origin
from synapsed.model.external import KEY, alias_of
from synapsed.model.sender import KEY as SENDER
from synapsed.model.task import (
    INTERRUPTED_STATES,
    TERMINAL_STATES,
    Message,
    Prompt,
    Task,
    TaskState,
)
from synapsed.parts.elsewhere.external_agent import ExternalAgent
from synapsed.parts.elsewhere.remote_protocol import LONGEST_PAUSE_S, AgentConnection
from synapsed.store.lookup import told_before
from synapsed.tasks import Told, transitions

CONNECT_TRIES: Final = 4
FIRST_PAUSE_S: Final = 0.5
EARLIER_MAX: Final = 20
EARLIER_SIZE: Final = 1024 * 1024
"""Latest tasks, and characters of them, among which one is looked for that the agent must know."""
FOLLOWED_FOR_S: Final = 24 * 3600.0
"""Seconds without an answer from the agent after which the task has failed."""

_SETTLED: Final = TERMINAL_STATES | INTERRUPTED_STATES
_DONE: Final = frozenset({TaskState.COMPLETED})
"""States of earlier tasks that the agent must know: it may have lost the memory of failed ones before."""
_NEVER: Final = 501
"""Status of a server that does not have the method at all."""
_FAILED: Final = frozenset({"InternalError", "RPC_-32603"})
"""Names of JSON-RPC's internal error."""
_SECRET: Final = frozenset({"password", "login"})
"""Types of prompts whose answer is in no event."""


class Contacts(Protocol):
    """Interface to the agents elsewhere that a courier needs."""

    sampling: Sampling

    def view(self, alias: str) -> ExternalAgent: ...

    async def remote(self, alias: str) -> AgentConnection:
        """Returns the connection to the agent."""
        ...

    async def seen(self, alias: str) -> None:
        """Notes that the agent has answered."""
        ...


log = structlog.stdlib.get_logger("synapsed.external")


class Courier:
    """Brings one task to an external agent and follows it; `task` is the task as the store has it."""

    def __init__(self, task: Task, externals: Contacts, store: Store, clock: Clock) -> None:
        self.task = task
        self._externals = externals
        self._store = store
        self._clock = clock
        self._alias = alias_of(task) or ""
        self._wake = asyncio.Event()
        self._pause = FIRST_PAUSE_S
        self._longest_pause = LONGEST_PAUSE_S
        self._heard = Heard()
        self._hearing: asyncio.Task[None] | None = None
        """Task that reads the stream of the answer to a sent message."""
        self._before: Told | None = None
        """The part of the answer that was reported so far; None until it is read from the log."""
        self._turn = asyncio.Lock()
        """Lock that lets one writer at a time record updates of the task."""
        self._answering = False
        """True while an answer to its question is on its way."""

    async def run(self) -> None:
        """Runs until the task's end; never raises an error that the agent or the way to it causes."""
        try:
            remote = await self._externals.remote(self._alias)
            if not self._there.get("task_id"):
                await self._hand_over(remote)
            await self._follow(remote)
        except SynapsedError as error:
            if not self.task.terminal:
                code = _code(error, delivered=self.delivered)
                await self._commit(
                    transitions.failed(self.task, code=code, message=error.message, now=self._clock.wall())
                )
        finally:
            if self._hearing is not None:
                self._hearing.cancel()

    # --- there ---

    @property
    def delivered(self) -> bool:
        """True if the agent is known to have the message."""
        return bool(self._there.get("task_id"))

    @property
    def _there(self) -> dict[str, Any]:
        found = self.task.metadata.get(KEY)
        return found if isinstance(found, dict) else {}

    @property
    def _settled_there(self) -> bool:
        """True if the agent says that the task waits or is over: it may not have processed our answer yet."""
        return self._heard.snapshot is not None and self._heard.snapshot.state in _SETTLED

    async def _hand_over(self, remote: AgentConnection) -> None:
        if remote.own:
            return await self._hand_over_for_sure(remote)
        if self._there.get("sending"):
            found = await self._look_for_it(remote)
            if found is not None:
                return await self._apply(found)
            await self._tell_second()
        tries, began = CONNECT_TRIES, self._clock.monotonic()
        while await self._may_send():
            try:
                key = self.task.id if remote.names_tasks else ""
                answer = await self._send(remote, self.task.message, self._metadata(), key=key)
            except Unreachable as error:
                if error.details["sent"]:
                    if (found := await self._look_for_it(remote)) is not None:
                        return await self._apply(found)
                    await self._tell_second()
                tries -= not error.details.get("busy")
                if tries == 0 or self._clock.monotonic() - began > FOLLOWED_FOR_S:
                    raise
                await self._put_off(error)
            else:
                await self._externals.seen(self._alias)
                return await self._apply(answer)
        return None

    async def _put_off(self, error: Unreachable) -> None:
        """Waits until the next attempt. A message that has not arrived may be canceled meanwhile, or be sent by another
        daemon."""
        if not error.details["sent"]:
            await self._note(sending=False)
        if error.details.get("busy"):
            self._pause = max(FIRST_PAUSE_S, error.details["after"])
        await self._rest()

    async def _may_send(self) -> bool:
        """Returns False if the task was canceled meanwhile. Records the attempt before the first byte goes out."""
        async with self._turn:
            if not self.task.terminal and not self._there.get("sending"):
                endpoint = self._externals.view(self._alias).endpoint
                await self._note(alias=self._alias, endpoint=endpoint, sending=True)
            return not self.task.terminal

    async def _hand_over_for_sure(self, remote: AgentConnection) -> None:
        """Hands the task over to another host of the user's, however long that host is away. Its daemon makes one task
        of all messages under one key, so a message that may have arrived is simply sent again."""
        while True:
            await remote.wait_up()
            if not self._there.get("sending"):
                await self._note(sending=True)
            try:
                answer = await remote.send(self.task.message, metadata=self._metadata(), key=self.task.id)
            except Unreachable as error:
                log.info("a host cannot be reached", agent=self._alias, why=error.message)
                await self._rest()
            else:
                return await self._apply(answer)

    def wake(self) -> None:
        """Tells the courier that there is a way to the agent (again)."""
        self._wake.set()

    async def _look_for_it(self, remote: AgentConnection) -> Snapshot | None:
        """Returns the task that was made of our message, or None if the agent's list, in which its earlier tasks are,
        lacks it. Raises RemoteRefused if that cannot be found out."""
        tries = CONNECT_TRIES
        while True:
            try:
                found = await remote.find(self.task.message.message_id, self.task.id)
                if found is None and (earlier := await self._earlier()) is not None:
                    await self._check_memory(remote, earlier)
            except Unreachable:
                await self._rest()
            except RemoteRefused as error:
                if _failed_there(error) and (tries := tries - 1):
                    await self._rest()
                    continue
                raise RemoteRefused(
                    f"the connection to {self._alias} was lost while the message was on its way: it is not known "
                    f"whether it arrived ({error.message}), and it is not sent again",
                    remote="LOST",
                ) from error
            else:
                return found

    async def _earlier(self) -> str | None:
        """Returns the id that an earlier task of ours has at the agent."""
        which = TaskFilter(agent_id=self.task.agent_id, states=_DONE, limit=EARLIER_MAX, size=EARLIER_SIZE)
        endpoint = self._there.get("endpoint")
        for task in (await self._store.tasks(which))[0]:
            there = task.metadata.get(KEY)
            if isinstance(there, dict) and there.get("endpoint") == endpoint and there.get("task_id"):
                return str(there["task_id"])
        return None

    async def _check_memory(self, remote: AgentConnection, earlier: str) -> None:
        """Raises RemoteRefused for an agent that has forgotten a task which it had: a server that keeps its tasks in
        memory, and was started again, lists none, and may have got the message all the same."""
        try:
            await remote.get(earlier)
        except RemoteRefused as error:
            if error.details.get("remote") == "TASK_NOT_FOUND":
                raise RemoteRefused("it does not know its earlier tasks any more", remote="FORGOTTEN") from error

    async def _tell_second(self) -> None:
        """Records in the task that its message is sent once more: the agent may have had it, and forgotten."""
        log.warning(
            "a message is sent again: its task is not in the agent's list", agent=self._alias, task=self.task.id
        )
        await self._note(sent_again=True)

    async def _send(self, remote: AgentConnection, message: Message, metadata: dict[str, Any], **ids: str) -> Snapshot:
        """Sends the message and returns the first state of its task; the rest of a stream is read in the background."""
        if not remote.streams_sends:
            return await remote.send(message, metadata=metadata, **ids)
        first: asyncio.Future[Snapshot] = asyncio.get_running_loop().create_future()
        stream = remote.stream(message, metadata=metadata, **ids)
        self._hearing = asyncio.create_task(self._hear(stream, first), name=f"stream of {self.task.id}")
        return await first

    async def _hear(self, stream: AsyncGenerator[Snapshot | ArtifactPiece], first: asyncio.Future[Snapshot]) -> None:
        try:
            await self._attend(stream, first)
            if not first.done():
                first.set_exception(RemoteRefused(f"{self._alias} answered with neither a task nor a message"))
        except Exception as error:
            if not first.done():
                first.set_exception(error)  # the waiting caller reports what became of the task
            elif isinstance(error, SynapsedError):
                log.debug("the stream of an external task broke", alias=self._alias, why=error.message)
            else:
                raise
        finally:
            first.cancel()

    async def _attend(
        self, stream: AsyncGenerator[Snapshot | ArtifactPiece], first: asyncio.Future[Snapshot] | None = None
    ) -> None:
        """Records the updates of a stream while the agent works. The end of the stream does not end the task: the task
        itself is asked for next."""
        async with aclosing(stream) as heard:
            async for told in heard:
                self._pause = FIRST_PAUSE_S / 10
                there = self._heard.take(told)
                if first is not None and not first.done():
                    first.set_result(there)
                if there.state in _SETTLED:
                    return
                if there.state is TaskState.WORKING:
                    await self._work()
                if isinstance(told, ArtifactPiece):
                    await self._say()

    async def _ask(self, remote: AgentConnection) -> Snapshot:
        """Returns the task as it is; if the agent no longer knows it, as it was at the end of the stream. Raises
        Unreachable if the agent failed at the request, which may be repeated."""
        try:
            return await remote.get(str(self._there.get("task_id")))
        except RemoteRefused as error:
            if (heard := self._heard.snapshot) is not None and heard.state in _SETTLED:
                return heard
            if _failed_there(error):
                raise Unreachable(error.message, sent=False) from error
            raise

    async def _follow(self, remote: AgentConnection) -> None:
        last_word = self._clock.monotonic()
        while True:
            if (hearing := self._hearing) is not None:
                await asyncio.wait([hearing])
                self._hearing = None if self._hearing is hearing else self._hearing
            if self.task.terminal:
                return
            self._longest_pause = remote.longest_pause_s
            task_id = str(self._there.get("task_id"))
            try:
                await self._apply(await self._ask(remote))
                await self._externals.seen(self._alias)
                if remote.streaming and self.task.status not in _SETTLED and not self._settled_there:
                    await self._listen(remote, task_id)
                elif not self.task.terminal:
                    await self._say()
                last_word = self._clock.monotonic()
            except Unreachable as error:
                if not remote.own and self._clock.monotonic() - last_word > FOLLOWED_FOR_S:
                    raise
                log.info("an external agent cannot be reached", alias=self._alias, why=error.message)
                if error.details.get("busy"):
                    self._pause = max(self._pause, error.details["after"])
            await self._rest()

    async def _listen(self, remote: AgentConnection, task_id: str) -> None:
        try:
            await self._attend(remote.follow(task_id))
        except RemoteRefused as error:
            log.debug("no stream of an external task", alias=self._alias, why=error.message)

    async def _rest(self) -> None:
        """Pauses, each time for longer; an answer to the task's question ends the pause."""
        try:
            async with asyncio.timeout(self._pause):
                await self._wake.wait()
        except TimeoutError:
            self._pause = min(self._pause * 2, self._longest_pause)
        else:
            self._pause = FIRST_PAUSE_S
        self._wake.clear()

    def _metadata(self) -> dict[str, Any]:
        """Returns the metadata that goes with the message; it does not say where this daemon listens."""
        told = {key: value for key, value in self.task.metadata.items() if key != KEY}
        if (share := self._externals.sampling.share) is not None:
            told |= context_of(self.task.id, told, share=share).metadata()  # over there it is part of this task
        if self._there.get("from"):
            told[SENDER] = {"sender_id": self._there["from"]}
        elif isinstance(sender := told.get(SENDER), dict):
            told[SENDER] = {key: sender[key] for key in ("sender_id", "sender_type") if key in sender}
        return {**told, "synapsed": {"priority": self.task.priority}}

    # --- requests of callers ---

    async def cancel(self) -> Task:
        if self.task.terminal:
            raise TaskNotCancelable(f"task {self.task.id} is {self.task.status.value} already", task=self.task.id)
        there = self._there
        if there.get("sending") and not there.get("task_id"):
            raise NotReady("the message is on its way: try again in a moment", task=self.task.id)
        if not there.get("task_id"):
            async with self._turn:
                await self._commit(transitions.canceled(self.task, reason="canceled", now=self._clock.wall()))
            self._wake.set()
            return self.task
        remote = await self._externals.remote(self._alias)
        await self._apply(await remote.cancel(str(there["task_id"])))
        self._wake.set()
        return self.task

    async def answer(self, message: Message, prompt_id: str | None, origin: Origin) -> Task:
        task, there = self.task, self._there
        if task.status not in INTERRUPTED_STATES or not there.get("task_id"):
            raise NotWaiting(f"task {task.id} is {task.status.value}, it does not wait for input", task=task.id)
        if prompt_id is None and task.prompt is not None:
            prompt_id = task.prompt.prompt_id
        if there.get("asked", {}).get("given"):  # an answer to this question was sent, and may have arrived
            await self._apply(await (await self._externals.remote(self._alias)).get(str(there["task_id"])))
            task = self.task
        if task.prompt is None:
            raise NotWaiting(f"task {task.id} does not wait for input any more: look at it", task=task.id)
        if prompt_id != task.prompt.prompt_id:
            raise PromptChanged("it asks something else now", prompt_id=task.prompt.prompt_id)
        if self._answering:
            raise NotWaiting(f"an answer to task {task.id} is on its way already: look at the task", task=task.id)
        self._answering = True
        try:
            await self._give(message, origin)
        finally:
            self._answering = False
            self._wake.set()
        return self.task

    async def _give(self, message: Message, origin: Origin) -> None:
        """Sends the answer, and records what came of it."""
        task, there = self.task, self._there
        remote = await self._externals.remote(self._alias)
        ids = {"task_id": str(there["task_id"]), "context_id": str(there.get("context_id") or "")}
        asked = task.prompt.prompt_id if task.prompt is not None else None
        # Over there it may have been answered by now. An id that was made here is unknown there.
        known = asked is not None and not asked.startswith(f"{ids['task_id']}:")
        metadata = {"synapsed": {"prompt_id": asked}} if known else {}
        given = None if task.prompt is None else _given(task.prompt, message, origin)
        async with self._turn:  # after a kill the same words may be its next question
            present = self.task.prompt
            if self.task.terminal or (present is None) != (asked is None):
                raise NotWaiting(f"task {task.id} does not wait for input any more: look at it", task=task.id)
            if present is not None and present.prompt_id != asked:  # meanwhile
                raise PromptChanged("it asks something else now", prompt_id=present.prompt_id)
            await self._note(asked={**self._there.get("asked", {}), "given": True})
        await self._apply(await self._send(remote, message, metadata, **ids), given=given)

    # --- news of the task ---

    async def _apply(self, there: Snapshot, *, given: InputAnswered | None = None) -> None:
        """Records the state `there`; `given` is an answer just sent, whose question may be gone by now."""
        async with self._turn:
            if self.task.terminal:
                return
            known = self._there
            if there.id != known.get("task_id") or there.context_id != known.get("context_id"):
                await self._note(sending=True, task_id=there.id, context_id=there.context_id)
            self._heard.take(there)
            told = (await self._told()).text if there.state is TaskState.COMPLETED else ""
            now = self._clock.wall()
            stands = self.task.prompt.prompt_id if self.task.prompt is not None else None
            answered = given is not None and given.prompt_id == stands
            commit = outcome(self.task, there, by=self._alias, now=now, answered=answered, told=told)
            if given is not None:
                commit = commit or transitions.Commit(task=self.task)
                commit = replace(commit, events=(NewEvent.of(self.task, given), *commit.events))
            if commit is not None:
                await self._commit(commit)

    async def _work(self) -> None:
        async with self._turn:
            if self.task.status is TaskState.SUBMITTED:
                await self._commit(transitions.working_again(self.task, now=self._clock.wall()))

    async def _say(self) -> None:
        async with self._turn:
            piece = (await self._told()).toward(self._heard.so_far)
            if piece is not None and not self.task.terminal:
                await self._store.commit(events=[transitions.said(self.task, text=piece[0], append=piece[1])])

    async def _told(self) -> Told:
        if self._before is None:
            self._before = Told(await told_before(self._store.events, self.task.id), again=True)
        return self._before

    async def _note(self, **learned: Any) -> None:
        metadata = {**self.task.metadata, KEY: {**self._there, **learned}}
        task = self.task.model_copy(update={"metadata": metadata, "updated_at": iso(self._clock.wall())})
        await self._store.commit(tasks=[task])
        self.task = task

    async def _commit(self, commit: transitions.Commit) -> None:
        await self._store.commit(events=commit.events, tasks=[commit.task], turn_ended=commit.turn_ended)
        self.task = commit.task


def _given(prompt: Prompt, message: Message, origin: Origin) -> InputAnswered:
    """Returns the event that reports the answer, without passwords and links to log in."""
    answer = None if prompt.type in _SECRET else message.text
    return InputAnswered(prompt_id=prompt.prompt_id, answer=answer, by=origin.by, who=origin.who, where=origin.where)


def _failed_there(error: RemoteRefused) -> bool:
    """Returns True if the agent failed at a request, which it may answer later, and did not refuse it."""
    status = error.details.get("status", 0)
    return (status >= 500 and status != _NEVER) or error.details.get("remote") in _FAILED


def _code(error: SynapsedError, *, delivered: bool) -> str:
    """Returns the code of a failed task. A message that the agent has is never "undelivered", even if the agent cannot
    be reached later."""
    if isinstance(error, RemoteRefused):
        remote = str(error.details.get("remote", ""))
        if remote in ("HTTP_401", "HTTP_403"):
            return "AUTH_REQUIRED"
        if remote == "TASK_NOT_FOUND":
            return "AGENT_EXITED"
    if not isinstance(error, ExternalError):
        return error.code
    answered = isinstance(error, RemoteRefused) and error.details.get("remote") == "INVALID"
    if not (delivered or answered):
        return "UNDELIVERED"
    return "TIMEOUT" if isinstance(error, Unreachable) else "MODEL_ERROR"
