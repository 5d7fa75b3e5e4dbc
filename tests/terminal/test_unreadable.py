"""Screens that nobody here can read: when that is told, and what."""

import pytest

from synapsed.errors import InvalidChoice
from synapsed.model.agent import Activity
from synapsed.model.facts import PromptAccepted
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import BusySigns, Composer, Ready, Signs
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.prompts import keys_for
from synapsed.terminal.unreadable import IN_TURN_S, ROWS_MAX, UNREADABLE_S
from synapsed.terminal.verdict import QUIET_UNKNOWN_S, STALE_S, START_UNKNOWN_S
from tests.support.readiness import held, receives

FULL = Profile(
    name="full",
    command="full",
    ready=Ready(quiet_ms=0),
    busy=BusySigns(screen=["^working"]),
    waiting=Signs(title="^asks"),
    composer=Composer(line=r"^> ?(?P<text>.*)$"),
)
LINES = FULL.model_copy(update={"composer": Composer(line=r"^\$ (?P<text>.*)$", at_cursor=True), "busy": BusySigns()})


def started(profile: Profile = FULL) -> TerminalObserver:
    watched = TerminalObserver(profile, cols=40, rows=30, offset=0)
    watched.feed(0, b"$ " if profile is LINES else b"> ", 0.0)
    assert watched.look(0.0).verdict.activity is Activity.READY
    return watched


def shows(watched: TerminalObserver, rows: bytes, at: float) -> None:
    watched.feed(watched.offset, b"\x1b[2J\x1b[H" + rows, at)
    watched.look(at)


def test_what_is_not_understood_for_long_enough_is_told_as_it_is() -> None:
    watched = started()
    shows(watched, b"Which gate?\r\n\r\n   left    right", 1.0)
    early = watched.look(1.0 + QUIET_UNKNOWN_S)
    assert (early.verdict.activity, early.verdict.asked, held(early)) == (Activity.UNKNOWN, None, None)
    assert early.unreadable_at == 1.0 + UNREADABLE_S
    look = watched.look(early.unreadable_at)
    told = look.verdict
    assert (told.activity, held(look), receives(look)) == (Activity.UNKNOWN, "unknown screen", False)
    assert told.asked is not None
    assert told.asked.prompt.prompt == "Which gate?\n   left    right"
    assert (told.asked.prompt.type, told.asked.prompt.options, told.asked.prompt.own_words) == ("screen", [], False)
    with pytest.raises(InvalidChoice, match="answer in an attached terminal"):
        keys_for(told.asked, "left")
    shows(watched, b"> ", 9.0)
    assert receives(watched.look(9.0))


@pytest.mark.parametrize(("profile", "within"), [(LINES, 11), (FULL, 31)], ids=["any program", "one with a composer"])
def test_a_full_screen_that_moves_and_was_never_ready_is_told(profile: Profile, within: int) -> None:
    """A card to sign in with a spinner, a monitor of processes: it would be starting for ever."""
    watched = TerminalObserver(profile, cols=40, rows=30, offset=0)
    told: list[int] = []
    for second in range(within + 1):
        rows = f"\x1b[?1049h\x1b[2J\x1b[HSign in at the page that opened\r\n{'|/-+'[second % 4]}".encode()
        watched.feed(watched.offset, rows, float(second))
        look = watched.look(float(second))
        told += [second] if look.verdict.asked is not None else []
        assert look.verdict.activity in (Activity.STARTING, Activity.UNKNOWN)
    assert told
    assert told[0] <= within
    assert held(look) == "unknown screen"
    shows(watched, b"\x1b[?1049l$ " if profile is LINES else b"\x1b[?1049l> ", within + 1.0)
    assert receives(watched.look(within + 2.0))


def test_what_prints_line_by_line_may_start_for_long() -> None:
    watched = TerminalObserver(LINES, cols=40, rows=30, offset=0)
    for second in range(120):
        watched.feed(watched.offset, f"compiling {second}\r\n".encode(), float(second))
        assert watched.look(float(second)).verdict.activity is Activity.STARTING


def test_a_turn_may_think_for_longer() -> None:
    watched = started()
    watched.in_turn = True
    shows(watched, b"hm", 1.0)
    assert watched.look(1.0 + IN_TURN_S - 0.1).verdict.asked is None
    assert watched.look(1.0 + IN_TURN_S).verdict.asked is not None


