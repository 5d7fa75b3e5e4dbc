"""The turns of one agent: each task is taken from its mailbox, given to the link, and brought to its end.

Everything here runs in the agent's actor. This order keeps a prompt from being typed twice, and a task from being lost,
over a kill -9 at any point:

1. the task is durable before `accept` returns;
2. the task is `working` and its turn recorded before the link gets it, together with the record that the link writes
   ahead of its first act (`prepare`); for a task that can be worked on at once, 1 and 2 are one commit;
3. the link's own record is durable before the link acts on it (LinkTurnRecord, `recorded`);
4. the files that go with a message are written before it is typed;
5. the task's end is durable before the next task is taken.

A task ends by the link's report of its turn and by nothing else. A request to a running turn (`interruption`) is an
operation: its outcome is believed when the link confirms it.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from synapsed.agents import message_files
from synapsed.agents.actor import Actor
from synapsed.agents.agent_process import AgentProcess
from synapsed.agents.attention_changes import Attention
from synapsed.agents.interruption import Interruption
from synapsed.agents.mailbox import Mailbox
from synapsed.agents.part_doors import AnswerDoor, HoldDoor, PartDoors
from synapsed.agents.part_interfaces import TaskEnds
from synapsed.agents.pending_answers import Given, GivenAnswers
from synapsed.agents.turn_outcome import INTERRUPTED, outcome
from synapsed.clock import Clock
from synapsed.errors import NotReady, NotWaiting, StoreError, SynapsedError, TaskNotCancelable
from synapsed.interfaces import AgentLink, Delivery, NewEvent, Store
from synapsed.model.agent import Activity
from synapsed.model.link import (
    LinkEvent,
    LinkExited,
    LinkObserved,
    LinkTurnAccepted,
    LinkTurnEnded,
    LinkTurnProgress,
    LinkTurnRecord,
    LinkTurnSaid,
)
from synapsed.model.records import ReplyRecord, TurnRecord
from synapsed.model.task import INTERRUPTED_STATES, Artifact, Prompt, Task, TaskState
from synapsed.profiles.profile import Profile
from synapsed.store.lookup import told_before
from synapsed.tasks import prompt_text, transitions
from synapsed.tasks.live_answer import Told
from synapsed.tasks.prompt_text import Letter
from synapsed.tasks.transitions import Commit

INTERRUPT_PRIORITY = 5
"""A task of this priority stops the turn that runs, and is the next one."""

OF_NO_TURN = frozenset({"trust", "login", "screen"})
"""Kinds of questions that a program asks before it does any work, and screens that are not understood: the keys that
stop a turn would refuse such a question, or end the program."""


@dataclass(slots=True)
class _Turn:
    task: Task
    record: TurnRecord
    told: Told | None = None
    """The text that was reported so far; None if it must be read from the log, where an earlier daemon has put it."""


class AgentTurns:
    """Runs the turns. While the record wants a restart no task is taken. `ends` gets each task that is at its end."""

    def __init__(
        self,
        process: AgentProcess,
        profile: Profile,
        *,
        store: Store,
        clock: Clock,
        actor: Actor,
        inbox: Path,
        kept: Path,
        hold: HoldDoor,
        attention: Attention,
        ends: TaskEnds,
        doors: PartDoors,
    ) -> None:
        self._process = process
        self._ends = ends
        self._attention = attention
        self._hold = hold
        self._limit_note = profile.prompts.limit_note
        self._renewed_for: str | None = None
        self._delivery = profile.delivery
        self._inbox = inbox
        self._kept = kept
        self._store = store
        self._clock = clock
        self._actor = actor
        self._blocks = AnswerDoor(doors, profile)
        self._mailbox = Mailbox()
        self._attempts: dict[str, TurnRecord] = {}
        """Turns of waiting tasks that were given back."""
        self._turn: _Turn | None = None
        self._background = 0
        """Number of things that its program was seen to run in its background."""
        self.interruption = Interruption(process, self, clock=clock, actor=actor)
        self._giving: asyncio.Task[None] | None = None
        """The task that gives the turn to the link."""
        self.answers = GivenAnswers()

    @property
    def queue(self) -> int:
        """Returns the number of waiting tasks."""
        return len(self._mailbox)

    @property
    def untyped(self) -> int:
        """Returns the number of messages that the program does not have: those that wait, and one whose turn has begun
        but which is not submitted yet."""
        begun = self._turn is not None and not transitions.is_submitted(self._turn.record)
        return self.queue + begun

    @property
    def oldest(self) -> str | None:
        return self._mailbox.oldest

    @property
    def current(self) -> Task | None:
        return self._turn.task if self._turn else None

    @property
    def works_on_message(self) -> bool:
        """Returns whether a message that is no command was submitted, and its turn is not being stopped."""
        turn = self._turn
        return (
            turn is not None
            and transitions.is_submitted(turn.record)
            and not transitions.is_command(turn.task)
            and self.interruption.pending is None
        )

    @property
    def at_rest(self) -> bool:
        """Returns whether no task waits, is worked on, or is being interrupted."""
        return not self._mailbox and self._turn is None and self.interruption.pending is None

    @property
    def open_tasks(self) -> list[str]:
        """Returns the ids of the tasks that wait or are worked on."""
        return [task.id for task in self._mailbox] + ([self._turn.task.id] if self._turn else [])

    def ahead(self, task_id: str) -> int | None:
        """Returns the number of tasks that are taken before this waiting one; None if it does not wait."""
        return next((number for number, task in enumerate(self._mailbox) if task.id == task_id), None)

    def restore(self, tasks: Iterable[Task], records: Iterable[TurnRecord]) -> list[Task]:
        """Restores the agent's tasks from the store, in order of arrival; called before the actor runs. Returns the
        tasks that neither wait nor have a turn, which only a damaged database has."""
        by_task = {record.task_id: record for record in records}
        waiting, strays = [], []
        for task in tasks:
            record = by_task.get(task.id)
            if task.status is TaskState.SUBMITTED:
                waiting.append(task)
                if record is not None:
                    self._attempts[task.id] = record
            elif record is not None and self._turn is None:
                self._turn = _Turn(task, record)
            else:
                strays.append(task)
        fresh = [task for task in waiting if task.id not in self._attempts]
        self._mailbox.restore(fresh)
        for task in waiting:
            if task.id in self._attempts:
                self._mailbox.give_back(task)
        return strays

    # --- requests ---

    async def accept(self, task: Task, reply: ReplyRecord | None = None) -> Task:
        """Takes a new task; it is durable when this returns, together with `reply`. Raises QueueFull, StoreError, and
        InvalidRequest, TooLarge for a message that cannot be delivered."""
        self._mailbox.check_room()
        letter = self._compose(task)
        commit = transitions.accepted(task, reply)
        if task.priority >= INTERRUPT_PRIORITY:
            await self._hold.lift("a person does not wait")
        if (
            not self._mailbox
            and not transitions.wants_new_conversation(task)
            and (link := await self._receiver()) is not None
        ):
            return await self._begin(link, task, *commit.events, reply=reply, letter=letter)
        await self._commit(commit)
        self._mailbox.push(task)
        if task.priority >= INTERRUPT_PRIORITY and await self.runs_something():
            self.interruption.begin(INTERRUPTED)
        try:
            await self.pump()
        except StoreError as error:  # the task is durable: it waits, and a sweep tries again
            self._actor.log.warning("the database refused; the task waits", error=error.message)
        turn = self._turn
        if turn is not None and turn.task.id == task.id:
            return turn.task
        return task if task.id in self._mailbox else await self._store.task(task.id) or task

    async def enter(self, task: Task) -> None:
        """Puts a task that is durable already into the mailbox."""
        if task.id not in self.open_tasks:
            self._mailbox.restore([task])
            await self.pump()

    async def runs_something(self) -> bool:
        """Returns whether a turn runs, a person's own included."""
        if self._turn is not None:
            return True
        seen = await link.observe() if (link := self._process.link) is not None else None
        if seen is None or seen.activity is not Activity.WAITING:
            return seen is not None and seen.activity is Activity.BUSY
        return seen.prompt is not None and seen.prompt.type not in OF_NO_TURN

    async def cancel(self, task_id: str) -> asyncio.Future[bool] | Task:
        """Cancels a task: returns it if it waited, else its interruption. Raises TaskNotCancelable, StoreError."""
        if (task := next((task for task in self._mailbox if task.id == task_id), None)) is not None:
            return (await self._cancel_waiting(task, "canceled")).task
        if self._turn is None or self._turn.task.id != task_id:
            raise TaskNotCancelable(f"task {task_id} has ended just now", task=task_id)
        if self._process.link is None:
            raise TaskNotCancelable("the agent cannot be reached just now; try again", task=task_id)
        return self.interruption.begin("canceled")

    async def cancel_waiting(self) -> None:
        """Cancels every waiting task, because the agent is being removed."""
        for task in list(self._mailbox):
            await self._cancel_waiting(task, "removed")

    async def _cancel_waiting(self, task: Task, reason: str) -> Commit:
        return await self._drop(transitions.canceled(task, reason=reason, now=self._clock.wall()))

    async def _drop(self, commit: Commit) -> Commit:
        """Ends a task that waits."""
        await self._commit(commit)
        self._mailbox.remove(commit.task.id)
        self._attempts.pop(commit.task.id, None)
        return commit

    async def asked(self, task_id: str) -> Prompt:
        """Returns the prompt that task `task_id` waits for; raises NotWaiting."""
        task = self.current
        if task is None or task.id != task_id or task.status not in INTERRUPTED_STATES or task.prompt is None:
            raise NotWaiting(f"task {task_id} does not wait for input", task=task_id)
        return task.prompt

    async def hand_over(self, task_id: str, artifact: Artifact, *, append: bool, last_chunk: bool) -> Task:
        """Adds an artifact that the program made in this turn. Raises NotWaiting if it does not work on the task."""
        if (task := self.current) is None or task.id != task_id:
            raise NotWaiting(f"task {task_id} is not being worked on", task=task_id)
        commit = transitions.handed_over(
            task, artifact=artifact, append=append, last_chunk=last_chunk, now=self._clock.wall()
        )
        return (await self._commit(commit)).task

    async def end_answer(self) -> None:
        """Notes that the answer was taken, or was not."""
        if (put_off := self.answers.end()) is not None:
            seen, again = put_off
            if (commit := self.observed(seen, again=again)) is not None:
                await self.persist(commit)

    async def answered(self, task_id: str | None, given: Given) -> Task | None:
        """Reports that the program took an answer; in the same commit the task is worked on again, even if a new
        question follows."""
        task = self.current if self.current is not None and self.current.id == task_id else None
        if task is None and task_id is not None:
            task = await self._store.task(task_id)  # its turn ended before the answer was reported
        if task is not None and given.prompt is not None and not given.secret:
            task = transitions.answered(task, prompt=given.prompt, answer=given.answer)
        change = self._attention.answered(given, task)
        self.answers.took(given.prompt_id)
        if task is not None and transitions.waits_for(task, given.prompt_id):
            task = (await self._commit(transitions.working_again(task, now=self._clock.wall()), *change.events)).task
        else:
            await self._store.commit(events=change.events, tasks=[task] if task is not None else [])
            if task is not None:
                self.believe(Commit(task=task))
        self._attention.believe(change)
        return task

    # --- reports of the link ---

    async def pump(self) -> None:
        """Takes the next task if the agent can receive it now."""
        if (task := self._mailbox.peek()) is None or (link := await self._receiver()) is None:
            return
        renewed = self._renewed_for == task.id or self._goes_on(link, task)
        if transitions.wants_new_conversation(task) and not renewed:
            try:
                renewing = await self._process.renew(task.context_id)
            except NotReady as error:  # it must not be typed in the old conversation
                await self._drop(transitions.undelivered(task, reason=error.message, screen="", now=self._clock.wall()))
                await self.pump()
                return
            self._renewed_for = task.id
            if renewing:
                return
        await self._begin(link, task)

    def _goes_on(self, link: AgentLink, task: Task) -> bool:
        """Returns True if the program has the message of a task that was put off."""
        turn = self._attempts.get(task.id)
        if turn is None or turn.continued is None:
            return False
        return turn.continued == link.launch.launch_id or link.launch.resumed

    async def _receiver(self) -> AgentLink | None:
        """Returns the link, if it can be given a message now."""
        stops, runs = self.interruption.pending is not None, self._turn is not None
        from synapsed.pty.readiness import Moment, obstacle  # late: only agents need its modules

        now = Moment(hold=self._hold.hold(), interrupting=stops, in_turn=runs)
        if (link := self._process.link) is None or obstacle(now) is not None:
            return None
        seen = await link.observe()
        restarts = self._process.record.restart_pending and not seen.background
        return link if seen.can_receive and not restarts else None

    async def _begin(
        self,
        link: AgentLink,
        task: Task,
        *before: NewEvent,
        reply: ReplyRecord | None = None,
        letter: Letter | None = None,
    ) -> Task:
        """Begins the work on `task`; `before` is reported first, `reply` is durable with it. `letter` is the text to
        type, if it is composed already."""
        returned = self._attempts.get(task.id)
        attempt = returned.attempt if returned else 1
        commit = transitions.begun(task, launch_id=link.launch.launch_id, attempt=attempt, now=self._clock.wall())
        assert commit.turn is not None
        continued = link.launch.launch_id if self._goes_on(link, task) else None
        command = transitions.is_command(task) and continued is None
        record = link.prepare(commit.turn.model_copy(update={"continued": continued}), command=command)
        await self._commit(replace(commit, events=(*before, *commit.events), turn=record, reply=reply))
        self._mailbox.remove(task.id)
        self._attempts.pop(task.id, None)
        self._turn = _Turn(commit.task, record, None if returned else Told())
        if self._renewed_for != task.id:
            self._renewed_for = None  # the new conversation is this task's, which went first
        self._deliver(link, fresh=True, letter=letter)
        return commit.task

    async def resume(self, link: AgentLink) -> None:
        """Continues the turn in flight on an adopted program."""
        if self._turn is None:
            return
        if self._turn.record.launch_id == link.launch.launch_id:
            self._deliver(link, fresh=False)
            if any(task.priority >= INTERRUPT_PRIORITY for task in self._mailbox):
                self.interruption.begin(INTERRUPTED)  # the last daemon may have begun this
            elif transitions.is_being_stopped(self._turn.record):
                self.interruption.begin("canceled")
        elif (commit := self.settle(LinkExited(None, "the program that worked on it is gone"))) is not None:
            await self.persist(commit)

    def observed(self, seen: LinkObserved, *, again: bool = False) -> Commit | None:
        """Returns the changes of the present task after an observation; `again`: its prompt is asked once more."""
        self._background = len(seen.background)
        if (task := self.current) is None:
            return None
        if not self.answers.counts(seen, again=again, waits=task.status in INTERRUPTED_STATES):
            return None
        if seen.activity is Activity.WAITING or seen.prompt is not None:
            if seen.prompt is None or (task.prompt and task.prompt.is_same(seen.prompt) and not again):
                return None
            return transitions.waiting(task, prompt=seen.prompt, now=self._clock.wall())
        if task.status in INTERRUPTED_STATES and seen.activity in (Activity.BUSY, Activity.READY):
            return transitions.working_again(task, now=self._clock.wall())
        return None

    def settle(self, exited: LinkExited, *, code: str = "AGENT_EXITED") -> Commit | None:
        """Returns the result for the turn in flight when its program is gone: the task failed, or waits again if its
        message was not submitted."""
        if (turn := self._turn) is None:
            return None
        now = self._clock.wall()
        how = transitions.describe_exit(exited)
        if not transitions.is_submitted(turn.record):
            return transitions.returned(turn.task, turn.record, reason=f"the program ended before it ({how})", now=now)
        return transitions.failed(
            turn.task,
            code=code,
            message=f"the program ended while it worked on this task ({how})",
            details=transitions.exit_details(exited),
            now=now,
        )

    def believe(self, commit: Commit) -> None:
        """Takes over a `commit` that is durable."""
        if commit.task.terminal:
            self._ends.ended(commit.task)
        if (turn := self._turn) is None or turn.task.id != commit.task.id:
            return
        turn.task = commit.task
        if commit.turn_ended is not None:
            self._turn = None
            self.interruption.turn_ended(commit.task)
        elif commit.task.status is TaskState.SUBMITTED and commit.turn is not None:
            self._turn = None
            self._attempts[commit.task.id] = commit.turn
            self._mailbox.give_back(commit.task)

    async def handle(self, event: LinkEvent, link: AgentLink) -> None:
        """Handles a fact about the turn; facts about another turn are ignored."""
        turn = self._turn
        if isinstance(event, LinkTurnRecord):
            if turn is not None and turn.task.id == event.record.task_id:
                told = transitions.delivered(turn.task, turn.record, event.record)
                await self._actor.persist(self._store.commit, turn=event.record, events=told)
                turn.record = event.record
                link.recorded(event.record)
            return
        if turn is None or getattr(event, "task_id", turn.task.id) != turn.task.id:
            self._actor.log.debug("a fact of another turn", fact=type(event).__name__)
            return
        if isinstance(event, LinkTurnAccepted):
            await self._accepted(event, turn)
            return
        if isinstance(event, LinkTurnSaid):
            await self._say(event, turn)
            return
        if await self._held(event, turn, link):
            return
        if (commit := await self._decide(event, turn)) is not None:
            await self.persist(commit)
            if commit.turn_ended is not None:
                evidence = getattr(event, "evidence", None)
                self._actor.log.info(
                    "turn ended", task=commit.task.id, status=commit.task.status.value, evidence=evidence
                )
                link.settled()
            if isinstance(event, LinkTurnEnded):
                await self._hold.lift("a turn ended")
            self.interruption.end()
            await self.pump()

    async def _accepted(self, event: LinkTurnAccepted, turn: _Turn) -> None:
        """Reports the delivery of a message whose turn was over at once, before its record was durable."""
        self._actor.log.info("message accepted", task=event.task_id, evidence=event.evidence)
        after = turn.record.model_copy(update={"link": {**turn.record.link, "taken": True}})
        if told := transitions.delivered(turn.task, turn.record, after):
            await self._actor.persist(self._store.commit, turn=after, events=told)
            turn.record = after

    async def _held(self, event: LinkEvent, turn: _Turn, link: AgentLink) -> bool:
        """Returns whether the turn ended for a reason that its message did not cause; it then waits again, or fails."""
        if isinstance(event, LinkTurnProgress):
            return False
        held = await self._hold.turn_over(event, stopped=self.interruption.pending is not None)
        if held is None:
            return False
        now = self._clock.wall()
        if held.code:
            commit = transitions.failed(turn.task, code=held.code, message=held.reason, details=held.details, now=now)
        else:
            commit = transitions.put_off(turn.task, turn.record, reason=held.reason, now=now)
        await self.persist(commit)
        link.settled()
        self.interruption.end()
        return True

    async def _pieces_of(self, turn: _Turn) -> Told:
        if turn.told is None:
            before = await self._actor.persist(told_before, self._store.events, turn.task.id)
            turn.told = Told(before, again=True)
        return turn.told

    async def _say(self, event: LinkTurnSaid, turn: _Turn) -> None:
        """Reports a piece of text. If the database refuses, the piece is reported with the next one."""
        told = await self._pieces_of(turn)
        before = told.text
        if (piece := told.piece(event)) is None:
            return
        blocks = await self._blocks.read(told.text, whole=False)
        said = transitions.said(turn.task, text=piece[0], append=piece[1])
        commit = transitions.in_blocks(turn.task, blocks=blocks, now=self._clock.wall())
        try:
            await (self._store.commit(events=[said]) if commit is None else self._commit(commit, said))
        except StoreError as error:
            told.text = before
            self._actor.log.debug("a piece of text is not told", error=error.message)

    async def _completed(self, event: LinkTurnEnded, turn: _Turn) -> Commit:
        task, blocks = turn.task, await self._blocks.read(event.answer, whole=True)
        told, now = (await self._pieces_of(turn)).text, self._clock.wall()
        return transitions.completed(
            task,
            answer=event.answer,
            exact=event.exact,
            truncated=event.truncated,
            missing=event.missing,
            now=now,
            blocks=blocks,
            told=told,
            background=self._background,
        )

    async def _decide(self, event: LinkEvent, turn: _Turn) -> Commit | None:
        if isinstance(event, LinkTurnEnded):
            return await self._completed(event, turn)
        launch = self._process.record.launch
        keys = launch.keys if launch is not None else ""
        return outcome(event, turn.task, asked=self.interruption.pending, keys=keys, now=self._clock.wall())

    # --- operations ---

    def _compose(self, task: Task) -> Letter:
        return prompt_text.compose(task, self._delivery, self._inbox)

    def _deliver(self, link: AgentLink, *, fresh: bool, letter: Letter | None = None) -> None:
        assert self._turn is not None
        self._giving = self._actor.spawn(self._delivering(link, self._turn, fresh, letter), at_once=True)

    async def _delivering(self, link: AgentLink, turn: _Turn, fresh: bool, letter: Letter | None) -> None:
        task, record = turn.task, turn.record
        try:
            if record.continued is not None:
                letter = prompt_text.note(task, self._limit_note)
            elif letter is None:
                letter = self._compose(task)
            if letter.enclosures and not transitions.is_submitted(record):
                await asyncio.to_thread(message_files.put, self._inbox, letter.enclosures, self._kept)
            delivery = Delivery(task_id=task.id, text=letter.text, command=letter.command, record=record, fresh=fresh)
            await link.deliver(delivery)
        except (SynapsedError, OSError) as error:
            message = error.message if isinstance(error, SynapsedError) else f"its files cannot be written: {error}"
            self._actor.post(self._not_delivered, turn, message)

    async def _not_delivered(self, turn: _Turn, message: str) -> None:
        if turn is not self._turn:  # it was given back, or has ended
            return
        code = "INTERRUPTED" if transitions.is_submitted(turn.record) else "UNDELIVERED"
        await self.persist(transitions.failed(turn.task, code=code, message=message, now=self._clock.wall()))
        await self.pump()

    async def given(self) -> None:
        """Returns when the link has the message that is being given to it, whose files are written first."""
        if self._giving is not None:
            await asyncio.wait([self._giving])

    async def _commit(self, commit: Commit, *more: NewEvent) -> Commit:
        await self._store.commit(
            events=[*commit.events, *more],
            tasks=[commit.task],
            turn=commit.turn,
            turn_ended=commit.turn_ended,
            reply=commit.reply,
        )
        self.believe(commit)
        return commit

    async def persist(self, commit: Commit) -> None:
        """Makes the commit durable, and takes it over."""
        await self._actor.persist(self._commit, commit)
