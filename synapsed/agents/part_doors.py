"""Adapters ("doors") through which an agent calls the parts that read its answers, report its work, decide by rules
what it may do, hold its messages back, and read the person's settings of its program.

Agents are made before parts are open, so each adapter looks for its part when it is used. If there is no such part, or
if it has a fault, its work is not done, and the agent goes on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import structlog

from synapsed.agents.actor import Actor
from synapsed.channels.decision_ways import decides
from synapsed.config.config import AgentConfig
from synapsed.errors import NotEnforced, StoreError
from synapsed.interfaces import (
    Answer,
    AnswerReader,
    AnswerReading,
    Decider,
    Deciding,
    Hold,
    Holding,
    HoldOwner,
    MessageHolder,
    NewEvent,
    PersonSettings,
    RuleOwner,
    SettingsReading,
    Store,
    TaskHeld,
    Wait,
    WorkTeller,
    WorkTelling,
)
from synapsed.model.link import LinkEvent
from synapsed.model.released_names import RefusingRules
from synapsed.model.task import Artifact, Prompt, Task
from synapsed.profiles.channel_spec import ACP_DECISION, ACP_REQUEST, DecisionSpec
from synapsed.profiles.profile import Profile
from synapsed.profiles.setting_spec import SettingsSpec

log = structlog.stdlib.get_logger("synapsed.parts")


_UNREAD = ("its person's own settings are not looked at: no part that is open reads them",)
UNREAD = PersonSettings(notes=_UNREAD, loses=frozenset({"deny", "default"}), lost_by=_UNREAD)


class PartDoors:
    """Finds parts for all agents. `open` opens those that wait for the first agent, or for the configuration; its
    argument is True if there are agents, or one is about to come."""

    open: Callable[[bool], Awaitable[None]]

    def __init__(self) -> None:
        self.become(lambda _: [])

    def become(
        self,
        provided: Callable[[type], list[Any]],
        closed: Mapping[str, str] | None = None,
        opened: Callable[[bool], Awaitable[None]] | None = None,
    ) -> None:
        """Takes over the open parts: `provided` returns the objects that they provide of a type. `closed`: keys of
        agents' configuration that no part enforces now, because theirs is not open, with the reason. `opened` becomes
        `open`."""
        self._provided = provided
        self._closed = {} if closed is None else closed
        self.open = opened or _none_waits

    def first(self, kind: type) -> Any:
        """Returns the object of that type from the first part, in the list's order, that has one; None if none does."""
        return next(iter(self._provided(kind)), None)

    def unkept(self, config: AgentConfig) -> str | None:
        """Returns the reason why no part enforces the prohibitions in the agent's configuration; None if one does, or
        there are no prohibitions."""
        for key, why in self._closed.items():
            if getattr(config, key) != type(config).model_fields[key].default:
                return f"nobody keeps its {key!r}: {why}"
        return None

    def refusing(self, name: str, config: AgentConfig) -> Collection[RefusingRules]:
        """Returns the agent's rules that may refuse a call. Raises NotEnforced if they cannot be known."""
        why = self.unkept(config)
        if why is None:
            try:
                return {rule for one in self._provided(Deciding) for rule in one.refusing(config)}
            except Exception as error:
                log.exception("an agent is not started: a part has a fault", agent=name)
                why = f"which of its rules may refuse a call is not known: {type(error).__name__}: {error}"
        raise NotEnforced(
            f"{name} is not started: {why}; mend that, or start it with --without-approval "
            "(in the configuration: without_approval = true)",
            agent=name,
        )

    def settings(
        self, spec: SettingsSpec, *, env: Mapping[str, str], cwd: str, args: Sequence[str], replaced: Collection[str]
    ) -> tuple[tuple[str, ...], PersonSettings]:
        """Implements `SettingsReading`. Without a part that reads them, it is unknown if the program keeps a rule."""
        reading: SettingsReading | None = self.first(SettingsReading)
        if reading is not None:
            try:
                return reading.read(spec, env=env, cwd=cwd, args=args, replaced=replaced)
            except Exception:
                log.exception("a person's own settings of a program are not looked at: a part has a fault")
        return tuple(args), PersonSettings() if spec == SettingsSpec() else UNREAD


