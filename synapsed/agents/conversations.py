"""The conversation of an agent, from one program to the next: decided purely, as changes of the agent's record.

An agent has one conversation at a time. It is resumed by the next program where the profile can do that, the program
told its id, and something was said in it. Where a conversation with content is not gone on with, nobody asked for that,
and so it is told: by an alert, in the log, and in `status`. `record.context_id` is the conversation's name to clients.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from synapsed.model.agent import Activity
from synapsed.model.events import AgentAlert
from synapsed.model.records import AgentRecord
from synapsed.model.task import new_id
from synapsed.profiles.profile import Profile

LOST = "CONVERSATION_LOST"
"""Code of the alert."""

NEW = "new: "
"""So begins the note on a conversation that is not the one before, though nobody asked for that."""

NOTHING_SAID = f"{NEW}nothing had been said in the one before"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationChange:
    """What changes of the record, and what a person must be told of it."""

    fields: dict[str, Any] = field(default_factory=dict)
    alert: AgentAlert | None = None

    @property
    def alerts(self) -> list[AgentAlert]:
        return [self.alert] if self.alert is not None else []


def obstacle(record: AgentRecord, profile: Profile) -> str | None:
    """Why the next program could not go on with the conversation; None where it can, or has nothing to go on with."""
    if not record.said:
        return None
    if not profile.resumes:
        return "its profile knows no way to resume one"
    return "the program never told its id" if record.conversation is None else None


def taken(records: Iterable[AgentRecord]) -> dict[tuple[str, str], str]:
    """The names of the agents by the conversation that each is in: its profile and the program's own id."""
    return {(record.profile, record.conversation): record.name for record in records if record.conversation}


def began(record: AgentRecord, profile: Profile, *, resumed: bool) -> ConversationChange:
    """A program was started, with the conversation on record or without."""
    if record.context_id is None:
        return ConversationChange(fields={"context_id": new_id()})
    if resumed:
        return ConversationChange(fields={"conversation_note": f"goes on with {record.conversation}"})
    if (why := obstacle(record, profile)) is not None:
        return _lost(record, f"the earlier conversation could not be resumed: {why}")
    if record.conversation_note is None:
        return ConversationChange(fields={"conversation_note": NOTHING_SAID})
    return ConversationChange()


def refused(record: AgentRecord, how: str) -> ConversationChange:
    """The program ended before it was ready with the conversation that it was to go on with. The next launch begins a
    new one rather than failing for ever."""
    return _lost(record, f"the program ended ({how}) before it was ready with its earlier conversation")


def replaced(record: AgentRecord, session: str) -> ConversationChange:
    """The program says that it is in another conversation than the one it was to go on with."""
    return _lost(record, f"asked to go on with {record.conversation}, the program reports {session}")


def told(record: AgentRecord, before: str | None, session: str, *, working: bool) -> ConversationChange:
    """The program told its conversation's id, which was `before`. Another one in the middle of a launch is a person's
    doing (`/clear`, `/new`, `/resume`); it has content from its first turn on, which may be what is `working`."""
    if before is None or before == session:
        return ConversationChange()
    note = "begun in the program itself"
    fields = {"said": working, "context_id": new_id(), "conversation_note": note}
    return ConversationChange(fields={**fields, "conversation": session if working else None})


def lost(record: AgentRecord, profile: Profile) -> str | None:
    """How the present conversation came about, if an earlier one was lost, and nothing was said since that somebody who
    expects that would have missed."""
    note = record.conversation_note
    is_lost = note is not None and note.startswith(NEW) and note != NOTHING_SAID
    return note if is_lost and profile.resumes and not record.said else None


def chosen(record: AgentRecord, session: str) -> ConversationChange:
    """The program told the conversation that a person's own arguments chose: the next one goes on with that, and does
    not ask again."""
    if record.conversation == session:
        return ConversationChange()
    note = "chosen by the agent's own arguments"
    return ConversationChange(fields={"conversation": session, "said": True, "conversation_note": note})


def said(record: AgentRecord, session: str | None, context_id: str | None) -> ConversationChange:
    """A turn began. The first of a conversation gives it its context; most programs refuse to resume a conversation in
    which nothing was said, so that its id counts from now on."""
    fields: dict[str, Any] = {}
    if not record.said:
        fields["said"] = True
        if context_id is not None and context_id != record.context_id:
            fields["context_id"] = context_id
    if session is not None and session != record.conversation:
        fields["conversation"] = session
    return ConversationChange(fields=fields)


def asked_anew(context_id: str) -> ConversationChange:
    """A new conversation is begun because a message asks for it."""
    note = "new, as a message asked"
    return ConversationChange(fields=_empty(note) | {"context_id": context_id})


def _lost(record: AgentRecord, why: str) -> ConversationChange:
    details = {"conversation": record.conversation, "context_id": record.context_id}
    alert = AgentAlert(code=LOST, message=f"{why}; the conversation is new", details=details)
    return ConversationChange(fields=_empty(f"{NEW}{why}"), alert=alert)


def _empty(note: str) -> dict[str, Any]:
    return {"conversation": None, "said": False, "context_id": new_id(), "conversation_note": note}


class LaunchConversation:
    """One object sees all launches of an agent, one after the other."""

    def __init__(self) -> None:
        self.ready_seen = False
        """The program was ready or busy since it was launched: it took up the conversation it was resumed with."""
        self._chosen = False
        """A person's own arguments chose the conversation, in which nothing was said yet by this program."""
        self._session: str | None = None
        """The conversation's id, as it was given to the program or as the program told it."""
        self._told: str | None = None
        self._working = False
        self._to_resume: str | None = None
        """The conversation that the program was started on, until it tells its own."""

    def given(self, session: str | None, *, chosen: bool) -> None:
        """The program is being launched with that conversation's id."""
        self._session, self._chosen = session, chosen

    def adopted(self, record: AgentRecord) -> None:
        """An earlier daemon launched it."""
        self.ready_seen, self._working = True, False
        self._session = self._told = record.conversation

    def launched(self, record: AgentRecord, profile: Profile, *, resumed: bool) -> ConversationChange:
        """It runs."""
        self.ready_seen = self._working = False
        self._told = None
        self._to_resume = record.conversation if resumed else None
        return began(record, profile, resumed=resumed)

    def saw(self, record: AgentRecord, activity: Activity, context_id: str | None) -> ConversationChange:
        """What it was seen doing. Busy after it was ready once: something is said, in the conversation `context_id`
        where a task says it."""
        was_ready = self.ready_seen
        if activity in (Activity.READY, Activity.BUSY):
            self.ready_seen = True
        self._working = activity is Activity.BUSY and was_ready
        if not self._working:
            return ConversationChange()
        self._chosen = False
        return said(record, self._session, context_id)

    def prompted(self, record: AgentRecord, session: str | None, context_id: str | None) -> ConversationChange:
        """The program took a prompt in that conversation: something is said in it, however soon it is answered."""
        if session is None or session != self._session:
            return ConversationChange()
        self._chosen = False
        return said(record, session, context_id)

    def told(self, record: AgentRecord, session: str) -> ConversationChange:
        """The program told its conversation's id."""
        wanted, self._to_resume = self._to_resume, None
        before, self._told = self._told, session
        self._session = session
        if self._chosen:
            return chosen(record, session)
        if wanted is not None and wanted != session:
            return replaced(record, session)
        return told(record, before, session, working=self._working)

    def said(self, record: AgentRecord) -> ConversationChange:
        """That id is durable: what is being said counts for it."""
        return said(record, self._session, None) if self._working else ConversationChange()
