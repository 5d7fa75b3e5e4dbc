"""What the agents show, and what is typed to them outside of any task: `interfaces.Terminals`.

A terminal attached to an agent whose program may not set the clipboard there (`[attach] clipboard`).
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Literal

from synapsed.agents.agent import Agent
from synapsed.interfaces import PERSON, Attachment, DirectTerminal, DirectWay, OutputPiece, ScreenWatch
from synapsed.model.events import Origin
from synapsed.model.picture import ScreenForm, Shown
from synapsed.supervisor.directory import agent_of
from synapsed.supervisor.mentions import MentionedAgents, MentioningAttachment
from synapsed.supervisor.roster import Roster
from synapsed.terminal.clipboard import ClipboardFilter

_TOLD = "[{name} would set the clipboard here: not passed on, see 'clipboard' under [attach] of config.toml]"


class _UnclippedTerminal:
    """`terminal`, which takes out by itself what sets clipboards: that begins where nothing is held back here."""

    def __init__(self, terminal: DirectTerminal, attachment: "UnclippedAttachment") -> None:
        self._terminal = terminal
        self._attachment = attachment
        self.typed = terminal.typed
        self.handed = terminal.handed
        self.may_type = terminal.may_type
        self.over = terminal.over

    def may_begin(self) -> bool:
        return not self._attachment.holds and self._terminal.may_begin()


class UnclippedAttachment:
    """An attachment (`interfaces.Attachment`) to agent `name` without what sets clipboards; its person is told once."""

    def __init__(self, inner: Attachment, name: str) -> None:
        self._inner = inner
        self._name = name
        self._filter = ClipboardFilter()
        self._told = False
        self.resize = inner.resize
        self.seen_in = inner.seen_in
        self.earlier = inner.earlier
        self.composes = inner.composes
        self.take_line = inner.take_line
        self.notice = inner.notice
        self.write = inner.write
        self.type_now = inner.type_now
        self.keep_one_screen = inner.keep_one_screen
        self.close = inner.close
        self.draw_again = inner.draw_again

    async def direct(self, terminal: DirectTerminal) -> DirectWay | None:
        return await self._inner.direct(_UnclippedTerminal(terminal, self))

    @property
    def holds(self) -> bool:
        """Whether a part of the output until now was not passed on yet."""
        return self._filter.holds

    async def redraw(self) -> bytes:
        drawn = await self._inner.redraw()
        self._filter = ClipboardFilter()
        return self._filter.feed(drawn)

    async def output(self) -> AsyncIterator[bytes]:
        async for data in self._inner.output():
            yield self._passed(data)

    def pass_to(self, take: Callable[[bytes], None], ready: Callable[[], bool]) -> None:
        self._inner.pass_to(lambda data: take(self._passed(data)), ready)

    def _passed(self, data: bytes) -> bytes:
        passed = self._filter.feed(data)
        if self._filter.dropped and not self._told:
            self._told = True
            self._inner.notice(_TOLD.format(name=self._name), stays=False)
        return passed


def with_clipboard(attachment: Attachment, name: str, setting: Literal["deny", "allow"]) -> Attachment:
    """`attachment` to agent `name` as `[attach] clipboard` wants it."""
    return attachment if setting == "allow" else UnclippedAttachment(attachment, name)


class AgentTerminals:
    """`agents` are all there are, by id; `mentioned` are those to whom `@agent message` goes."""

    def __init__(self, agents: Mapping[str, Agent], *, roster: Roster, mentioned: MentionedAgents) -> None:
        self._agents = agents
        self._roster = roster
        self._mentioned = mentioned

    async def screen(self, agent_id: str, fmt: ScreenForm) -> Shown:
        return await self._agent(agent_id).screen(fmt)

    async def visible(self, agent_id: str) -> str:
        return await self._agent(agent_id).screen_text()

    async def context(self, agent_id: str, limit: int = 2000) -> str:
        return await self._agent(agent_id).screen_text(limit)

    async def output(self, agent_id: str, start: int | None, limit: int) -> OutputPiece:
        return await self._agent(agent_id).output(start, limit)

    async def recording(self, agent_id: str, limit: int) -> str:
        return await self._agent(agent_id).recording(limit)

    async def attach(
        self, agent_id: str, *, cols: int, rows: int, read_only: bool, mentions: frozenset[str] | None = None
    ) -> Attachment:
        agent, wanted = self._agent(agent_id), self._roster.config.attach
        attachment = await agent.attach(cols=cols, rows=rows, read_only=read_only)
        attachment = with_clipboard(attachment, agent.record.name, wanted.clipboard)
        if read_only or not wanted.mentions or mentions == frozenset():
            return attachment
        return MentioningAttachment(attachment, agent_id, self._mentioned, mentions)

    def watch(self, agent_id: str) -> ScreenWatch:
        return self._agent(agent_id).watch()

    def settings(self) -> dict[str, Any]:
        return self._roster.config.attach.model_dump(mode="json")

    def looked_at(self, agent_id: str) -> bool:
        agent = self._agents.get(agent_id)
        link = agent.process.link if agent is not None else None
        return link is not None and link.writers > 0

    def hands_at(self) -> float | None:
        links = (agent.process.link for agent in self._agents.values())
        return max((link.hands_at for link in links if link is not None and link.writers), default=None)

    async def press(self, agent_id: str, keys: Sequence[str]) -> None:
        await self._agent(agent_id).press(keys)

    async def answer(self, agent_id: str, text: str, prompt_id: str | None = None, origin: Origin = PERSON) -> None:
        await self._agent(agent_id).answer(text, prompt_id, origin)

    async def interrupt(self, agent_id: str) -> bool:
        return await self._agent(agent_id).interrupt()

    async def decide(self, agent_id: str, event: str, told: dict[str, Any]) -> dict[str, Any] | None:
        return await self._agent(agent_id).decide(event, told)

    def _agent(self, agent_id: str) -> Agent:
        return agent_of(self._agents, agent_id)
