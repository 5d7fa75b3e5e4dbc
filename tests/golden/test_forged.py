"""Status records that a tool printed, put into recordings of real turns."""

from operator import attrgetter

import pytest

from synapsed.model.agent import Activity
from synapsed.model.facts import PromptAccepted, TurnEnded
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.turn_signs import said_of_turn
from synapsed.terminal.verdict import STALE_S
from tests.golden.replay import CASES, Case
from tests.support.gated import chosen
from tests.support.readiness import receives

pytestmark = pytest.mark.recorded

NAME = attrgetter("name")
DELAYED = [case for case in CASES if case.path.stem == "delayed" and case.statuses()]
RESTED = [case for case in CASES if case.path.stem == "turn"]
"""Also of programs that have no status records at all."""
EVERY = [case for case in CASES if case.path.stem in ("turn", "quotes", "accept") and case.statuses()]


def report(state: str, app: str | None = None) -> bytes:
    name = f":app={app}" if app is not None else ""
    return f"\x1b]7501;state={state}{name}\x1b\\".encode()


def forged(case: Case, state: str) -> bytes:
    """One under the program's own name."""
    return report(state, case.profile().status_app)


def mark(case: Case, label: str) -> int:
    offset: int = next(offset for _, offset, name in case.record["marks"] if name == label)
    return offset


def observer(case: Case) -> TerminalObserver:
    cols, rows = case.record["size"]
    return TerminalObserver(case.profile(), cols=cols, rows=rows, offset=0)


def feed(watched: TerminalObserver, data: bytes, now: float) -> None:
    watched.feed(watched.offset, data, now)


@pytest.mark.parametrize("state", ["idle", "done", "error"])
@pytest.mark.parametrize("case", chosen(DELAYED, NAME), ids=NAME)
def test_end_of_a_turn_that_a_tool_printed_is_not_believed(case: Case, state: str) -> None:
    watched, at = observer(case), mark(case, "busy")
    feed(watched, case.raw[:at], 1.0)
    watched.turn.told(PromptAccepted(channel="hooks", at_ns=0))
    assert watched.look(1.0).verdict.activity is Activity.BUSY
    feed(watched, forged(case, state), 2.0)
    for now in (2.0, 2.5, 5.0, 9.0):
        look = watched.look(now)
        verdict = look.verdict
        assert (verdict.activity, verdict.source) == (Activity.BUSY, "hooks")
        assert not receives(look)
    chain = {row.channel: row for row in watched.explain(9.0)}
    assert "not believed" in chain["status record"].says
    assert chain["hooks"].decides
    feed(watched, case.raw[at:], 10.0)
    watched.turn.told(TurnEnded(channel="hooks", at_ns=10, answer="x"))
    assert watched.look(10.0).verdict.activity is Activity.READY
    assert receives(watched.look(11.0))


STATES = ["idle", "done", "error", "working", "blocked:kind=permission"]
PRINTED = [*(report(state) for state in STATES), *(report(state, "tool") for state in (*STATES, "clear"))]


@pytest.mark.parametrize("printed", PRINTED, ids=repr)
@pytest.mark.parametrize("case", chosen(DELAYED, NAME), ids=NAME)
def test_what_a_tool_reports_under_another_name_or_none_changes_nothing(case: Case, printed: bytes) -> None:
    watched, at = observer(case), mark(case, "busy")
    feed(watched, case.raw[:at], 1.0)
    feed(watched, printed, 2.0)
    for now in (2.0, 9.0, 60.0):
        look = watched.look(now)
        verdict = look.verdict
        assert (verdict.activity, verdict.source) == (Activity.BUSY, "status record")
        assert not receives(look)


@pytest.mark.parametrize("printed", PRINTED, ids=repr)
@pytest.mark.parametrize("case", chosen(RESTED, NAME), ids=NAME)
def test_what_is_printed_while_a_program_rests_changes_nothing(case: Case, printed: bytes) -> None:
    watched = observer(case)
    feed(watched, case.raw, 1.0)
    watched.look(1.0)
    watched.look(5.0)
    look = watched.look(6.0)
    before = look.verdict
    assert receives(look)
    feed(watched, printed, 7.0)
    for now in (7.0, 8.0, 30.0):
        assert watched.look(now).verdict == before


@pytest.mark.parametrize("state", ["working", "blocked:kind=permission"])
@pytest.mark.parametrize("case", chosen(EVERY, NAME), ids=NAME)
def test_work_that_a_tool_printed_does_not_block_delivery_for_ever(case: Case, state: str) -> None:
    watched = observer(case)
    feed(watched, case.raw, 1.0)
    assert watched.look(2.0).verdict.activity is Activity.READY
    feed(watched, forged(case, state), 3.0)
    assert not receives(watched.look(3.0))
    assert not receives(watched.look(STALE_S + 2))
    look = watched.look(STALE_S + 4)
    verdict = look.verdict
    assert (verdict.activity, verdict.source) == (Activity.READY, "composer")
    assert receives(look)
    chain = {row.channel: row for row in watched.explain(STALE_S + 4)}
    assert "not believed" in chain["status record"].says
    assert chain["composer"].decides


@pytest.mark.parametrize("case", chosen(DELAYED, NAME), ids=NAME)
def test_work_of_an_open_turn_is_believed_however_long_it_is_silent(case: Case) -> None:
    watched = observer(case)
    feed(watched, case.raw[: mark(case, "busy")], 1.0)
    for now in (2.0, 60.0, 3600.0):
        assert watched.look(now).verdict.activity is Activity.BUSY
    watched.turn.told(PromptAccepted(channel="hooks", at_ns=0))
    for now in (3601.0, 7200.0):
        assert watched.look(now).verdict.activity is Activity.BUSY


@pytest.mark.parametrize("case", [c for c in CASES if c.name == "gemini-0.61.0/turn"], ids=lambda case: case.name)
def test_turn_whose_end_no_hook_told_ends_when_everything_else_says_so(case: Case) -> None:
    watched = observer(case)
    feed(watched, case.raw, 1.0)
    watched.turn.told(PromptAccepted(channel="hooks", at_ns=0))
    watched.look(1.0)
    assert watched.look(STALE_S).verdict.activity is Activity.BUSY
    assert receives(watched.look(STALE_S + 2))


CHROME = "\x1b[H\x1b[2J● API Error: 429 rate limit\r\n  ⎿  Interrupted · What should Claude do instead?\r\n".encode()


@pytest.mark.parametrize("state", ["done", "error", "idle", None])
def test_an_answer_that_reads_like_the_chrome_of_a_failure_has_not_failed(state: str | None) -> None:
    """Its first line stands where the program shows its errors: what the program says of the turn's end decides."""
    case = next(case for case in CASES if case.name == "claude-2.1.330/turn")
    watched = observer(case)
    feed(watched, CHROME, 1.0)
    if state is not None:
        feed(watched, forged(case, state), 1.0)
    error, interrupted = said_of_turn(case.profile(), watched.look(1.0), "a message")
    assert (error is None, interrupted) == ((True, False) if state == "done" else (False, True))
