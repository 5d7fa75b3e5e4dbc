"""What a caller may do: decided once from evidence, by a pure function, then asked by the routes.

A person may do everything. An agent may list, send, reply, read its own tasks and report events; it may not answer
prompts, stop others, read others' screens or end the daemon (docs/security.md). A caller that has to be an agent or a
person but of which nothing more is known has an agent's rights without an identity, so that person-only verbs fail
closed.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from synapsed.errors import Forbidden, Unauthorized
from synapsed.model.grants import SENDS, Grant, Right, Token, TokenKind
from synapsed.model.sender import sender_id_of
from synapsed.model.task import Task


class Standing(StrEnum):
    PERSON = "person"
    AGENT = "agent"
    NONE = "none"
    """Nobody that is known: public routes only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What the machine says of the other end of a connection.

    `uid` is None where it was not found; `can_look_up` is False where the system has no way to tell. `settled` is True
    when the peer's process was found and looked for among the agents' processes; `agent_id` is what came of it. `own`:
    it is this very daemon.
    """

    transport: Literal["unix", "tcp"]
    loopback: bool = True
    can_look_up: bool = True
    uid: int | None = None
    settled: bool = False
    agent_id: str | None = None
    own: bool = False


@dataclass(frozen=True, slots=True)
class Rights:
    """A caller's rights; `agent_id` is known only of a settled agent."""

    standing: Standing
    agent_id: str | None = None
    remote: bool = False
    """It came from another machine."""
    granted: frozenset[str] = frozenset()
    """Rights that the agent's profile grants it beyond an agent's own (`released_names.Right`)."""
    grant: Grant | None = None
    """A person's, who may do only what this says: see `synapsed.api.route_rights`."""
    route: str | None = None
    """The path of the one route that somebody may ask for, and nothing else that is not public."""

    @property
    def person(self) -> bool:
        return self.standing is Standing.PERSON

    def may(self, right: Right) -> bool:
        """Returns True if that is among the rights of a grant; others do not go by such words."""
        return self.grant is None or right in self.grant.rights

    def require_right(self, right: Right, act: str) -> None:
        """Raise Forbidden where by a grant is asked what it does not allow; `act` completes "may not …"."""
        if self.grant is not None and right not in self.grant.rights:
            raise Forbidden(f"this {self.grant.kind} has not the right {right!r}: it may not {act}", needs=[right])

    def require_send(self) -> None:
        """Raise Forbidden where it is a grant that allows no sending, for what is named in the body."""
        if self.grant is not None and not self.grant.rights & SENDS:
            raise Forbidden(
                f"this {self.grant.kind} has not the right 'answer' or 'send': it may not send messages",
                needs=["answer", "send"],
            )

    @property
    def scoped(self) -> bool:
        """Whether it is a token for some agents only, which is told nothing of others."""
        return self.grant is not None and self.grant.agents is not None

    @property
    def reach(self) -> frozenset[str] | None:
        """Names of the only agents to which this caller may send in a person's name; None: to all."""
        if self.grant is None:
            return None if self.person else frozenset()
        return self.grant.agents if self.grant.rights & SENDS else frozenset()

    def require_whole(self, act: str) -> None:
        """Raise Forbidden where it is any grant."""
        if self.grant is not None:
            raise Forbidden(f"a {self.grant.kind} may not {act}: use synapsectl")

    @property
    def scope(self) -> str | None:
        """The agent whose tasks are all that this caller may list, or name by the beginning of an id: None for a
        person's, who may all; no agent's where it is not known who asks."""
        return None if self.person else self.agent_id or ""

    def require_person(self, act: str) -> None:
        """Raise Forbidden unless a person asks; `act` completes "an agent may not …"."""
        if not self.person:
            raise Forbidden(f"an agent may not {act}: {self._way_out}", rights=self.standing.value)

    @property
    def _way_out(self) -> str:
        if self.standing is Standing.AGENT and self.agent_id is None:
            return (
                "and who asks cannot be told from here, as in a container or PID namespace that is not the daemon's: "
                "do it where the daemon runs, or with its token"
            )
        return "ask a person"

    def require(self, right: str, act: str, *, of: str) -> None:
        """Raise Forbidden unless a person asks, or an agent that was granted `right` and is not `of` itself."""
        if right not in self.granted or self.agent_id in (None, of):
            self.require_person(act)

    def may_answer(self, agent_id: str) -> bool:
        """Whether this caller may answer what the agent asks."""
        granted = "answer_prompts" in self.granted and self.agent_id not in (None, agent_id)
        return (self.person and self.may("answer")) or granted

    def may_see_agent(self, agent_id: str) -> bool:
        """Whether this caller may read the screen and the events of the agent."""
        own = self.agent_id is not None and self.agent_id == agent_id
        return self.person or own or (self.agent_id is not None and "read_screens" in self.granted)

    def require_sight_of(self, agent_id: str, what: str) -> None:
        if not self.may_see_agent(agent_id):
            raise Forbidden(f"an agent may not read {what}", agent=agent_id, rights=self.standing.value)

    def may_read(self, task: Task) -> bool:
        """A task is an agent's own when it does it or has sent it. A caller without identity had to know its id."""
        if self.person or self.agent_id is None:
            return self.standing is not Standing.NONE
        return self.agent_id in (task.agent_id, sender_id_of(task))

    def require_read(self, task: Task) -> None:
        if not self.may_read(task):
            raise Forbidden("an agent may read only its own tasks", task_id=task.id, rights=self.standing.value)

    def shown(self, task: Task) -> Task:
        """The task without what another agent's program asks, unless this caller may see that."""
        behind = task.waits_behind
        if behind is None or behind.prompt is None or self.may_see_agent(task.agent_id):
            return task
        return task.model_copy(update={"waits_behind": behind.model_copy(update={"prompt": None})})

    def require_list(self) -> None:
        """Tasks cannot be listed by a caller of whom it is not known which are its own."""
        self.require_right("look", "list tasks")
        if not self.person and self.agent_id is None:
            raise Forbidden(
                "it could not be settled who asks, so no list of tasks is given: send the control token or an agent's",
                rights=self.standing.value,
            )

    def require_work_on(self, task: Task) -> None:
        """What is made in a task comes from the agent that works on it."""
        if not self.person and (self.agent_id is None or self.agent_id != task.agent_id):
            raise Forbidden("an agent may add only to tasks that it works on", task_id=task.id)

    def require_cancel(self, task: Task) -> None:
        """An agent may cancel what it has sent itself."""
        self.require_right("answer", "cancel tasks")
        self._require_sent(task, "cancel only tasks")

    def require_notify(self, task: Task) -> None:
        """An agent may have what becomes of a task sent elsewhere only where it has sent the task itself."""
        self.require_whole("have notifications sent elsewhere")
        self._require_sent(task, "have notifications only of tasks")

    def _require_sent(self, task: Task, act: str) -> None:
        if not self.person and (self.agent_id is None or sender_id_of(task) != self.agent_id):
            raise Forbidden(f"an agent may {act} that it has sent", task_id=task.id)


