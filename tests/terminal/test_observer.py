"""The observer: when what it sees counts; over a restart, what a checkpoint says and what it does not."""

from itertools import batched
from typing import Any, Literal

import pytest

from synapsed.model.agent import Activity
from synapsed.model.facts import PromptAccepted, TurnEnded
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import BusySigns, Composer, Dialog, Interrupt, Prompts, Ready, Signs
from synapsed.terminal.observer import QUERIES_MAX, TerminalObserver
from synapsed.terminal.unreadable import is_defaced
from synapsed.terminal.verdict import STALE_S
from tests.support.readiness import held, receives

PROFILE = Profile(name="p", command="p", ready=Ready(quiet_ms=0), composer=Composer(line=r"^> ?(?P<text>.*)$"))
SETTLING = PROFILE.model_copy(update={"ready": Ready(quiet_ms=100)})


def observer() -> TerminalObserver:
    fresh = TerminalObserver(PROFILE, cols=40, rows=5, offset=0)
    fresh.feed(0, b"> ", 0.0)
    assert fresh.look(0.0).verdict.activity is Activity.READY
    return fresh


ASKING = PROFILE.model_copy(
    update={"prompts": Prompts(dialogs=[Dialog(type="permission", when=["^Run it\\?", "^1. Yes"])], generic=True)}
)


def test_a_dialog_beside_a_composer_is_only_shown() -> None:
    watched = TerminalObserver(ASKING, cols=40, rows=5, offset=0)
    watched.feed(0, b"Run it?\r\n1. Yes\r\n> ", 0.0)
    assert receives(watched.look(1.0))
    watched.feed(watched.offset, b"\r\x1b[K", 2.0)
    verdict = watched.look(2.0).verdict
    assert (verdict.activity, verdict.source) == (Activity.WAITING, "dialog")


@pytest.mark.parametrize("drawn", [b"", b"Loading\r\n"])
def test_what_asks_before_it_has_started_is_starting_once_it_is_answered(drawn: bytes) -> None:
    """As a program that asks whether its folder is trusted, and then loads without a word."""
    watched = TerminalObserver(ASKING, cols=40, rows=5, offset=0)
    watched.feed(0, b"Run it?\r\n1. Yes\r\n", 0.0)
    assert watched.look(1.0).verdict.activity is Activity.WAITING
    watched.feed(watched.offset, b"\x1b[2J\x1b[H" + drawn, 2.0)
    for now in (2.0, 3.0, 6.5):
        assert watched.look(now).verdict.activity is Activity.STARTING
    watched.feed(watched.offset, b"> ", 7.0)
    assert watched.look(7.0).verdict.activity is Activity.READY
    watched.feed(watched.offset, b"\x1b[2J\x1b[H", 8.0)
    watched.look(8.0)
    assert watched.look(12.0).verdict.activity is Activity.UNKNOWN, "it has started"


def test_a_dialog_that_is_drawn_anew_is_not_gone_meanwhile() -> None:
    asking = b"\x1b[2J\x1b[HRun it?\r\n1. Yes\r\n"
    watched = TerminalObserver(ASKING, cols=40, rows=5, offset=0)
    watched.feed(0, asking, 0.0)
    assert watched.look(1.0).steady_at > 1.0
    watched.feed(watched.offset, b"\x1b[2J\x1b[H", 2.0)
    cleared = watched.look(2.0)
    assert cleared.verdict.asked is None
    assert cleared.steady_at > 2.0, "it may come back"
    assert watched.look(cleared.steady_at).verdict.activity is not Activity.WAITING
    watched.feed(watched.offset, b"> ", 2.1)
    assert watched.look(2.1).steady_at == 0.0, "a composer is in its place"


def test_a_question_that_is_being_typed_is_a_draft() -> None:
    composer = ASKING.composer.model_copy(update={"at_cursor": True})
    watched = TerminalObserver(ASKING.model_copy(update={"composer": composer}), cols=40, rows=5, offset=0)
    watched.feed(0, b"> echo Password: ", 0.0)
    look = watched.look(1.0)
    assert (look.verdict.activity, held(look)) == (Activity.READY, "typing")
    watched.feed(watched.offset, b"\r\nPassword: ", 2.0)
    assert watched.look(2.0).verdict.activity is Activity.WAITING


