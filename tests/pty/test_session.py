"""One program in a terminal, decided purely: events in, commands out."""

from dataclasses import replace

import pytest

from synapsed.errors import NotReady
from synapsed.interfaces import Delivery
from synapsed.keepers.heartbeat import SILENT
from synapsed.model.agent import Activity
from synapsed.model.facts import PromptAccepted, SessionStarted, TurnAnswered, TurnEnded, TurnUsed
from synapsed.model.link import LinkAlert, LinkEvent, LinkObserved, LinkSession, LinkTold, LinkTurnEnded
from synapsed.model.records import TurnRecord
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Composer, Dialog, Prompts, Ready
from synapsed.pty.keyboard import Emit, Tell, Work
from synapsed.pty.session import (
    CHECKPOINT_EVERY,
    HANDS_OFF_S,
    Session,
)
from synapsed.pty.session_commands import AnswerQuery, AtRest, LookSoon, Poll, SaveScreen, SessionCommand
from synapsed.pty.turn_types import Phase, TurnState, Type
from synapsed.terminal.look import Look
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.screen_messages import Drawn, Start, StopOver, TurnClosed
from synapsed.terminal.unreadable import UNREADABLE_S
from tests.pty.playbook import kind

PROFILE = Profile(
    name="p",
    command="p",
    ready=Ready(quiet_ms=0),
    composer=Composer(line="^> ?(?P<text>.*)$"),
    prompts=Prompts(dialogs=[Dialog(type="permission", when=[r"^Allow it\?"])]),
)


class Playbook:
    """A session, what it was told and what it wants."""

    def __init__(self, screen: bytes = b"> ", *, profile: Profile = PROFILE) -> None:
        self.now = 10.0
        self.observer = TerminalObserver(profile, cols=80, rows=24, offset=0)
        self.session = Session(profile, Start(0), channels_tell=True)
        if screen:
            self.draws(screen)
            self.looks()

    def draws(self, screen: bytes) -> list[SessionCommand]:
        return self.prints(b"\x1b[H\x1b[J" + screen)

    def prints(self, data: bytes) -> list[SessionCommand]:
        offset = self.session.offset
        commands = self.session.output(offset, data)
        replies = self.observer.feed(offset, data, self.now)
        return commands + self.session.drawn(Drawn(self.observer.offset, replies))

    def look(self) -> Look:
        look = self.observer.asked(self.session.ask(self.now))
        assert look is not None
        return self.session.believed(look)

    def looks(self, after: float = 0.0) -> list[SessionCommand]:
        """What the link does when it looks."""
        self.now += after
        look = self.look()
        return [
            *self.session.looked(look, self.now),
            *self.session.judge(look, self.now),
        ]

    def begins(self, *, phase: Phase = Phase.PASTING, fresh: bool = True) -> list[SessionCommand]:
        state = TurnState(phase=phase, submitted=not fresh, submit_ns=0, submit_offset=0)
        record = TurnRecord(task_id="t", launch_id="l", link=state.model_dump(mode="json"))
        return self.session.begin(Delivery(task_id="t", text="hello", record=record, fresh=fresh), self.now)

    @property
    def seen(self) -> LinkObserved:
        assert self.session.observations.last is not None
        return self.session.observations.last


def told(commands: list[SessionCommand]) -> list[LinkEvent]:
    return [command.event for command in commands if isinstance(command, Emit)]


def test_a_program_that_has_started_is_told_of_once_and_its_screen_kept() -> None:
    book = Playbook(b"")
    assert book.draws(b"> ") == [LookSoon()]
    commands = book.looks()
    assert commands == [SaveScreen(), Emit(book.seen)]
    assert (book.seen.activity, book.seen.can_receive) == (Activity.READY, True)
    assert book.looks(1.0) == []


def test_a_query_is_answered_by_where_it_ended() -> None:
    book = Playbook()
    offset = book.session.offset
    answer, soon = book.prints(b"\x1b[c")
    assert isinstance(answer, AnswerQuery)
    assert (answer.offset, soon) == (offset + 3, LookSoon())


def test_the_screen_is_kept_every_so_many_bytes_and_not_while_it_is_being_kept() -> None:
    book = Playbook()
    book.session.saving(book.session.offset)
    flood = b"x" * CHECKPOINT_EVERY
    assert SaveScreen() not in book.draws(flood)
    book.session.saved()
    assert SaveScreen() in book.draws(b"> ")
    assert SaveScreen() not in book.draws(b"> ")
    book.session.saving(book.session.offset)
    book.session.saved()
    assert book.session.is_saved
    assert SaveScreen() not in book.draws(b"> ")
    assert not book.session.is_saved


def test_a_conversation_is_told_when_it_is_another_one() -> None:
    book = Playbook()
    fact = PromptAccepted(channel="hooks", at_ns=1, session="one")
    assert told(book.session.told(fact, book.now)) == [LinkSession("one", fact.at_ns), LinkTold(fact)]
    assert told(book.session.told(fact, book.now)) == [LinkTold(fact)]
    other = replace(fact, session="two")
    assert told(book.session.told(other, book.now)) == [LinkSession("two", other.at_ns), LinkTold(other)]


def test_late_news_of_a_conversation_is_no_way_back_to_it() -> None:
    """What a turn has used is told up to a minute after it, and what was told to an earlier daemon is told again."""
    book = Playbook()
    start = SessionStarted(channel="hooks", at_ns=5, session="two")
    book.session.told(PromptAccepted(channel="hooks", at_ns=1, session="one"), book.now)
    book.session.told(start, book.now)
    late = [
        TurnUsed(channel="hooks", at_ns=9, session="one"),
        TurnEnded(channel="hooks", at_ns=8, session="one"),
        PromptAccepted(channel="hooks", at_ns=4, session="one"),
    ]
    for fact in late:
        assert LinkSession not in map(type, told(book.session.told(fact, book.now)))
    back = replace(start, at_ns=10, session="one")
    assert LinkSession("one", 10) in told(book.session.told(back, book.now))