def decide(peer: Peer, token: Token, own_uid: int) -> Rights:
    """The rights of a request. Raises Unauthorized for a token nobody has, Forbidden for another user and for another
    agent's token.

    This daemon connects to itself only where somebody had it do so (a notification): that is nobody in particular,
    whatever it carries. A process that is known to be an agent's is that agent, whatever it carries: a token that it
    found raises nothing, nor does any grant. Else a token counts for more than the process it comes from; the
    Unix socket is closed to other users.
    """
    if peer.transport == "unix" and peer.uid != own_uid:
        raise Forbidden("this socket serves its own user only", uid=peer.uid)
    if peer.own:
        return Rights(Standing.AGENT)
    if token.kind is TokenKind.UNKNOWN:
        raise Unauthorized("this token is not known: the control token is in the daemon's state directory")
    if peer.settled and peer.agent_id is not None and peer.uid == own_uid:
        if token.kind is TokenKind.AGENT and token.agent_id != peer.agent_id:
            raise Forbidden(
                f"this is a process of {peer.agent_id}, with the token of {token.agent_id}", agent=peer.agent_id
            )
        return Rights(Standing.AGENT, peer.agent_id)
    if token.kind is TokenKind.CONTROL:
        return Rights(Standing.PERSON, remote=not peer.loopback)
    if token.kind is TokenKind.GRANTED:
        return Rights(Standing.PERSON, remote=not peer.loopback, grant=token.grant)
    if token.kind is TokenKind.AGENT:
        return Rights(Standing.AGENT, token.agent_id)
    if token.kind is TokenKind.ROUTE:
        return Rights(Standing.NONE, route=token.route)
    return _of_process(peer, own_uid)


def _of_process(peer: Peer, own_uid: int) -> Rights:
    """Without a token."""
    if peer.transport == "tcp":
        if not peer.loopback:
            return Rights(Standing.NONE)
        if not peer.can_look_up:
            return Rights(Standing.AGENT)
        if peer.uid != own_uid:
            raise Forbidden("connections of other users need the control token", uid=peer.uid)
    return Rights(Standing.PERSON if peer.settled else Standing.AGENT)
