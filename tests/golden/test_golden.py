"""What is believed of the real programs at every moment of their recordings, however the bytes come.

The expectations are written by hand, one file a recording: at every mark what the screen is, and what of it is asked of
whom. A file says all that must be so; what it does not name (`receives`, `error`, …) must be absent.
"""

import random
from operator import attrgetter
from typing import Any

import pytest

from synapsed.model.agent import Activity
from synapsed.model.records import Checkpoint
from synapsed.parts.profile_tools.recorded import believed
from synapsed.terminal.observer import TerminalObserver
from synapsed.terminal.turn_signs import said_of_turn
from tests.golden.replay import CASES, Case, Cut, RecordedLook, Replay, at_random, bytewise
from tests.support import readiness
from tests.support.gated import chosen

pytestmark = pytest.mark.recorded

pytestmark = pytest.mark.recorded

SETTLED_S = 1.0
"""After a restart a screen must rest again before anything is typed."""

NAME = attrgetter("name")
SMALL = [case for case in CASES if len(case.raw) < 20_000]


def found(seen: RecordedLook, replay: Replay, *, receives: bool = True) -> dict[str, Any]:
    """What is believed, in the words of an expectation."""
    facts = believed(replay.profile, seen.look)
    if receives and readiness.receives(seen.look):
        facts["receives"] = True
    if (held := readiness.held(seen.look)) is not None:
        facts["held"] = held
    return facts


def check_mark(seen: RecordedLook, replay: Replay, *, receives: bool = True) -> None:
    assert seen.mark is not None
    expected = dict(replay.case.expected["marks"][seen.mark])
    label = expected.pop("mark")
    assert replay.case.record["marks"][seen.mark][2] == label
    told = found(seen, replay, receives=receives)
    if not receives:
        expected.pop("receives", None)
    for sign in ("error", "interrupted"):  # they stand on the screen until they scroll off
        if sign not in expected:
            told.pop(sign, None)
    assert told == expected, f"{replay.case.name}, {label}, {seen.at} s: {seen.look.verdict.evidence}"


@pytest.mark.parametrize("told", [False, True], ids=["screen", "side-channel"])
@pytest.mark.parametrize("case", chosen(CASES, NAME), ids=NAME)
def test_marks(case: Case, told: bool) -> None:
    replay = Replay(case, told=told)
    for seen in replay.play():
        if seen.mark is not None:
            check_mark(seen, replay)


@pytest.mark.parametrize("case", chosen(CASES, NAME), ids=NAME)
def test_errors_and_interrupts_are_not_seen_where_there_were_none(case: Case) -> None:
    signs = [mark for mark in case.expected["marks"] if "error" in mark or "interrupted" in mark]
    if signs:
        return
    replay = Replay(case)
    for seen in replay.play():
        if seen.mark is not None:
            assert said_of_turn(case.profile(), seen.look, "") == (None, False)


def course(case: Case, cut: Cut) -> list[Any]:
    return [
        (seen.at, seen.mark, seen.look.verdict, seen.look.composer, seen.look.steady_at)
        for seen in Replay(case, cut=cut).play()
    ]


@pytest.mark.parametrize("case", chosen(SMALL, NAME), ids=NAME)
def test_every_cut_of_the_bytes_gives_the_same_course(case: Case) -> None:
    reference = course(case, lambda chunk: [chunk])
    assert course(case, bytewise) == reference
    assert course(case, at_random(1)) == reference
    assert course(case, at_random(2)) == reference


@pytest.mark.parametrize("case", chosen(CASES, NAME), ids=NAME)
def test_looking_seldom_changes_nothing_at_the_marks(case: Case) -> None:
    replay = Replay(case, cut=at_random(3), looks=False)
    for seen in replay.play():
        if seen.mark is not None and settled(seen, case):
            check_mark(seen, replay)


def settled(seen: RecordedLook, case: Case) -> bool:
    """Whether nothing was written for a while before the mark."""
    return seen.at - max((at for at, _ in case.record["chunks"] if at <= seen.at), default=0.0) > 0.5


