"""What a launch was told (`instructions`) becomes a task of its agent: on record, or typed."""

import asyncio
from pathlib import Path

from synapsed.agents.instructions import fingerprint, on_record, task_of
from synapsed.agents.process import AgentProcess
from synapsed.agents.turns import AgentTurns
from synapsed.channels.launch_additions import INSTRUCTIONS_FILE
from synapsed.clock import Clock
from synapsed.keepers.launch_plan import LaunchPlanner
from synapsed.model.task import new_id
from synapsed.tasks.transitions import submitted


class Briefing:
    """Of one agent; `folder` is the agent's. Called in its actor."""

    def __init__(
        self,
        process: AgentProcess,
        turns: AgentTurns,
        *,
        folder: Path,
        planner: LaunchPlanner,
        clock: Clock,
    ) -> None:
        self._process = process
        self._turns = turns
        self._planner = planner
        self._file = folder / "launch" / INSTRUCTIONS_FILE
        self._clock = clock

    async def give(self) -> None:
        """The launch's link is open: see to it, unless that was done. What is typed is typed once a conversation."""
        record, typed = self._process.record, self._process.profile.instructions.typed
        text = await asyncio.to_thread(_read, self._file)
        if text is None or record.launch is None or (typed and record.launch.resumed):
            return
        told = f"{record.launch.launch_id}:{fingerprint(text)}" if typed else fingerprint(text)
        if told == record.told:
            return
        endpoint = self._planner.endpoint(record)
        task = task_of(record.id, record.context_id or new_id(), text, self._clock.wall(), endpoint=endpoint)
        task, events = (task, submitted(task).events) if typed else on_record(task)
        await self._process.amend(tasks=[task], of_tasks=events, told=told)
        if typed:
            await self._turns.enter(task)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None
