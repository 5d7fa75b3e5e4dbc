"""What runs in a program's background keeps no message waiting; what moves beside its work makes no screen restless."""

import base64

import pytest

from synapsed.model.agent import Activity
from synapsed.model.facts import PromptAccepted, TurnEnded
from synapsed.profiles.channel_spec import Channel
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Background, BusySigns, Composer, Interrupt, Ready
from synapsed.terminal.background import ROWS_ABOVE
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.screen_messages import InBackground
from synapsed.terminal.verdict import BACKGROUND_S, STALE_S, screen_sign
from tests.support.readiness import receives

PROFILE = Profile(
    name="p",
    command="p",
    status_records="p",
    ready=Ready(quiet_ms=100),
    busy=BusySigns(title="^\\* ", screen=[r">[^\n]*\n(?P<sign>esc to stop)"]),
    background=Background(rows=[r"(?P<count>\d+) (?P<what>shell)s?$", r"^ o (?P<what>\w+)"]),
    composer=Composer(line=r"^> ?(?P<text>.*)$"),
    interrupt=Interrupt(keys="\x1b", still_ms=1000),
    channels={"hooks": Channel(adapter="hooks")},
)
COMPOSER = b"the answer\r\n> \r\nstatus line\r\n"


def report(**pairs: str) -> bytes:
    return (
        b"\x1b]7501;" + ":".join(f"{key}={value}" for key, value in {**pairs, "app": "p"}.items()).encode() + b"\x1b\\"
    )


PART = report(state="working", id="a1", title=base64.b64encode(b"Look at it").decode())


def watched(screen: bytes, profile: Profile = PROFILE, now: float = 1.0) -> TerminalObserver:
    """A program that has been ready, and shows that since `now`."""
    observer = TerminalObserver(profile, cols=40, rows=14, offset=0)
    observer.feed(0, b"> ", 0.0)
    observer.look(0.0)
    observer.look(0.5)
    draw(observer, screen, now)
    observer.look(now)
    return observer


def draw(observer: TerminalObserver, screen: bytes, now: float) -> None:
    observer.feed(observer.offset, b"\x1b[H\x1b[J" + screen, now)


def test_parts_of_a_record_are_in_the_background_where_nothing_else_shows_work() -> None:
    observer = watched(report(state="working") + PART + COMPOSER)
    assert observer.look(1.05).verdict.activity is Activity.BUSY, "its screen has not come to rest"
    assert observer.look(1.2).verdict.activity is Activity.BUSY, "a spinner may stand still so long"
    look = observer.look(1.1 + BACKGROUND_S)
    assert receives(look)
    assert look.background == ("Look at it",)
    draw(observer, COMPOSER.replace(b"status line", b"esc to stop"), 4.0)
    assert observer.look(7.0).verdict.activity is Activity.BUSY, "it shows that it works"
    assert screen_sign(PROFILE.busy, observer.look(7.0).screen) == "screen: esc to stop"
    draw(observer, b"\x1b]7501;state=clear:id=a1\x1b\\" + COMPOSER, 8.0)
    look = observer.look(10.0)
    assert (look.verdict.activity, look.background) == (Activity.BUSY, ()), "the record is the program's own"


def test_a_turn_that_a_channel_has_open_is_not_in_the_background() -> None:
    observer = watched(report(state="working") + PART + COMPOSER)
    observer.turn.told(PromptAccepted(channel="hooks", at_ns=int(1e9)))
    assert observer.look(2.0).verdict.activity is Activity.BUSY
    observer.turn.told(TurnEnded(channel="hooks", at_ns=int(3e9), answer="the answer"))
    assert receives(observer.look(4.0))


@pytest.mark.parametrize("moves", [b"12:00:%02d", b"%d files", b"branch of %d"])
def test_a_status_line_below_the_composer_keeps_no_record_working(moves: bytes) -> None:
    observer = watched(report(state="working") + COMPOSER)
    for second in range(2, 2 + int(STALE_S)):
        draw(observer, COMPOSER.replace(b"status line", moves % second), second)
        look = observer.look(second)
    assert look.verdict.activity is Activity.READY


@pytest.mark.parametrize("beside", [True, False])
def test_numbers_that_count_are_of_the_background_where_something_runs_there(beside: bool) -> None:
    def screen(second: int) -> bytes:
        return b"the answer\r\nup %d s (%dk)\r\n> \r\n" % (second, 5 * second)

    observer = watched(report(state="working") + PART * beside + screen(1))
    for second in range(2, 2 + 2 * int(STALE_S)):
        draw(observer, screen(second), second)
        look = observer.look(second)
    assert look.verdict.activity is (Activity.READY if beside else Activity.BUSY)
    draw(observer, b"another answer\r\nup 9 s (45k)\r\n> \r\n", 40.0)
    look = observer.look(40.05)
    assert look.calm_since == 40.05, "words have moved"


@pytest.mark.parametrize("part", [b"", PART])
def test_a_turn_in_which_only_numbers_are_printed_is_not_over(part: bytes) -> None:
    numbers = [str(n).encode() for n in range(200)]
    observer = watched(report(state="working") + part + COMPOSER)
    observer.turn.told(PromptAccepted(channel="hooks", at_ns=int(1e9)))
    for second in range(2, 100):
        draw(observer, b"\r\n".join(numbers[second : second + 8]) + b"\r\n> \r\n", second)
        look = observer.look(second)
    assert look.verdict.activity is Activity.BUSY


def test_a_record_that_says_that_it_asks_is_not_of_the_background() -> None:
    observer = watched(report(state="blocked", kind="permission") + PART + COMPOSER)
    assert observer.look(1.0 + 2 * BACKGROUND_S).verdict.activity is not Activity.READY


def test_what_a_channel_told_is_known_to_the_next_daemon() -> None:
    observer = watched(COMPOSER)
    observer.note(InBackground(("A server",)))
    after = TerminalObserver.restore(PROFILE, observer.checkpoint(), 9.0)
    assert after.look(12.0).background == ("A server",)


def test_numbers_are_all_that_shows_work_of_a_program_without_signs() -> None:
    unsigned = PROFILE.model_copy(update={"busy": BusySigns()})
    observer = watched(b"1 s\r\n> \r\n", unsigned)
    observer.turn.told(PromptAccepted(channel="hooks", at_ns=int(1e9)))
    for second in range(2, 200):
        draw(observer, b"%d s\r\n> \r\n" % second, second)
        look = observer.look(second)
    assert look.verdict.activity is Activity.BUSY


def test_a_title_that_moves_is_of_the_background_that_a_channel_tells() -> None:
    observer = watched(b"\x1b]0;* topic\x07" + COMPOSER, PROFILE.model_copy(update={"status_records": False}))
    assert observer.look(2.0).verdict.activity is Activity.BUSY
    observer.note(InBackground(("Look at it",)))
    look = observer.look(1.1 + BACKGROUND_S)
    assert receives(look)
    assert look.background == ("Look at it",)
    observer.note(InBackground(()))
    assert observer.look(2.7).verdict.activity is Activity.BUSY


def test_rows_around_the_composer_tell_of_the_background() -> None:
    far = b"4 shells" + b"\r\n" * ROWS_ABOVE
    shown = far + b"\r\n3 shells\r\n> \r\n2 shells\r\n o explorer\r\n"
    observer = watched(shown, PROFILE.model_copy(update={"status_records": False}))
    assert observer.look(2.0).background == ("shell",) * 5 + ("explorer",)