def test_what_a_profile_says_is_over_is_no_menu_either() -> None:
    """gemini's trust question stays on the screen while the program starts again."""
    replay = Replay(next(case for case in CASES if case.name == "gemini-0.61.0/trust"), told=False)
    for seen in replay.play():
        if seen.mark is not None:
            check_mark(seen, replay)


@pytest.mark.parametrize("case", chosen(CASES, NAME), ids=NAME)
def test_restored_from_a_checkpoint_at_any_moment_it_goes_on_alike(case: Case) -> None:
    chance = random.Random(case.name)
    for _ in range(4):
        restart_at = chance.uniform(0.0, case.record["chunks"][-1][0])
        replay, restored_at = Replay(case, cut=at_random(5), told=True), None
        for seen in replay.play():
            if restored_at is None and seen.at >= restart_at:
                restored_at = seen.at
                checkpoint = Checkpoint.model_validate(replay.observer.checkpoint().model_dump())
                replay.observer = TerminalObserver.restore(case.profile(), checkpoint, seen.at)
                for at, fact in case.facts():  # a side channel tells again what was not settled
                    if at <= seen.at:
                        replay.observer.turn.told(fact)
            elif restored_at is not None and seen.mark is not None:
                check_mark(seen, replay, receives=seen.at > restored_at + SETTLED_S)


@pytest.mark.parametrize("case", chosen(SMALL, NAME), ids=NAME)
def test_checkpoint_between_any_two_bytes(case: Case) -> None:
    raw, (cols, rows) = case.raw, case.record["size"]
    reference = TerminalObserver(case.profile(), cols=cols, rows=rows, offset=0)
    reference.feed(0, raw, 0.0)
    reference.look(0.0)
    chance = random.Random(case.name)
    for offset in [chance.randrange(len(raw)) for _ in range(20)]:
        first = TerminalObserver(case.profile(), cols=cols, rows=rows, offset=0)
        first.feed(0, raw[:offset], 0.0)
        checkpoint = Checkpoint.model_validate(first.checkpoint().model_dump())
        second = TerminalObserver.restore(case.profile(), checkpoint, 0.0)
        second.feed(checkpoint.offset, raw[checkpoint.offset :], 0.0)
        assert second.look(0.0).screen.lines == reference.look(0.0).screen.lines
        assert second.look(1.0).verdict == reference.look(1.0).verdict


@pytest.mark.parametrize("case", chosen([case for case in CASES if case.statuses()], NAME), ids=NAME)
def test_while_the_program_says_that_it_works_it_is_never_ready(case: Case) -> None:
    """By the bytes alone: from the first `working` of a turn to the state that ends it."""
    statuses = case.statuses()
    for seen in Replay(case).play():
        state = next((state for end, state in reversed(statuses) if end <= seen.look.offset), None)
        if state in ("working", "blocked"):
            assert seen.look.verdict.activity in (Activity.BUSY, Activity.WAITING)
            assert not readiness.receives(seen.look)


@pytest.mark.parametrize("case", chosen(CASES, NAME), ids=NAME)
def test_while_a_side_channel_has_a_turn_open_nothing_is_received(case: Case) -> None:
    spans, began = [], None
    for at, fact in case.facts():
        if type(fact).__name__ == "PromptAccepted":
            began = at if began is None else began
        elif began is not None:
            spans.append((began, at))
            began = None
    resting = ("idle", "done", "error")
    for seen in Replay(case, told=True).play():
        inside = any(start < seen.at < end for start, end in spans)
        if inside and not seen.look.verdict.evidence.endswith(resting):
            assert seen.look.verdict.activity in (Activity.BUSY, Activity.WAITING), seen.look.verdict
            assert not readiness.receives(seen.look)


@pytest.mark.parametrize("case", chosen(CASES, NAME), ids=NAME)
def test_nothing_is_received_into_a_dialog_or_a_draft(case: Case) -> None:
    for told in (False, True):
        for seen in Replay(case, told=told).play():
            verdict = seen.look.verdict
            if verdict.asked is not None or seen.look.composer.state != "empty":
                assert not readiness.receives(seen.look)


def test_every_recording_has_its_expectation() -> None:
    recorded = {
        f"{path.parent.name}/{path.stem}" for path in CASES[0].path.parents[2].glob("recordings/*-[0-9]*/*.json")
    }
    assert {case.name for case in CASES} == recorded