def test_an_open_turn_is_told_by_its_channel_and_not_by_a_checkpoint() -> None:
    watched = observer()
    watched.turn.told(PromptAccepted(channel="hooks", at_ns=1))
    assert watched.look(1.0).verdict.evidence == "hooks: turn open"
    restored = TerminalObserver.restore(PROFILE, watched.checkpoint(), 2.0)
    assert receives(restored.look(3.0)), "its end may have been told and settled since"
    restored.turn.told(PromptAccepted(channel="hooks", at_ns=1))
    assert restored.look(4.0).verdict.activity is Activity.BUSY
    restored.turn.told(TurnEnded(channel="hooks", at_ns=2, answer="x"))
    assert receives(restored.look(5.0))


def test_a_checkpoint_is_the_screen_at_its_offset() -> None:
    watched = observer()
    watched.feed(2, b"abc\x1b[3", 1.0)
    checkpoint = watched.checkpoint()
    assert checkpoint.offset == 5
    restored = TerminalObserver.restore(PROFILE, checkpoint, 2.0)
    restored.feed(5, b"\x1b[31md", 2.0)
    assert restored.look(2.0).composer.text == "abcd"


@pytest.mark.parametrize(
    "state",
    [
        {"activity": "dreaming"},
        {"progress": 9},
        {"records": [{"state": "dreaming"}]},
        {"records": [{"state": "idle", "new": 1}]},
    ],
)
def test_a_checkpoint_of_a_newer_version_is_its_screen(state: dict[str, Any]) -> None:
    kept = observer().checkpoint().model_copy(update={"state": state})
    again = TerminalObserver.restore(PROFILE, kept, 1.0)
    assert receives(again.look(2.0))


def test_state_that_is_reported_before_the_answer_is_drawn_is_not_settled() -> None:
    watched = TerminalObserver(SETTLING, cols=40, rows=8, offset=0)
    watched.feed(0, b"\x1b]7501;state=working\x1b\\> \r\n", 0.0)
    assert watched.look(0.0).verdict.activity is Activity.BUSY
    assert watched.look(5.0).verdict.activity is Activity.BUSY
    watched.feed(watched.offset, b"\x1b]7501;state=idle\x1b\\", 5.0)
    look = watched.look(5.0)
    assert (look.verdict.activity, look.verdict.settled, receives(look)) == (Activity.READY, False, False)
    watched.feed(watched.offset, b"\x1b[Hthe answer\r\n> ", 5.05)
    assert not watched.look(5.05).verdict.settled
    assert receives(watched.look(5.2))


FULL = Profile(
    name="full", command="full", ready=Ready(quiet_ms=0), composer=Composer(line=r"^> ?(?P<text>.*)$", needed=True)
)


FULL_AT_CURSOR = FULL.model_copy(update={"composer": Composer(line=r"^> ?(?P<text>.*)$", needed=True, at_cursor=True)})


def test_a_screen_that_the_program_wrote_over_is_seen_after_a_while() -> None:
    watched = TerminalObserver(FULL, cols=40, rows=5, offset=0)
    watched.feed(0, b"\x1b[?1049h> ", 0.0)
    assert not is_defaced(FULL, watched.look(0.0), 99.0), "it has its composer"
    over = b"\x1b[H\x1b[2K(node) Warning: something"
    watched.feed(watched.offset, over, 1.0)
    assert not is_defaced(FULL, watched.look(1.0), 2.0), "it may be drawing"
    assert is_defaced(FULL, watched.look(12.0), 12.0)
    watched.turn.told(PromptAccepted(channel="hooks", at_ns=1))
    assert not is_defaced(FULL, watched.look(13.0), 13.0), "a turn is open"


@pytest.mark.parametrize("kernel", [None, "rests", "reads"])
@pytest.mark.parametrize("up", [True, False], ids=["up", "starting"])
def test_whatever_the_kernel_says_of_it_it_is_seen_before_a_person_is_asked(
    kernel: Literal["reads", "rests"] | None, up: bool
) -> None:
    """That it rests is what the kernel says of every program that waits for keys."""
    watched = TerminalObserver(FULL_AT_CURSOR, cols=40, rows=5, offset=0)
    watched.feed(0, b"\x1b[?1049h> " if up else b"\x1b[?1049h", 0.0)
    assert (watched.look(0.0).verdict.activity is Activity.READY) == up
    watched.kernel = kernel
    watched.feed(watched.offset, b"\x1b[H\x1b[2K(node) Warning: something", 1.0)
    assert not watched.look(1.0).verdict.asked
    assert not watched.look(4.5).verdict.asked, "no person is asked yet"
    assert is_defaced(FULL_AT_CURSOR, watched.look(4.5), 4.5)