def test_a_person_who_types_is_waited_for_and_then_it_is_looked_again() -> None:
    book = Playbook()
    book.session.pressed(book.now)
    assert [event.held for event in told(book.looks()) if isinstance(event, LinkObserved)] == ["typing"]
    when = book.session.wake_at(book.look(), book.now)
    assert when is not None
    assert when >= book.now + HANDS_OFF_S
    book.looks(when - book.now)
    assert book.seen.can_receive


def test_a_prompt_that_leaves_after_a_person_was_at_it_was_answered_by_hand() -> None:
    book = Playbook()
    book.draws(b"Allow it?")
    book.looks()
    book.looks(1.0)
    assert book.seen.prompt is not None
    asked = book.seen.prompt.prompt_id
    book.session.observations.touch()
    book.draws(b"> ")
    book.looks(1.0)
    assert book.seen.by_hand == asked
    assert book.session.observations.touched is None


def test_a_keeper_that_does_not_answer_makes_the_program_unknown() -> None:
    book = Playbook()
    book.session.silent = True
    book.looks()
    assert (book.seen.activity, book.seen.evidence, book.seen.held) == (Activity.UNKNOWN, SILENT, "keeper")


def test_a_screen_that_is_not_understood_is_an_alert_until_it_is() -> None:
    book = Playbook()
    book.draws(b"left or right")
    book.looks()
    alerts = [event for event in told(book.looks(UNREADABLE_S + 1)) if isinstance(event, LinkAlert)]
    book.looks(1.0)
    assert [(alert.code, alert.state) for alert in alerts] == [("UNKNOWN_SCREEN", "begins")]
    book.draws(b"> ")
    alerts = [event for event in told(book.looks(1.0)) if isinstance(event, LinkAlert)]
    assert [(alert.code, alert.state) for alert in alerts] == [("UNKNOWN_SCREEN", "over")]


def test_a_turn_begins_by_its_paste_and_there_is_only_one() -> None:
    book = Playbook()
    over, work = book.begins()
    assert over == Tell(StopOver())
    assert isinstance(work, Work)
    assert [type(command) for command in work.commands] == [Type]
    assert told(book.looks()) == [], "whoever has given the message knows, and asks before the next one"
    assert not book.seen.can_receive, "no other message meanwhile"
    with pytest.raises(NotReady):
        book.begins()
    assert book.session.input_id("paste") == "t.1.paste"


def test_it_is_told_that_a_message_can_be_typed_again() -> None:
    """Also where nothing was told meanwhile: a message may have come while the screen moved, and waits."""
    book = Playbook(profile=PROFILE.model_copy(update={"ready": Ready(quiet_ms=100)}))
    book.looks(1.0)
    assert book.seen.can_receive
    book.draws(b"> \x1b[3;1Hnews\x1b[1;3H")
    assert told(book.looks()) == []
    assert not book.seen.can_receive
    assert [event.can_receive for event in told(book.looks(0.2)) if isinstance(event, LinkObserved)] == [True]


def test_what_was_reported_before_a_turn_is_taken_up_again_counts() -> None:
    book = Playbook()
    book.session.told(PromptAccepted(channel="hooks", at_ns=1, prompt="hello"), book.now)
    book.session.told(TurnEnded(channel="hooks", at_ns=2, answer="hi"), book.now)
    works = [command for command in book.begins(phase=Phase.WORKING, fresh=False) if isinstance(command, Work)]
    assert any(kind(command) is LinkTurnEnded for work in works for command in work.commands)


def test_a_turn_that_is_over_is_told_and_gone() -> None:
    book = Playbook()
    book.begins(phase=Phase.WORKING, fresh=False)
    book.looks()
    commands = book.session.say(LinkTurnEnded("t", "hi", True, "hooks"), "", book.now, stays=False)
    assert told(commands) == [LinkTurnEnded("t", "hi", True, "hooks", False)]
    assert book.session.turn is None
    assert not book.session.ask(book.now).in_turn


def test_channels_are_asked_when_the_program_goes_on_in_a_turn() -> None:
    """What a transcript says of it is not poked for."""
    book = Playbook()
    book.draws(b"Allow it?")
    book.begins(phase=Phase.WORKING, fresh=False)
    book.looks()
    assert Poll() in book.looks(1.0)


def answered(book: Playbook) -> list[SessionCommand]:
    book.session.told(PromptAccepted(channel="hooks", at_ns=1), book.now)
    return book.session.told(TurnAnswered(channel="hooks", at_ns=2), book.now)


def test_a_program_that_shows_work_after_an_answer_does_not_rest() -> None:
    """Its hooks run, or have sent the model back; then its screen is at rest, which is told once for each answer."""
    book = Playbook()
    book.prints(b"\x1b]7501;state=working\x07")
    assert TurnClosed() in [command.note for command in answered(book) if isinstance(command, Tell)]
    book.draws(b"First.\r\n> ")
    assert AtRest() not in book.looks(30.0)
    book.prints(b"\x1b]7501;state=done\x07")
    assert AtRest() in book.looks()
    assert AtRest() not in book.looks(1.0)
    book.session.told(TurnAnswered(channel="hooks", at_ns=3), book.now)
    assert AtRest() in book.looks(1.0)


def test_a_prompt_that_is_taken_after_an_answer_ends_the_wait_for_its_rest() -> None:
    """A hook's own words may be one."""
    book = Playbook()
    answered(book)
    book.session.told(PromptAccepted(channel="hooks", at_ns=3), book.now)
    assert AtRest() not in book.looks(1.0)
