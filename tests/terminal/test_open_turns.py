"""A turn that a channel, a record or a title says is open, against a screen that says otherwise."""

import pytest

from synapsed.model.agent import Activity
from synapsed.model.facts import PromptAccepted, TurnEnded
from synapsed.profiles.channel_spec import Channel
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import BusySigns, Composer, Interrupt, PutOff, Ready
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.turn_signs import REPORTED_LATE_S
from synapsed.terminal.unreadable import is_defaced
from synapsed.terminal.verdict import LOST_S, STALE_S
from tests.support.readiness import receives

STILL_S = 1.0
UNSIGNED = Profile(
    name="p",
    command="p",
    ready=Ready(quiet_ms=100),
    composer=Composer(line=r"^> ?(?P<text>.*)$"),
    interrupt=Interrupt(keys="\x1b", still_ms=int(STILL_S * 1000)),
)
SIGNED = UNSIGNED.model_copy(update={"busy": BusySigns(title="^\\* ", screen=["esc to stop"])})
TITLED = UNSIGNED.model_copy(update={"ready": Ready(quiet_ms=100, title="^Ready")})


def at_work(profile: Profile = SIGNED, screen: bytes = b"", *, told: bool = True) -> TerminalObserver:
    """A turn is open since time 1; its screen is drawn."""
    watched = TerminalObserver(profile, cols=40, rows=5, offset=0)
    watched.feed(0, b"\x1b]0;Ready\x07> ", 0.0)
    watched.look(0.0)
    assert watched.look(0.5).verdict.activity is Activity.READY
    if told:
        watched.turn.told(PromptAccepted(channel="hooks", at_ns=int(1e9)))
    draw(watched, screen or b"> ", 1.0)
    watched.look(1.0)
    return watched


def draw(watched: TerminalObserver, screen: bytes, now: float) -> None:
    watched.feed(watched.offset, b"\x1b[H\x1b[J" + screen, now)


def activity(watched: TerminalObserver, now: float) -> Activity:
    return watched.look(now).verdict.activity


RECORD = b"\x1b]7501;state=working\x1b\\"


@pytest.mark.parametrize("profile", [UNSIGNED, SIGNED], ids=["no signs", "signs"])
@pytest.mark.parametrize("composer", [b"> ", b"> the message"], ids=["empty", "given back"])
def test_a_turn_that_was_asked_to_stop_has_stopped_when_the_screen_is_still(composer: bytes, profile: Profile) -> None:
    watched = at_work(profile, composer)
    assert activity(watched, 5.0) is Activity.BUSY
    watched.turn.asked_to_stop(5.0)
    assert activity(watched, 5.0 + STILL_S - 0.1) is Activity.BUSY
    look = watched.look(5.0 + STILL_S)
    assert look.verdict.activity is Activity.READY
    assert receives(look) is (composer == b"> ")


def test_a_status_record_holds_no_turn_that_was_asked_to_stop() -> None:
    for told in (True, False):
        watched = at_work(UNSIGNED, RECORD + b"> ", told=told)
        assert activity(watched, 3600.0) is Activity.BUSY
        watched.turn.asked_to_stop(3600.0)
        assert activity(watched, 3600.0 + STILL_S) is Activity.READY
        watched.feed(watched.offset, RECORD.replace(b"working", b"idle") + RECORD, 3700.0)
        assert activity(watched, 3800.0) is Activity.BUSY, "it began with another"


@pytest.mark.parametrize(
    "screen",
    [b"(3s, esc to stop)\r\n> ", b"\x1b]0;* thinking\x07> "],
    ids=["screen", "title"],
)
def test_a_sign_of_work_is_believed_until_it_was_left_behind(screen: bytes) -> None:
    watched = at_work(SIGNED, screen)
    watched.turn.asked_to_stop(2.0)
    assert activity(watched, 2.0 + STALE_S - 0.1) is Activity.BUSY
    assert activity(watched, 2.0 + STALE_S) is Activity.READY


def test_what_moves_has_not_stopped() -> None:
    watched = at_work(SIGNED)
    watched.turn.asked_to_stop(2.0)
    draw(watched, b"a word\r\n> ", 2.5)
    assert activity(watched, 2.5) is Activity.BUSY
    assert activity(watched, 3.4) is Activity.BUSY
    watched.feed(watched.offset, b"\x1b]0;another title\x07", 3.4)
    assert activity(watched, 3.4) is Activity.BUSY
    assert activity(watched, 3.4 + STILL_S - 0.1) is Activity.BUSY
    assert activity(watched, 3.4 + STILL_S) is Activity.READY