@pytest.mark.parametrize(("typed", "defaced"), [(b"> a message", False), (b"> ", True)], ids=["seen", "not seen"])
def test_a_half_typed_message_that_is_not_seen_where_it_belongs_is_drawn_anew(typed: bytes, defaced: bool) -> None:
    """What was written over the composer may hide it; one that stands there only waits for its key."""
    watched = TerminalObserver(FULL, cols=40, rows=5, offset=0)
    watched.feed(0, b"\x1b[?1049h" + typed, 0.0)
    watched.look(0.0)
    assert is_defaced(FULL, watched.look(2.0), 2.0, hurry=True) is defaced
    assert not is_defaced(FULL, watched.look(2.0), 2.0), "nothing is typed"


def test_a_line_program_is_never_taken_for_defaced() -> None:
    watched = observer()
    watched.feed(watched.offset, b"\r\nworking in silence", 1.0)
    assert not is_defaced(PROFILE, watched.look(60.0), 60.0)


def test_who_comes_later_is_told_what_the_program_says_of_itself() -> None:
    watched = observer()
    assert b"7501" not in watched.redraw()
    watched.feed(watched.offset, b"\x1b]7501;state=blocked:kind=permission:app=agent:msg=Z28/\x1b\\", 1.0)
    watched.feed(watched.offset, b"\x1b]7501;state=done:id=step\x1b\\", 1.0)
    late = observer()
    late.feed(late.offset, watched.redraw(["a notice"]), 2.0)
    assert late.look(2.0).verdict.evidence == "status record: blocked"
    assert watched.redraw().endswith(b"\x1b]7501;state=blocked:kind=permission:app=agent:msg=Z28/\x1b\\")


def test_a_new_shell_prompt_ends_what_a_program_that_was_killed_still_says() -> None:
    watched = observer()
    watched.feed(watched.offset, b"\x1b]7501;state=working:app=brew\x1b\\", 1.0)
    assert watched.look(1.0).verdict.activity is Activity.BUSY
    watched.feed(watched.offset, b"^C\r\n\x1b]133;A\x07> ", 2.0)
    assert receives(watched.look(3.0))


LEFT = b"\x1b]7501;state=%s:app=brew\x1b\\\x1b]9;4;1;50\a"
"""What a program that is killed leaves behind."""

AT_CURSOR = PROFILE.model_copy(
    update={
        "busy": BusySigns(progress=["normal"]),
        "composer": Composer(line=r"^> ?(?P<text>.*)$", at_cursor=True),
        "interrupt": Interrupt(still_ms=1000),
    }
)


@pytest.mark.parametrize("state", [b"working", b"blocked"])
@pytest.mark.parametrize("ended", ["a line editor begins", "a line is read", "a stop is confirmed"])
def test_what_a_program_that_was_killed_says_ends(state: bytes, ended: str) -> None:
    watched = TerminalObserver(AT_CURSOR, cols=40, rows=5, offset=0)
    watched.feed(0, b"> ", 0.0)
    assert receives(watched.look(0.0))
    watched.feed(watched.offset, b"\r\n" + LEFT % state, 1.0)
    assert not receives(watched.look(2.0))
    watched.feed(watched.offset, b"^C\r\n", 3.0)
    match ended:
        case "a line editor begins":
            watched.feed(watched.offset, b"\x1b[?2004h> ", 3.0)
        case "a line is read":
            watched.feed(watched.offset, b"> ", 3.0)
            watched.kernel = "reads"
            watched.look(3.0)
            assert not receives(watched.look(2.9 + STALE_S)), "a program may read while it works"
        case _:
            watched.turn.asked_to_stop(2.5)
            watched.feed(watched.offset, b"> ", 3.0)
            assert not receives(watched.look(3.0))
            assert receives(watched.look(4.1))
            watched.turn.stop_over()
    late = 3.1 + STALE_S if ended == "a line is read" else 4.2
    assert receives(watched.look(late))
    watched.kernel = None
    watched.feed(watched.offset, b"echo after\r\nafter\r\n> ", late + 1)
    assert receives(watched.look(late + 1.1)), "nor at the next message"


