"""Text in a composer that nobody typed is no draft of a person's."""

import pytest

from synapsed.model.agent import Activity
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Composer
from synapsed.terminal.composer import TYPED_S
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.screen_messages import KeysTyped
from tests.support.readiness import held, receives

PROFILE = Profile(
    name="tool",
    command="tool",
    composer=Composer(line=r"^> ?(?P<text>.*)$", placeholder="^Ask me$", empty=r"\n>[^\n]*\n-{4,}"),
)

FRAME = "\x1b[H\x1b[2J> {text}\x1b[2;1H--------\x1b[1;{column}H"


class Terminal:
    """A program that draws a text into its composer, with the terminal's cursor, or one of its own."""

    def __init__(self) -> None:
        self.observer = TerminalObserver(PROFILE, cols=60, rows=6, offset=0)
        self.now = 0.0

    def draws(self, text: str, *, cursor: int = 3) -> None:
        data = FRAME.format(text=text, column=cursor).encode()
        self.observer.feed(self.observer.offset, data, self.now)

    def draws_its_own_cursor(self, before: str, under: str, behind: str) -> None:
        text = f"{before}\x1b[7m{under}\x1b[27m{behind}"
        data = (FRAME.format(text=text, column=1) + "\x1b[?25l").encode()
        self.observer.feed(self.observer.offset, data, self.now)

    def typed(self) -> None:
        self.observer.note(KeysTyped(self.now))

    def later(self, seconds: float = 1.0) -> str | None:
        """What holds a message back after so long; "ready" where nothing does."""
        self.observer.look(self.now)
        self.now += seconds
        look = self.observer.look(self.now)
        assert look.verdict.activity is Activity.READY
        return held(look) if not receives(look) else "ready"


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_a_placeholder_of_another_version_is_no_draft(terminal: Terminal) -> None:
    terminal.draws("Ask anything")
    assert terminal.later() == "ready"
    terminal.draws_its_own_cursor("", "A", "sk anything")
    assert terminal.later() == "ready"


def test_a_draft_that_is_restored_has_the_cursor_at_its_end(terminal: Terminal) -> None:
    terminal.draws("rm -rf", cursor=9)
    assert terminal.later() == "typing"
    terminal.draws_its_own_cursor("rm -rf", " ", "")
    assert terminal.later() == "typing"


def test_where_the_cursor_is_not_to_be_found_nothing_is_typed(terminal: Terminal) -> None:
    terminal.observer.feed(0, b"\x1b[H> Ask anything\x1b[2;1H--------\x1b[?25l", 0.0)
    assert terminal.later() == "typing"
    terminal.draws_its_own_cursor("", "Ask", " anything")
    assert terminal.later() == "typing", "a selection is no cursor"


def test_what_keys_have_brought_is_a_draft_wherever_the_cursor_is(terminal: Terminal) -> None:
    terminal.draws("")
    assert terminal.later() == "ready"
    terminal.typed()
    terminal.draws("a draft")
    assert terminal.later() == "typing"
    assert terminal.later(10 * TYPED_S) == "typing", "nor does it become one by standing there"


def test_a_suggestion_that_comes_later_is_the_programs_own(terminal: Terminal) -> None:
    terminal.typed()
    terminal.draws("")
    assert terminal.later(TYPED_S + 1) == "ready"
    terminal.draws("Fix the tests")
    assert terminal.later() == "ready"


def test_one_that_was_seen_before_is_known(terminal: Terminal) -> None:
    terminal.draws("Ask anything")
    assert terminal.later() == "ready"
    terminal.typed()
    terminal.draws("hello", cursor=8)
    assert terminal.later() == "typing"
    terminal.typed()
    terminal.draws("Ask anything")
    assert terminal.later() == "ready"


def test_a_cursor_that_a_person_moves_into_it_shows_a_draft(terminal: Terminal) -> None:
    terminal.draws("Ask anything")
    assert terminal.later() == "ready"
    terminal.draws("Ask anything", cursor=6)
    assert terminal.later() == "typing"


def test_the_next_daemon_knows_the_text_and_nothing_that_came_meanwhile(terminal: Terminal) -> None:
    terminal.draws("Ask anything")
    assert terminal.later() == "ready"
    checkpoint = terminal.observer.checkpoint()
    terminal.observer = TerminalObserver.restore(PROFILE, checkpoint, terminal.now)
    assert terminal.later() == "ready"
    terminal.observer = TerminalObserver.restore(PROFILE, checkpoint, terminal.now)
    terminal.draws("a person's")
    assert terminal.later() == "typing"


def test_what_surrounds_an_empty_composer_must_stand(terminal: Terminal) -> None:
    """A draft of two lines whose cursor stands at the beginning."""
    terminal.observer.feed(0, b"\x1b[H> first line\x1b[2;1H  second\x1b[3;1H--------\x1b[1;3H", 0.0)
    assert terminal.later() == "typing"
