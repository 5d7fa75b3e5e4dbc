"""Decides whether an agent's conversation continues from one program to the next: purely, as changes of the agent's
record.

An agent has one conversation at a time. The next program resumes it if the profile supports this, the program reported
its id, and something was said in it. If a conversation with content is not continued, and nobody asked for that, it is
reported by an alert, in the log, and in `status`. `record.context_id` is the conversation's name to clients.
"""

from collections.abc import Iterable, Sequence
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
"""Beginning of the note on a conversation that replaced the one before without a request."""

ASKED_ANEW = "new, as a message asked"

NOTHING_SAID = f"{NEW}nothing had been said in the one before"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationChange:
    """Changes of the record, and the alerts that report them to a person."""

    fields: dict[str, Any] = field(default_factory=dict)
    alerts: Sequence[AgentAlert] = ()


def obstacle(record: AgentRecord, profile: Profile) -> str | None:
    """Returns why the next program could not continue the conversation; None if it can, or has nothing to continue."""
    if not record.said:
        return None
    if not profile.resumes:
        return "its profile knows no way to resume one"
    return "the program never reported the id of its conversation" if record.conversation is None else None


def taken(records: Iterable[AgentRecord]) -> dict[tuple[str, str], str]:
    """Returns the names of the agents by the conversation that each is in: its profile and the program's own id."""
    return {(record.profile, record.conversation): record.name for record in records if record.conversation}


def began(record: AgentRecord, profile: Profile, *, resumed: bool) -> ConversationChange:
    """Handles the start of a program; `resumed`: it was started with the conversation on record."""
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
    """Handles a program that ended before it was ready with the conversation it should have resumed. The next launch
    begins a new one rather than failing for ever."""
    return _lost(record, f"the program ended ({how}) before it was ready with its earlier conversation")


def replaced(record: AgentRecord, session: str) -> ConversationChange:
    """Handles a program that is in another conversation than the one it should have resumed."""
    return _lost(record, f"asked to go on with {record.conversation}, the program reports {session}")


def told(before: str | None, session: str, *, working: bool) -> ConversationChange:
    """Handles the program's report of its conversation's id, which was `before` until now. A change in the middle of a
    launch is a person's own action (`/clear`, `/new`, `/resume`). The new conversation has content from its first turn
    on; `working`: a turn runs now."""
    if before is None or before == session:
        return ConversationChange()
    note = "begun in the program itself"
    fields = {"said": working, "context_id": new_id(), "conversation_note": note}
    return ConversationChange(fields={**fields, "conversation": session if working else None})


def lost(record: AgentRecord, profile: Profile) -> str | None:
    """Returns the note on the present conversation if it replaced a lost one and is still empty; otherwise None."""
    note = record.conversation_note
    is_lost = note is not None and note.startswith(NEW) and note != NOTHING_SAID
    return note if is_lost and profile.resumes and not record.said else None


def chosen(record: AgentRecord, session: str) -> ConversationChange:
    """Handles a conversation that a person's own arguments chose: the next program continues it without them."""
    if record.conversation == session:
        return ConversationChange()
    note = "chosen by the agent's own arguments"
    return ConversationChange(fields={"conversation": session, "said": True, "conversation_note": note})


def said(record: AgentRecord, session: str | None, context_id: str | None) -> ConversationChange:
    """Handles the beginning of a turn. The first turn of a conversation gives it its context; most programs refuse to
    resume a conversation in which nothing was said, so its id counts from now on."""
    fields: dict[str, Any] = {}
    if not record.said:
        fields["said"] = True
        if context_id is not None and context_id != record.context_id:
            fields["context_id"] = context_id
    if session is not None and session != record.conversation:
        fields["conversation"] = session
    return ConversationChange(fields=fields)


def asked_anew(context_id: str) -> ConversationChange:
    """Begins a new conversation because a message asks for it."""
    return ConversationChange(fields=_empty(ASKED_ANEW) | {"context_id": context_id})


def _lost(record: AgentRecord, why: str) -> ConversationChange:
    details = {"conversation": record.conversation, "context_id": record.context_id}
    alert = AgentAlert(code=LOST, message=f"{why}; the conversation is new", details=details)
    return ConversationChange(fields=_empty(f"{NEW}{why}"), alerts=[alert])


def _empty(note: str) -> dict[str, Any]:
    return {"conversation": None, "said": False, "context_id": new_id(), "conversation_note": note}


class LaunchConversation:
    """Follows the conversation through all launches of an agent, one after the other."""

    def __init__(self) -> None:
        self.ready_seen = False
        """True if the program was ready or busy since its launch: it accepted the conversation it was resumed with."""
        self._chosen = False
        """True if a person's own arguments chose the conversation, and this program has said nothing in it yet."""
        self._session: str | None = None
        """The conversation's id that was given to the program, or that the program reported."""
        self._told: str | None = None
        self._working = False
        self._to_resume: str | None = None
        """The conversation that the program was started on, until it reports its own."""

    def given(self, session: str | None, *, chosen: bool) -> None:
        """Notes the conversation id with which the program is being launched."""
        self._session, self._chosen = session, chosen

    def adopted(self, record: AgentRecord) -> None:
        """Notes that an earlier daemon launched the program."""
        self.ready_seen, self._working = True, False
        self._session = self._told = record.conversation

    def launched(self, record: AgentRecord, profile: Profile, *, resumed: bool) -> ConversationChange:
        """Handles a launch that succeeded."""
        self.ready_seen = self._working = False
        self._told = None
        self._to_resume = record.conversation if resumed else None
        return began(record, profile, resumed=resumed)

    def saw(self, record: AgentRecord, activity: Activity, context_id: str | None) -> ConversationChange:
        """Handles an observed activity. Busy after it was ready once means that something is said, in the conversation
        `context_id` if a task names it."""
        was_ready = self.ready_seen
        if activity in (Activity.READY, Activity.BUSY):
            self.ready_seen = True
        self._working = activity is Activity.BUSY and was_ready
        if not self._working:
            return ConversationChange()
        self._chosen = False
        return said(record, self._session, context_id)

    def prompted(self, record: AgentRecord, session: str | None, context_id: str | None) -> ConversationChange:
        """Handles a prompt that the program took in that conversation: something is said in it, even if the answer
        comes before the program is seen busy."""
        if session is None or session != self._session:
            return ConversationChange()
        self._chosen = False
        return said(record, session, context_id)

    def told(self, record: AgentRecord, session: str) -> ConversationChange:
        """Handles the program's report of its conversation's id."""
        wanted, self._to_resume = self._to_resume, None
        before, self._told = self._told, session
        self._session = session
        if self._chosen:
            return chosen(record, session)
        if wanted is not None and wanted != session:
            return replaced(record, session)
        return told(before, session, working=self._working)

    def said(self, record: AgentRecord) -> ConversationChange:
        """Handles a conversation id that is durable: the present turn counts for it."""
        return said(record, self._session, None) if self._working else ConversationChange()