async def _none_waits(agents: bool) -> None:
    """Stands for `PartDoors.open` where all parts are open."""


class AnswerDoor:
    """One agent's adapter to the part that reads answers."""

    def __init__(self, doors: PartDoors, profile: Profile) -> None:
        self._doors = doors
        self._profile = profile
        self._reader: AnswerReader | None = None

    async def read(self, text: str, *, whole: bool) -> Sequence[Artifact]:
        """Returns the artifacts in the answer. `whole`: `text` is all of it."""
        try:
            if self._reader is None and (reading := self._doors.first(AnswerReading)) is not None:
                self._reader = reading.reader(self._profile.parsers)
            return () if self._reader is None else await self._reader.read(text, whole=whole)
        except Exception:
            log.exception("an answer is its text alone: a part has a fault")
            self._reader = None
            return ()


class WorkDoor:
    """One agent's adapter to the part that reports work; implements `WorkOwner`. `since` is the monotonic time from
    which this daemon has the agent."""

    def __init__(
        self,
        agent_id: str,
        doors: PartDoors,
        *,
        store: Store,
        actor: Actor,
        since: float,
        current: Callable[[], Task | None],
    ) -> None:
        self.id = agent_id
        self.since = since
        self._current = current
        self._doors = doors
        self._store = store
        self._actor = actor
        self._teller: WorkTeller | None = None
        self._restored = False
        self._restoring = asyncio.Lock()

    @property
    def current(self) -> Task | None:
        return self._current()

    async def tell(self, events: Sequence[NewEvent]) -> None:
        try:
            await self._actor.persist(self._store.commit, events=events)
        except StoreError as error:  # the actor ends: the next daemon gets the same reports
            self._actor.log.warning("what was told could not be recorded", count=len(events), error=error.message)

    async def restore(self) -> None:
        """Restores the reports of an earlier daemon, once. Raises StoreError."""
        async with self._restoring:
            if self._restored:
                return
            try:
                if (work := self._found()) is None:
                    return
                await work.restore()
            except StoreError:
                raise
            except Exception:
                log.exception("what was told before is not known: a part has a fault", agent_id=self.id)
            self._restored = True

    async def do(self, what: Callable[[WorkTeller], Awaitable[None]]) -> None:
        """Makes the part do `what`. This may be called before the agent is adopted, or after that has failed."""
        try:
            await self.restore()
        except StoreError as error:
            self._actor.log.warning("what was told before is not known", error=error.message)
        try:
            if (work := self._found()) is not None:
                await what(work)
        except Exception:
            log.exception("of this nothing is told: a part has a fault", agent_id=self.id)

    def _found(self) -> WorkTeller | None:
        if self._teller is None and (telling := self._doors.first(WorkTelling)) is not None:
            self._teller = telling.teller(self)
        return self._teller

    def about(self, prompt: Prompt | None) -> Prompt | None:
        """Returns the prompt with the details that the part knows."""
        try:
            return self._teller.about(prompt) if self._teller is not None else prompt
        except Exception:
            log.exception("a dialog is as it is drawn: a part has a fault", agent_id=self.id)
            return prompt


