"""The briefing of an agent: a text that explains to its model which agent it is, which others there are, and how to
write to them (S16).

If the profile knows a way into the program's own system prompt, the briefing goes there, and the terminal stays clean.
Otherwise it is typed, if the profile says so. In both cases it is recorded as a task from `synapse-system`.
"""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from synapsed.agents.agent_process import AgentProcess
from synapsed.agents.turns import AgentTurns
from synapsed.channels.launch_additions import INSTRUCTIONS_FILE
from synapsed.clock import Clock, iso
from synapsed.interfaces import NewEvent
from synapsed.keepers.launch_plan import LaunchPlanner
from synapsed.model.events import TaskStatusChanged
from synapsed.model.records import AgentRecord
from synapsed.model.sender import KEY, SYSTEM, Sender, Tier
from synapsed.model.task import Message, Task, TaskState, new_id
from synapsed.tasks.transitions import submitted

HEADING = "[Synapse A2A Protocol Instructions]"

ENGLISH = """\
You are the agent {name} (agent ID {id}, type {type}, port {port}), one of several agents of the same user. They can \
write to you, and you to them.

Beside you now: {others}. Who is there at any time: {list}.

- A message that begins with [A2A:<task>:<sender>] comes from that sender; any other comes from the user.
- With :R after the sender, as in [A2A:<task>:<sender>:R], a reply is expected. Your answer in that turn is the reply; \
to say it in other words, or earlier: {reply}.
- A message that begins with [A2A:reply:<task>:<sender>] is the reply to what you have sent.
- To write to another agent: {send}.
"""

JAPANESE = """\
あなたはエージェント {name}（エージェント ID {id}、種類 {type}、ポート {port}）です。\
同じ利用者のエージェントが他にも動いていて、互いにメッセージを送ることができます。

現在の他のエージェント：{others}。最新の一覧：{list}。

- [A2A:<task>:<sender>] で始まるメッセージはその送信者からのものです。それ以外は利用者からのものです。
- [A2A:<task>:<sender>:R] のように :R が付いていれば返信が期待されています。そのターンの回答がそのまま返信になります。\
別の言葉で、または先に返信するには：{reply}。
- [A2A:reply:<task>:<sender>] で始まるメッセージは、あなたが送ったメッセージへの返信です。
- 他のエージェントに送るには：{send}。
"""

TEXTS = {"en": ENGLISH, "ja": JAPANESE}
_NOBODY = {"en": "nobody", "ja": "なし"}
_TOOLS = {
    "list": "the tool list_agents of the MCP server synapsed",
    "send": "the tool send_message of the MCP server synapsed",
    "reply": "its tool reply",
}
_TOOLS_JA = {
    "list": "MCP サーバー synapsed のツール list_agents",
    "send": "MCP サーバー synapsed のツール send_message",
    "reply": "そのツール reply",
}
_SHELL = {
    "list": "`synapsectl list`",
    "send": '`synapsectl send NAME --response "message"`',
    "reply": '`synapsectl reply "text"`',
}


@dataclass(frozen=True, slots=True)
class Colleague:
    """The description of an agent for other agents."""

    id: str
    name: str
    type: str
    port: int | None


def instructions(me: Colleague, others: Iterable[Colleague], *, language: str, text: str | None, mcp: bool) -> str:
    """Returns the text of the briefing. `text` replaces the one in `language`; in both, `{name}`, `{id}`, `{type}`,
    `{port}`, `{others}`, `{list}`, `{send}` and `{reply}` are filled in."""
    ways = _SHELL if not mcp else _TOOLS_JA if language == "ja" else _TOOLS
    listed = ", ".join(f"{other.name} ({other.type})" for other in sorted(others, key=lambda other: other.name))
    filled = {
        "name": me.name,
        "id": me.id,
        "type": me.type,
        "port": "none" if me.port is None else str(me.port),
        "others": listed or _NOBODY[language],
        **ways,
    }
    words = text if text is not None else TEXTS[language]
    for key, value in filled.items():
        words = words.replace(f"{{{key}}}", value)
    return f"{HEADING}\n\n{words.strip()}\n"


def colleague(record: AgentRecord) -> Colleague:
    return Colleague(record.id, record.name, record.profile, record.port)


def fingerprint(text: str) -> str:
    """Returns a hash of the briefing; the agent's record holds that of the briefing that it was given last."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def task_of(agent_id: str, context_id: str, text: str, now: float, *, endpoint: str) -> Task:
    """Returns the task with the briefing. `endpoint` is the agent's own address, at which synapsed answers."""
    sender = Sender(id=SYSTEM, tier=Tier.AGENT, type="system", endpoint=endpoint)
    return Task(
        agent_id=agent_id,
        context_id=context_id,
        message=Message.of(text),
        metadata={KEY: sender.metadata()},
        created_at=iso(now),
        updated_at=iso(now),
    )


def on_record(task: Task) -> tuple[Task, tuple[NewEvent, ...]]:
    """Returns the task for a briefing that is not typed, because the program has it already."""
    done = task.model_copy(update={"status": TaskState.COMPLETED})
    states = (TaskState.SUBMITTED, TaskState.COMPLETED)
    return done, tuple(NewEvent.of(task, TaskStatusChanged(state=state)) for state in states)


class Briefing:
    """Gives the briefing to one agent, whose folder is `folder`. Its methods are called in the agent's actor."""

    def __init__(
        self, process: AgentProcess, turns: AgentTurns, *, folder: Path, planner: LaunchPlanner, clock: Clock
    ) -> None:
        self._process = process
        self._turns = turns
        self._planner = planner
        self._file = folder / "launch" / INSTRUCTIONS_FILE
        self._clock = clock

    async def give(self) -> None:
        """Gives the briefing, unless the agent has had it; called when the launch's link is open. A briefing that is
        typed is typed once at each launch that begins a new conversation."""
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