def test_a_silent_program_whose_prompt_stands_is_believed() -> None:
    """It says that it works, and nothing says that its line is read."""
    watched = TerminalObserver(AT_CURSOR, cols=40, rows=5, offset=0)
    watched.feed(0, b"> ", 0.0)
    watched.feed(watched.offset, b"\x1b]7501;state=working\x1b\\", 1.0)
    assert watched.look(600.0).verdict.evidence == "status record: working"


BARRED = PROFILE.model_copy(
    update={"busy": BusySigns(progress=["normal", "indeterminate"]), "waiting": Signs(progress=["paused"])}
)


def barred(shown: bytes) -> TerminalObserver:
    """One that has shown its composer and then a progress bar, at time 1."""
    watched = TerminalObserver(BARRED, cols=40, rows=5, offset=0)
    watched.feed(0, b"> ", 0.0)
    assert watched.look(0.0).verdict.activity is Activity.READY
    watched.feed(watched.offset, shown, 1.0)
    return watched


@pytest.mark.parametrize(
    ("bar", "activity", "evidence"),
    [
        (b"\x1b]9;4;1;50\a", Activity.BUSY, "progress: normal"),
        (b"\x1b]9;4;3\x1b\\", Activity.BUSY, "progress: indeterminate"),
        (b"\x1b]9;4;4;50\a", Activity.WAITING, "progress: paused"),
        (b"\x1b]9;4;2\a", Activity.READY, "composer: empty"),
        (b"\x1b]9;4;1;100\a\x1b]9;4;0\a", Activity.READY, "composer: empty"),
        (b"\x1b]9;4;1\a\x1bc> ", Activity.READY, "composer: empty"),
        (b"\x1b]9;4;1\a\x1b]133;A\a", Activity.READY, "composer: empty"),
        (b"\x1b]9;4;1\a\x1b]7501;state=idle\a", Activity.READY, "status record: idle"),
    ],
    ids=["normal", "indeterminate", "paused", "no sign", "removed", "terminal reset", "new prompt", "status record"],
)
def test_a_progress_bar_is_a_sign(bar: bytes, activity: Activity, evidence: str) -> None:
    watched = barred(bar)
    verdict = watched.look(2.0).verdict
    assert (verdict.activity, verdict.evidence) == (activity, evidence)
    again = TerminalObserver.restore(BARRED, watched.checkpoint(), 2.0).look(3.0).verdict
    assert (again.activity, again.evidence) == (activity, evidence)


def test_a_progress_bar_that_was_left_behind_is_not_believed() -> None:
    """Whoever showed it was killed; while it moves on, or no composer stands, somebody is at work."""
    watched = barred(b"\x1b]9;4;1;1\a")
    watched.feed(watched.offset, b"\x1b]9;4;1;2\a", 9.0)
    assert watched.look(9.0 + STALE_S - 0.1).verdict.activity is Activity.BUSY
    assert receives(watched.look(9.0 + STALE_S))
    assert ("progress", "normal, no sign: it was left behind") in [
        (witness.channel, witness.says) for witness in watched.explain(9.0 + STALE_S)
    ]
    watched.feed(watched.offset, b"\r\x1b[Kworking in silence", 30.0)
    assert watched.look(99.0).verdict.evidence == "progress: normal"


def test_a_prompt_mark_is_nothing_to_a_program_that_is_no_shell() -> None:
    profile = PROFILE.model_copy(update={"status_records": "agent"})
    watched = TerminalObserver(profile, cols=40, rows=5, offset=0)
    watched.feed(0, b"\x1b]7501;state=working:app=agent\x1b\\> \x1b]133;A\x07", 1.0)
    assert watched.look(9.0).verdict.activity is Activity.BUSY


