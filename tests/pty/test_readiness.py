"""The table that says whether a message may be typed now, row by row."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from synapsed.interfaces import Hold
from synapsed.model.agent import Activity
from synapsed.model.link import LinkObserved
from synapsed.pty.readiness import TABLE, Moment, obstacle

QUESTION, PAGE = "permission", "screen"
HOLD = Hold(word="limit", reason="its usage limit is reached")


def look(
    activity: Activity = Activity.READY,
    composer: str = "empty",
    *,
    settled: bool = True,
    asks: str | None = None,
    lacks_composer: bool = False,
    text: str = "",
) -> Any:
    asked = SimpleNamespace(prompt=SimpleNamespace(type=asks)) if asks else None
    verdict = SimpleNamespace(activity=activity, asked=asked, settled=settled, lacks_composer=lacks_composer)
    return SimpleNamespace(verdict=verdict, composer=SimpleNamespace(state=composer, text=text))


def said(*, can_receive: bool, held: str | None = None) -> LinkObserved:
    return LinkObserved(Activity.READY, "fake", None, can_receive=can_receive, held=held)


FREE = Moment(look=look())
WITHOUT = look(composer="absent", lacks_composer=True)

ROWS: list[tuple[Moment, str | None]] = [
    (Moment(hold=HOLD), "limit"),
    (Moment(restarting=True), "restart"),
    (Moment(link=said(can_receive=False)), None),
    (Moment(runs=False), None),
    (Moment(interrupting=True), None),
    (replace(FREE, silent=True), "keeper"),
    (replace(FREE, unread=True), "unread"),
    (Moment(look=look(Activity.UNKNOWN, asks=PAGE)), "unknown screen"),
    (replace(FREE, misread=True), "unknown screen"),
    (Moment(look=look(Activity.WAITING, asks=QUESTION)), "dialog"),
    (Moment(look=look(Activity.BUSY)), None),
    (Moment(look=look(composer="draft")), "typing"),
    (Moment(look=WITHOUT), "no composer on the screen"),
    (Moment(look=look(settled=False)), None),
    (replace(FREE, hands=True), "typing"),
    (replace(FREE, in_turn=True), None),
]


@pytest.mark.parametrize("row", range(len(TABLE)), ids=[found.what for found, _ in TABLE])
def test_every_row_is_found_where_nothing_else_is_in_the_way(row: int) -> None:
    moment, held = ROWS[row]
    found = obstacle(moment)
    assert found is not None
    assert (found.what, found.held) == (TABLE[row][0].what, held)


def test_there_is_a_moment_for_every_row() -> None:
    assert len(ROWS) == len(TABLE)


@pytest.mark.parametrize("moment", [Moment(), FREE, Moment(link=said(can_receive=True)), replace(FREE, pasted=True)])
def test_nothing_is_in_the_way_of_a_program_at_rest(moment: Moment) -> None:
    assert obstacle(moment) is None


@pytest.mark.parametrize(
    ("moment", "held"),
    [
        # A reason that people are told comes before those that the activity tells.
        (Moment(look=look(Activity.WAITING, asks=QUESTION), in_turn=True), "dialog"),
        (Moment(look=look(composer="draft"), in_turn=True), "typing"),
        (Moment(look=look(composer="draft"), in_turn=True, pasted=True), None),
        (Moment(look=look(), in_turn=True, hands=True, pasted=True), None),
        (Moment(look=WITHOUT, unread=True), "unread"),
        (Moment(look=look(composer="absent", lacks_composer=True, asks=PAGE)), "unknown screen"),
        (Moment(look=look(Activity.BUSY), unread=True), None),
        (Moment(look=look(Activity.WAITING, asks=QUESTION), hands=True, unread=True), "dialog"),
        (Moment(look=look(settled=False), hands=True), None),
        (Moment(look=look(Activity.UNKNOWN, asks=PAGE), silent=True), "keeper"),
        (Moment(hold=HOLD, restarting=True, link=said(can_receive=False, held="dialog")), "limit"),
        (Moment(link=said(can_receive=False, held="dialog"), in_turn=True), "dialog"),
    ],
)
def test_the_first_that_applies_is_told(moment: Moment, held: str | None) -> None:
    found = obstacle(moment)
    assert found is not None
    assert found.held == held


def test_answers_of_the_terminal_in_the_composer_are_no_draft() -> None:
    assert obstacle(Moment(look=look(composer="draft", text="62;22c1;10;0c"))) is None
    assert obstacle(Moment(look=look(composer="draft", text="ls"))) is not None