def test_without_a_composer_nothing_has_stopped() -> None:
    watched = at_work(SIGNED, b"thinking")
    watched.turn.asked_to_stop(2.0)
    assert activity(watched, 9.0) is Activity.BUSY
    assert activity(watched, 3600.0) is Activity.UNKNOWN, "what stands there hides the composer, and may ask something"


def test_what_has_stopped_stays_so_until_another_turn_is_told() -> None:
    watched = at_work()
    watched.turn.asked_to_stop(2.0)
    assert activity(watched, 3.0) is Activity.READY
    draw(watched, b"12:00\r\n> ", 4.0)
    assert activity(watched, 4.0) is Activity.READY, "a clock"
    watched.turn.told(PromptAccepted(channel="hooks", at_ns=int(1.5e9)))
    assert activity(watched, 4.5) is Activity.READY, "told late, of the same turn"
    watched.turn.told(PromptAccepted(channel="hooks", at_ns=int(5e9)))
    assert activity(watched, 5.5) is Activity.READY, "its hook was slow to start; the screen is as still as before"
    watched.turn.told(PromptAccepted(channel="hooks", at_ns=int((2.1 + REPORTED_LATE_S) * 1e9)))
    assert activity(watched, 9.0) is Activity.BUSY, "nobody asked this one to stop"
    watched.turn.told(TurnEnded(channel="hooks", at_ns=int(10e9), answer="x"))
    assert activity(watched, 10.0) is Activity.READY


def test_a_turn_that_goes_on_after_all_is_open() -> None:
    watched = at_work(UNSIGNED)
    watched.turn.asked_to_stop(2.0)
    watched.turn.stop_over()
    assert activity(watched, 30.0) is Activity.BUSY


@pytest.mark.parametrize(("profile", "after"), [(SIGNED, STALE_S), (TITLED, STALE_S), (UNSIGNED, LOST_S)])
def test_an_end_that_nobody_told_is_found_by_the_screen(profile: Profile, after: float) -> None:
    """A person stopped their own turn; no hook and no record tells of it."""
    watched = at_work(profile, b"a word\r\n> ")
    assert activity(watched, 1.0 + after - 0.1) is Activity.BUSY
    assert receives(watched.look(1.0 + after))
    chain = {row.channel: row.says for row in watched.explain(1.0 + after)}
    assert chain["hooks"] == "a turn is open, not believed: its end must have been lost"


@pytest.mark.parametrize(
    ("screen", "told"),
    [(b"(3s, esc to stop)\r\n> ", Activity.BUSY), (b"thinking", Activity.UNKNOWN)],
)
def test_work_in_silence_is_not_taken_for_an_end(screen: bytes, told: Activity) -> None:
    watched = at_work(SIGNED, screen)
    assert activity(watched, 3600.0) is told


@pytest.mark.parametrize("profile", [SIGNED, UNSIGNED])
def test_a_draft_holds_no_turn_open_for_ever(profile: Profile) -> None:
    """A message that was given back, or not taken, and whose turn no daemon knows any more: a person is told of it."""
    watched = at_work(profile, b"> a draft")
    assert activity(watched, 1.0 + LOST_S - 0.1) is Activity.BUSY
    look = watched.look(1.0 + LOST_S)
    assert look.verdict.activity is Activity.READY
    assert not receives(look)


def test_a_title_that_was_left_behind_is_not_believed() -> None:
    """The screen would show the work as well."""
    watched = at_work(SIGNED, b"\x1b]0;* thinking\x07> ", told=False)
    assert activity(watched, 1.0 + STALE_S - 0.1) is Activity.BUSY
    assert receives(watched.look(1.0 + STALE_S))
    assert {row.channel: row.says for row in watched.explain(1.0 + STALE_S)}["title"].endswith("it was left behind")
    titled = SIGNED.model_copy(update={"busy": BusySigns(title="^\\* ")})
    watched = at_work(titled, b"\x1b]0;* thinking\x07> ", told=False)
    assert activity(watched, 3600.0) is Activity.BUSY, "this one has no other sign"