SHELL = Profile(
    name="p",
    command="p",
    ready=Ready(quiet_ms=0),
    composer=Composer(at_cursor=True, line=r"^[\w.-]+[#$] ?(?P<text>.*)$"),
)
PROMPT = b"\x1b[?2004hsh-5.2# "


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("left", ["", "a: ", '{"error": "nothing here"}', "x" * 39, "y" * 75, "日本", "né: ", "> "])
def test_a_prompt_behind_a_line_that_was_not_ended(left: str, size: int) -> None:
    """As after `curl -s`: whatever the chunks, at the screen's edge, after a restart; and what is typed there."""
    watched = TerminalObserver(SHELL, cols=40, rows=5, offset=0)
    for chunk in batched(b"\x1b[?2004l\r" + 6 * b"line\r\n" + left.encode() + PROMPT, size):
        watched.feed(watched.offset, bytes(chunk), 1.0)
    again = TerminalObserver.restore(SHELL, watched.checkpoint(), 1.0)
    for each in (watched, again):
        assert each.look(2.0).composer.state == "empty"
        each.feed(each.offset, b"make", 2.0)
        assert (each.look(2.0).composer.state, each.look(2.0).composer.text) == ("draft", "make")
        each.feed(each.offset, b"\r\n\x1b[?2004l\r" + left.encode(), 3.0)
        assert each.look(3.0).composer.state == "absent"


def test_a_flood_of_queries_in_portions_is_answered_no_further() -> None:
    watched = TerminalObserver(PROFILE, cols=40, rows=5, offset=0)
    first = watched.feed(0, b"\x1b[6n", 5.0)
    rest = [watched.feed(watched.offset, b"\x1b[6n", 5.0, continues=True) for _ in range(QUERIES_MAX + 10)]
    assert sum(map(len, [first, *rest])) == QUERIES_MAX
    assert watched.feed(watched.offset, b"\x1b[6n", 5.0) != []


def test_a_flood_of_queries_is_answered_as_far_as_a_program_would_ask() -> None:
    watched = TerminalObserver(PROFILE, cols=40, rows=5, offset=0)
    assert len(watched.feed(0, b"\x1b[6n" * (QUERIES_MAX + 10) + b"> ", 0.0)) == QUERIES_MAX
    assert receives(watched.look(1.0)), "what follows them is on the screen"
    assert watched.feed(watched.offset, b"\x1b[6n", 2.0) != [], "the next ones are heard again"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_prompt_that_stands_before_its_editor_begins(size: int) -> None:
    """zsh prints its prompt, then switches bracketed paste on: that is no output in front of another one."""
    watched = TerminalObserver(SHELL, cols=40, rows=5, offset=0)
    for chunk in batched(b"\x1b[1m\x1b[7m%\x1b[m" + 39 * b" " + b"\r \r\r\x1b[Jsh-5.2# \x1b[K\x1b[?2004h", size):
        watched.feed(watched.offset, bytes(chunk), 1.0)
    again = TerminalObserver.restore(SHELL, watched.checkpoint(), 1.0)
    for each in (watched, again):
        assert each.look(2.0).composer.state == "empty"
        each.feed(each.offset, b"make", 2.0)
        assert (each.look(2.0).composer.text, each.look(2.0).composer.prompt) == ("make", "sh-5.2# ")


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_end_of_work_is_noted_where_it_was_reported(size: int) -> None:
    watched = TerminalObserver(Profile(name="p", command="p"), cols=40, rows=5, offset=100)
    told = b"\x1b]7501;state=idle\x1b\\x\x1b]7501;state=working\x1b\\yes\r\n\x1b]7501;state=done\x1b\\"
    for chunk in batched(told + b"more\x1b]7501;state=idle\x1b\\", size):
        watched.feed(watched.offset, bytes(chunk), 1.0)
    assert watched.worked_until == 100 + len(told)


def test_time_alone_does_not_change_what_is_said_of_a_program_at_rest() -> None:
    """Unless something says that it works, which may turn out to have been left behind."""
    first = observer().look(0.5)
    assert first.good_until > 1000.0
    for told in (
        lambda watched: watched.turn.told(PromptAccepted(channel="hooks", at_ns=1)),
        lambda watched: watched.turn.asked_to_stop(0.4),
        lambda watched: watched.feed(watched.offset, b"\x1b]9;4;1;5\x07", 0.4),
        lambda watched: watched.feed(watched.offset, b"\r\x1b[K", 0.4),
    ):
        watched = observer()
        told(watched)
        assert watched.look(0.5).good_until < 1000.0, "it is judged once more"