def test_what_covers_the_composer_of_an_open_turn_is_told() -> None:
    """A channel that says that the turn goes on, and a screen that shows no work and cannot be read."""
    watched = started()
    watched.turn.told(PromptAccepted(channel="hooks", at_ns=1, prompt="x"))
    shows(watched, b"A dialog of another version", 1.0)
    assert watched.look(1.0 + STALE_S - 0.1).verdict.source == "hooks"
    assert watched.look(1.0 + STALE_S).verdict.activity is Activity.UNKNOWN
    shows(watched, b"working", 20.0)
    assert watched.look(20.0 + STALE_S).verdict.activity is Activity.BUSY


def test_who_says_that_it_waits_and_shows_no_dialog_is_told_once() -> None:
    """A clock on its screen is no other question."""
    watched = started()
    shows(watched, b"\x1b]2;asks you\x07Something 0", 1.0)
    assert held(watched.look(2.0)) == "dialog"
    prompts = set()
    for tick in range(1, 20):
        shows(watched, b"Something %d" % tick, 1.0 + tick)
        verdict = watched.look(1.0 + tick).verdict
        assert verdict.activity is Activity.WAITING
        prompts.add(verdict.asked.prompt.prompt_id if verdict.asked else None)
    assert len(prompts) == 2, "nothing, then the screen as it was"
    asked = watched.look(99.0).verdict.asked
    assert asked is not None
    assert asked.prompt.prompt == "Something 19"


def test_a_start_that_cannot_be_read_is_no_start_any_more_but_may_become_one() -> None:
    watched = TerminalObserver(FULL, cols=40, rows=5, offset=0)
    assert watched.look(99.0).verdict.activity is Activity.STARTING, "a blank screen says nothing"
    watched.feed(0, b"Trust it all?", 100.0)
    watched.look(100.0)
    assert watched.look(100.0 + START_UNKNOWN_S - 0.1).verdict.activity is Activity.STARTING
    stuck = watched.look(100.0 + START_UNKNOWN_S)
    assert (stuck.verdict.activity, held(stuck)) == (Activity.UNKNOWN, "unknown screen")
    shows(watched, b"loading", 120.0)
    assert watched.look(120.0).verdict.activity is Activity.STARTING


@pytest.mark.parametrize(
    ("kernel", "activity"), [("reads", "unknown"), ("rests", "unknown"), ("works", "busy"), (None, "busy")]
)
def test_a_quiet_line_oriented_program_is_judged_by_the_kernel(kernel: str | None, activity: str) -> None:
    watched = started(LINES)
    shows(watched, b"Which way", 1.0)
    watched.kernel = kernel  # type: ignore[assignment]  # a word of its own
    look = watched.look(1.0 + UNREADABLE_S)
    assert look.verdict.activity == activity
    assert (look.verdict.asked is not None) == (activity == "unknown")
    told = next(row for row in watched.explain(1.0 + UNREADABLE_S) if row.channel == "kernel")
    assert told.decides == (activity == "unknown")


def test_who_may_be_reading_and_was_never_ready_is_not_starting_for_ever() -> None:
    """What has been ready may wait for the network."""
    watched = TerminalObserver(LINES, cols=40, rows=5, offset=0)
    watched.feed(0, b"This is a Lisp\r\n* ", 1.0)
    watched.look(1.0)
    watched.kernel = "polls"
    assert watched.look(1.0 + START_UNKNOWN_S - 0.1).verdict.activity is Activity.STARTING
    assert watched.look(1.0 + START_UNKNOWN_S).verdict.asked is not None
    other = started(LINES)
    shows(other, b"Connecting", 1.0)
    other.kernel = "polls"
    assert other.look(50.0).verdict.activity is Activity.BUSY


def test_who_reads_lines_is_answered_with_one() -> None:
    watched = started(LINES)
    watched.in_turn, watched.kernel = True, "reads"
    shows(watched, b"Which way", 1.0)
    asked = watched.look(1.0 + UNREADABLE_S).verdict.asked
    assert asked is not None
    assert keys_for(asked, "to the left") == ([b"to the left\r"], None)


def test_the_last_rows_are_told() -> None:
    watched = started()
    shows(watched, b"\r\n".join(b"row %d" % row for row in range(28)), 1.0)
    asked = watched.look(50.0).verdict.asked
    assert asked is not None
    assert asked.prompt.prompt.splitlines() == [f"row {row}" for row in range(28 - ROWS_MAX, 28)]
