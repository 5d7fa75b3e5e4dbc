"""Answers the questions of one agent: by rules, by the part that holds its messages back, or by a person."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from synapsed.agents.actor import Actor
from synapsed.agents.agent_process import AgentProcess
from synapsed.agents.part_doors import HoldDoor, RuleDoor
from synapsed.agents.pending_answers import Given
from synapsed.agents.turns import AgentTurns
from synapsed.clock import Clock
from synapsed.errors import NotWaiting, SynapsedError
from synapsed.interfaces import AgentLink, Answer, Wait
from synapsed.model.events import Origin
from synapsed.model.task import Message, Prompt, Task

if TYPE_CHECKING:
    from synapsed.agents.live_agent import Agent

DECISION_S = 2.0
"""Seconds after a dialog was drawn in which a decision by rules may still take it away; then a person is asked."""


class AgentPrompts:
    """Answers the questions of one agent."""

    def __init__(
        self,
        process: AgentProcess,
        turns: AgentTurns,
        owner: "Agent",
        *,
        rules: RuleDoor,
        hold: HoldDoor,
        clock: Clock,
        actor: Actor,
    ) -> None:
        self._process = process
        self._turns = turns
        self._rules = rules
        self._hold = hold
        self._owner = owner
        self._clock = clock
        self._actor = actor
        self._approving: asyncio.Task[None] | None = None
        self._refused: str | None = None
        """The prompt whose answer was not taken, until it is gone."""
        self._awaited, self._wait_until = "", 0.0
        """The prompt that waits for a decision, and the end of the wait (monotonic)."""

    # --- a person's answers ---

    async def provide(
        self, link: AgentLink, task_id: str, answer: Message, text: str, prompt_id: str | None, origin: Origin
    ) -> Task | None:
        """Answers a task; returns the task that goes on. Raises NotWaiting, PromptChanged, NotTaken, InvalidChoice."""
        async with self._answering():
            prompt = await self._actor.call(self._turns.asked, task_id)
            wanted = prompt_id or prompt.prompt_id
            if wanted != prompt.prompt_id:  # it is asked already, and the task does not have it yet
                prompt = (await link.observe()).prompt or prompt
            hidden = await link.answer(text, wanted)
            given = Given(prompt_id=wanted, prompt=prompt, answer=answer, hidden=hidden, origin=origin)
            return await self._actor.call(self._turns.answered, task_id, given)

    async def answer(self, link: AgentLink | None, text: str, prompt_id: str | None, origin: Origin) -> None:
        """Answers the prompt on the screen, in a task or outside one. Raises the errors of `provide`."""
        prompt = (await link.observe()).prompt if link is not None else None
        if link is None or prompt is None:
            name = self._process.record.name
            raise NotWaiting(f"{name} does not ask anything", agent=name)
        wanted = prompt_id or prompt.prompt_id
        async with self._answering():
            task = self._turns.current  # with the answer, the next one may begin
            hidden = await link.answer(text, wanted)
            task_id = task.id if task is not None else None
            given = Given(prompt_id=wanted, prompt=prompt, answer=Message.of(text), hidden=hidden, origin=origin)
            await self._actor.call(self._turns.answered, task_id, given)

    @contextlib.asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        self._turns.answers.begin()
        try:
            yield
        finally:
            self._actor.post(self._turns.end_answer)
            self._actor.post(self._owner.observe_again)

    # --- answers that no person gives ---

    def sees_to(self, prompt: Prompt | None) -> bool:
        """Returns whether the prompt is answered without a person."""
        if prompt is None:
            self._awaited, self._refused = "", None  # if the same one comes again, it is about another call
            return False
        return self._held(prompt) or self._decided(prompt)

    def _decided(self, prompt: Prompt) -> bool:
        """Returns whether rules decide that dialog, so that no person is asked."""
        match self._rules.judge(prompt):
            case Answer(text, rule):
                if self._approving is None:
                    self._approving = self._actor.spawn(self._approve(prompt, text, Origin("policy", rule)))
                return True
            case Wait():
                if self._awaited != prompt.prompt_id:
                    self._awaited, self._wait_until = prompt.prompt_id, self._clock.monotonic() + DECISION_S
                    self._actor.post_later(DECISION_S, self._owner.observe_again)
                return self._clock.monotonic() < self._wait_until
        return False

    def _held(self, prompt: Prompt) -> bool:
        """Returns whether a task's dialog is answered because its messages are to wait."""
        answer = self._hold.answer(prompt) if self._turns.current is not None else None
        if answer is None or self._refused == prompt.prompt_id:
            return False
        if self._approving is None:
            self._approving = self._actor.spawn(self._approve(prompt, answer, Origin("daemon")))
        return True

    async def _approve(self, prompt: Prompt, text: str, origin: Origin) -> None:
        """Answers a dialog in place of the person."""
        try:
            await self._owner.answer(text, prompt.prompt_id, origin)
        except SynapsedError as error:
            self._refused = prompt.prompt_id
            self._actor.log.warning("a decision was not taken: the person is asked", error=error.message)
        finally:
            self._rules.answered(prompt)
            self._approving = None
            self._actor.post(self._owner.observe_again)