class RuleDoor:
    """One agent's adapter to the part that decides by rules. If nothing can be decided, a person is asked; if no part
    enforces the agent's rules, every call that can be refused is refused. `profile` returns the profile for the version
    that runs."""

    def __init__(self, doors: PartDoors, owner: RuleOwner, profile: Callable[[], Profile]) -> None:
        self._doors = doors
        self._owner = owner
        self._profile = profile
        self._decider: Decider | None = None

    async def decide(self, event: str, told: dict[str, Any], task_id: str | None) -> dict[str, Any] | None:
        """Returns the answer to the program's question `event` in its own format; None leaves it to a person."""
        try:
            if (spec := decision_spec(self._profile(), event)) is None:
                return None
            if (why := self.unkept) is not None:
                log.error("a call is refused", agent=self._owner.record.name, why=why)
                return spec.answer("deny", why)
            decider = self._found()
            return None if decider is None else await decider.decide(spec, told, task_id)
        except Exception:
            log.exception("the person is asked: a part has a fault", agent_id=self._owner.record.id)
            return None

    @property
    def unkept(self) -> str | None:
        """Returns the reason why no part enforces the agent's rules; None if one does, if there are no rules, or if a
        person runs the agent without them."""
        config = self._owner.config
        without = self._owner.record.without_approval or config.without_approval
        return None if without else self._doors.unkept(config)

    @property
    def without_effect(self) -> str | None:
        """Returns the reason why rules that may refuse a call have no effect on the program that runs, and what can be
        done about it; None if they have one, or there are no such rules, or a person runs the agent without them."""
        if (why := self.unkept) is not None:
            return f"{why}; each call that its program asks about is refused: mend that and restart the daemon"
        config, name = self._owner.config, self._owner.record.name
        if self._owner.record.without_approval or config.without_approval:
            return None
        try:
            refusing = self._doors.refusing(name, config)
        except NotEnforced:
            return None  # a fault, which is in the log: whether there are such rules is not known
        if all(decides(self._profile(), part, None) for part in refusing):
            return None
        return "its approval has rules that refuse calls, and its program has no way to obey them: remove them"

    def judge(self, prompt: Prompt | None) -> Answer | Wait | None:
        try:
            return decider.judge(prompt) if (decider := self._found()) is not None else None
        except Exception:
            log.exception("the person is asked: a part has a fault", agent_id=self._owner.record.id)
            return None

    def answered(self, prompt: Prompt) -> None:
        try:
            if self._decider is not None:
                self._decider.answered(prompt)
        except Exception:
            log.exception("what was decided is forgotten: a part has a fault", agent_id=self._owner.record.id)
            self._decider = None

    def _found(self) -> Decider | None:
        if self._decider is None and (deciding := self._doors.first(Deciding)) is not None:
            self._decider = deciding.decider(self._owner)
        return self._decider


class HoldDoor:
    """One agent's adapter to the part that holds its messages back. Without such a part no message is held, and a task
    ends as its turn does. Implements `MessageHolder`; errors of the database go to the caller."""

    def __init__(self, doors: PartDoors, owner: HoldOwner, actor: Actor) -> None:
        self._doors = doors
        self._owner = owner
        self._actor = actor
        self._holder: MessageHolder | None = None

    def open(self) -> None:
        """Makes the agent known to the part: a hold may be for several agents."""
        self._ask(lambda _: None)

    def hold(self) -> Hold | None:
        return self._ask(lambda holder: holder.hold())

    def answer(self, prompt: Prompt) -> str | None:
        return self._ask(lambda holder: holder.answer(prompt))

    def watch(self) -> None:
        self._ask(lambda holder: holder.watch())

    def leave(self) -> None:
        self._ask(lambda holder: holder.leave())

    async def turn_over(self, event: LinkEvent, *, stopped: bool) -> TaskHeld | None:
        return await self._do(lambda holder: holder.turn_over(event, stopped=stopped))

    async def lift(self, why: str) -> None:
        await self._do(lambda holder: holder.lift(why))
        if self._holder is None and self._owner.record.limit is not None:
            await self._owner.keep_hold(None)  # so that it is not in force again when the part is back

    def _ask[T](self, what: Callable[[MessageHolder], T]) -> T | None:
        try:
            return what(holder) if (holder := self._found()) is not None else None
        except Exception:
            log.exception("its messages are not held back: a part has a fault", agent_id=self._owner.record.id)
            return None

    async def _do[T](self, what: Callable[[MessageHolder], Awaitable[T]]) -> T | None:
        try:
            return await what(holder) if (holder := self._found()) is not None else None
        except StoreError:
            raise
        except Exception:
            log.exception("its messages are not held back: a part has a fault", agent_id=self._owner.record.id)
            return None

    def _found(self) -> MessageHolder | None:
        if self._holder is None and (holding := self._doors.first(Holding)) is not None:
            self._holder = holding.holder(self._owner, self._actor)
        return self._holder


def decision_spec(profile: Profile, event: str) -> DecisionSpec | None:
    """Returns the description of the question that the program asks by `event`, and of its answers."""
    if event == ACP_REQUEST and profile.transport == "pipes":
        return ACP_DECISION
    return next((channel.decisions[event] for channel in profile.channels.values() if event in channel.decisions), None)
