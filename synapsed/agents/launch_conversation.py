"""The conversation that one launch of an agent's program is in, followed from its start on. Pure: what changes of the
agent's record is returned, and is so once that is durable."""

from synapsed.agents import conversations
from synapsed.agents.conversations import ConversationChange
from synapsed.model.agent import Activity
from synapsed.model.records import AgentRecord
from synapsed.profiles.profile import Profile


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
        return conversations.began(record, profile, resumed=resumed)

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
        return conversations.said(record, self._session, context_id)

    def prompted(self, record: AgentRecord, session: str | None, context_id: str | None) -> ConversationChange:
        """The program took a prompt in that conversation: something is said in it, however soon it is answered."""
        if session is None or session != self._session:
            return ConversationChange()
        self._chosen = False
        return conversations.said(record, session, context_id)

    def told(self, record: AgentRecord, session: str) -> ConversationChange:
        """The program told its conversation's id."""
        wanted, self._to_resume = self._to_resume, None
        before, self._told = self._told, session
        self._session = session
        if self._chosen:
            return conversations.chosen(record, session)
        if wanted is not None and wanted != session:
            return conversations.replaced(record, session)
        return conversations.told(record, before, session, working=self._working)

    def said(self, record: AgentRecord) -> ConversationChange:
        """That id is durable: what is being said counts for it."""
        return conversations.said(record, self._session, None) if self._working else ConversationChange()
