"""Rights of a caller: decided once from evidence, by a pure function, then checked by the routes.

A person may do everything. An agent may list, send, reply, read its own tasks and report events; it may not answer
prompts, stop others, read others' screens or end the daemon (docs/security.md). If it is not known whether the caller
is an agent or a person, it has the rights of an agent without identity, so that verbs for persons are refused.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from synapsed.errors import Forbidden, Unauthorized
from synapsed.model.agent import AgentDetail, AgentView
from synapsed.model.grants import SENDS, Grant, Right, Token, TokenKind
from synapsed.model.sender import sender_id_of
from synapsed.model.task import Prompt, Task


class Standing(StrEnum):
    PERSON = "person"
    AGENT = "agent"
    NONE = "none"
    """Unknown caller: public routes only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The machine's evidence about the other end of a connection. `uid` is None if it was not found; `can_look_up` is
    False if the system has no way to find it. `settled` is True if the peer's process was found and compared with the
    agents' processes; `agent_id` is the result. `own`: the peer is this daemon itself."""

    transport: Literal["unix", "tcp"]
    loopback: bool = True
    can_look_up: bool = True
    uid: int | None = None
    settled: bool = False
    agent_id: str | None = None
    own: bool = False


@dataclass(frozen=True, slots=True)
class Rights:
    """A caller's rights; `agent_id` is known only if the caller's process or its token is an agent's."""

    standing: Standing
    agent_id: str | None = None
    remote: bool = False
    """True if the request came from another machine."""
    granted: frozenset[str] = frozenset()
    """Rights that the agent's profile grants it beyond an agent's own (`released_names.Right`)."""
    grant: Grant | None = None
    """Grant of a person, which limits the caller: see `synapsed.api.route_rights`."""
    route: str | None = None
    """Path of the only route, besides public ones, that this caller may use."""

    @property
    def person(self) -> bool:
        return self.standing is Standing.PERSON

    def may(self, right: Right) -> bool:
        """Returns True unless the caller has a grant that does not include `right`."""
        return self.grant is None or right in self.grant.rights

    def require_right(self, right: Right, act: str) -> None:
        """Raises Forbidden if a grant does not allow it; `act` completes "may not …"."""
        if self.grant is not None and right not in self.grant.rights:
            raise Forbidden(
                f"this {self.grant.kind} does not have the right {right!r}: it may not {act}", needs=[right]
            )

    def require_send(self) -> None:
        """Raises Forbidden if the caller's grant allows no sending; for routes whose body names the receiver."""
        if self.grant is not None and not self.grant.rights & SENDS:
            raise Forbidden(
                f"this {self.grant.kind} does not have the right 'answer' or 'send': it may not send messages",
                needs=["answer", "send"],
            )

    @property
    def scoped(self) -> bool:
        """True for the holder of a token for some agents only, who learns nothing of others."""
        return self.grant is not None and self.grant.agents is not None

    @property
    def reach(self) -> frozenset[str] | None:
        """Returns names of the only agents to which this caller may send in a person's name; None: to all."""
        if self.grant is None:
            return None if self.person else frozenset()
        return self.grant.agents if self.grant.rights & SENDS else frozenset()

    def require_whole(self, act: str) -> None:
        """Raises Forbidden if the caller has a grant of any kind."""
        if self.grant is not None:
            raise Forbidden(f"a {self.grant.kind} may not {act}: use synapsectl")

    @property
    def scope(self) -> str | None:
        """Returns the only agent whose tasks this caller may list, or name by the beginning of an id: None for a
        person, who may name all; an empty text, which is no agent, if the caller is unknown."""
        return None if self.person else self.agent_id or ""

    def require_person(self, act: str) -> None:
        """Raises Forbidden unless a person asks; `act` completes "an agent may not …"."""
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
        """Raises Forbidden unless a person asks, or an agent with `right` that is not `of` itself."""
        if right not in self.granted or self.agent_id in (None, of):
            self.require_person(act)

    def may_answer(self, agent_id: str) -> bool:
        """Returns True if this caller may answer the agent's questions."""
        granted = "answer_prompts" in self.granted and self.agent_id not in (None, agent_id)
        return (self.person and self.may("answer")) or granted

    def may_see_agent(self, agent_id: str) -> bool:
        """Returns True if this caller may read the screen and the events of the agent."""
        own = self.agent_id is not None and self.agent_id == agent_id
        return self.person or own or (self.agent_id is not None and "read_screens" in self.granted)

    def may_see_prompt(self, agent_id: str, prompt: Prompt) -> bool:
        """Returns True if this caller may read the agent's question, that is, if it may see the agent's screen, or
        answer the question. A question that is the screen itself needs the right to see the screen."""
        sees = self.may("look") and self.may_see_agent(agent_id)
        return sees or (prompt.type != "screen" and self.may_answer(agent_id))

    def seen[View: AgentView](self, agent: View) -> View:
        """Returns the agent as this caller may see it."""
        if self.may_see_agent(agent.id):
            return agent
        hidden = agent.unseen()
        prompt = agent.prompt if isinstance(agent, AgentDetail) else None
        if prompt is None or not self.may_see_prompt(agent.id, prompt):
            return hidden
        return hidden.model_copy(update={"prompt": prompt})

    def require_sight_of(self, agent_id: str, what: str) -> None:
        if not self.may_see_agent(agent_id):
            raise Forbidden(f"an agent may not read {what}", agent=agent_id, rights=self.standing.value)

    def may_read(self, task: Task) -> bool:
        """Returns True if the caller may read the task. A task is an agent's own if the agent works on it or has sent
        it. A caller without identity may read it, because it had to know the id."""
        if self.person or self.agent_id is None:
            return self.standing is not Standing.NONE
        return self.agent_id in (task.agent_id, sender_id_of(task))

    def require_read(self, task: Task) -> None:
        if not self.may_read(task):
            raise Forbidden("an agent may read only its own tasks", task_id=task.id, rights=self.standing.value)

    def shown(self, task: Task) -> Task:
        """Returns the task without the question of another agent's program, unless this caller may see it; and without
        the id of the task before it, by which a grant that may only send could read that."""
        behind = task.waits_behind
        if behind is None:
            return task
        hidden = dict[str, None]()
        if behind.prompt is not None and not self.may_see_prompt(task.agent_id, behind.prompt):
            hidden["prompt"] = None
        if not (self.may("look") or self.may("answer")):
            hidden["task"] = None
        return task.model_copy(update={"waits_behind": behind.model_copy(update=hidden)}) if hidden else task

    def require_list(self) -> None:
        """Raises Forbidden for a caller without identity, because its own tasks are unknown."""
        self.require_right("look", "list tasks")
        if not self.person and self.agent_id is None:
            raise Forbidden(
                "it is not known who asks, so no tasks are listed: send the control token, or an agent's token",
                rights=self.standing.value,
            )

    def require_work_on(self, task: Task) -> None:
        """Raises Forbidden unless the output comes from the agent that works on the task."""
        if not self.person and (self.agent_id is None or self.agent_id != task.agent_id):
            raise Forbidden("an agent may add only to tasks that it works on", task_id=task.id)

    def require_cancel(self, task: Task) -> None:
        """Raises Forbidden unless the agent has sent the task that it cancels."""
        self.require_right("answer", "cancel tasks")
        self._require_sent(task, "cancel only tasks")

    def require_notify(self, task: Task) -> None:
        """Raises Forbidden if an agent wants notifications about a task to be sent elsewhere that it has not sent."""
        self.require_whole("have notifications sent elsewhere")
        self._require_sent(task, "have notifications only of tasks")

    def _require_sent(self, task: Task, act: str) -> None:
        if not self.person and (self.agent_id is None or sender_id_of(task) != self.agent_id):
            raise Forbidden(f"an agent may {act} that it has sent", task_id=task.id)


def decide(peer: Peer, token: Token, own_uid: int) -> Rights:
    """Returns the rights of a request. Raises Unauthorized for an unknown token, Forbidden for another user and for
    another agent's token.

    This daemon connects to itself only on behalf of others (a notification): then the caller is unknown, whatever its
    credentials. A process that is known to be an agent's is that agent, whatever its credentials: a token that it found
    gives no rights, and neither does a grant. In all other cases a token counts more than the process; the Unix socket
    is closed to other users.
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
    if peer.transport == "tcp":
        if not peer.loopback:
            return Rights(Standing.NONE)
        if not peer.can_look_up:
            return Rights(Standing.AGENT)
        if peer.uid != own_uid:
            raise Forbidden("connections of other users need the control token", uid=peer.uid)
    return Rights(Standing.PERSON if peer.settled else Standing.AGENT)