def test_a_sign_that_an_answer_quotes_is_not_believed() -> None:
    """The channel has told the end; what stands above the composer is prose, and a sign of work would move."""
    channels = {"hooks": Channel(adapter="hooks")}
    watched = at_work(SIGNED.model_copy(update={"channels": channels}), b"type esc to stop\r\n> ")
    watched.turn.told(TurnEnded(channel="hooks", at_ns=int(2e9), answer="type esc to stop"))
    assert activity(watched, 1.0 + STALE_S - 0.1) is Activity.BUSY
    assert receives(watched.look(1.0 + STALE_S))
    assert "quoted" in {row.channel: row.says for row in watched.explain(1.0 + STALE_S)}["screen"]
    draw(watched, b"(1s, esc to stop)\r\n> ", 20.0)
    assert activity(watched, 20.0) is Activity.BUSY, "it moves"
    watched = at_work(SIGNED, b"type esc to stop\r\n> ", told=False)
    assert activity(watched, 3600.0) is Activity.BUSY, "no channel could tell"


def test_a_message_that_is_put_off_need_not_move() -> None:
    """It is the one that was submitted, and no channel has told that its turn began; any other may be quoted."""
    signs = {"hooks": Channel(adapter="hooks")}, BusySigns(screen=["^  Queued:"])
    interrupt = Interrupt(keys="\x1b", put_off=PutOff(shown=r"^  Queued:\n    (?P<text>\S.*)", keys="\x1b[A"))
    profile = UNSIGNED.model_copy(update={"channels": signs[0], "busy": signs[1], "interrupt": interrupt})
    watched = at_work(profile, b"  Queued:\r\n    say\r\n> ", told=False)
    watched.unbegun = "say hello"
    assert activity(watched, 3600.0) is Activity.BUSY
    for other in ("tell me", None):
        watched.unbegun = other
        assert activity(watched, 3600.0) is Activity.READY


@pytest.mark.parametrize(
    ("screen", "garbled"),
    [
        (b"r-nched--\r\n  the message", True),
        (b"(3s, esc to stop)", False),
        (b"\x1b]0;* thinking\x07words", False),
        (b"> ", False),
    ],
)
def test_a_program_that_drew_over_itself_when_it_was_stopped_is_to_draw_anew(screen: bytes, garbled: bool) -> None:
    watched = at_work(SIGNED, screen)
    assert not is_defaced(SIGNED, watched.look(30.0), 30.0), "it may work in silence"
    watched.turn.asked_to_stop(30.0)
    assert not is_defaced(SIGNED, watched.look(30.5), 30.5), "it may be drawing"
    assert is_defaced(SIGNED, watched.look(31.0), 31.0) is garbled


def test_what_a_program_counts_is_told_while_it_works() -> None:
    counting = BusySigns(title="^\\* ", retries=[r"(?m)^\* .* · (?P<count>attempt \d+/\d+)$", "^Once more$"])
    watched = at_work(SIGNED.model_copy(update={"busy": counting}), b"* retrying in 3s \xc2\xb7 attempt 6/10\r\n> ")
    assert watched.look(2.0).verdict.evidence.endswith("; attempt 6/10")
    draw(watched, b"Once more\r\n> ", 3.0)
    assert watched.look(3.1).verdict.evidence.endswith("; Once more")
    draw(watched, b"* works\r\n> ", 4.0)
    assert ";" not in watched.look(4.1).verdict.evidence
    at_rest = at_work(UNSIGNED.model_copy(update={"busy": counting}), b"Once more\r\n> ", told=False)
    look = at_rest.look(2.0)
    assert (look.verdict.activity, ";" in look.verdict.evidence) == (Activity.READY, False)


@pytest.mark.parametrize("told", [True, False], ids=["a turn is open", "none is told of"])
def test_a_title_that_says_that_it_works_hides_no_dialog_that_cannot_be_read(told: bool) -> None:
    """gemini's, while it asks what to do about a model that is gone."""
    signed = SIGNED.model_copy(update={"channels": {"hooks": Channel(adapter="hooks")}})
    dialog = b"\x1b]0;* thinking\x07\x1b[?25lIt seems like you have no access.\r\n* 1. Keep trying\r\n  2. Stop"
    watched = at_work(signed, dialog, told=told)
    assert activity(watched, 1.0 + STALE_S - 0.1) is Activity.BUSY
    watched.look(1.0 + STALE_S)
    look = watched.look(1.1 + 2 * STALE_S)
    assert look.verdict.activity is Activity.UNKNOWN
    assert look.verdict.asked is not None
    assert "Keep trying" in look.verdict.asked.prompt.prompt
    draw(watched, b"(3s, esc to stop)", 40.0)
    assert activity(watched, 40.1) is Activity.BUSY
