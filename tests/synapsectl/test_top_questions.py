"""Questions in `top`: a yes is for what was shown, all of it, and one press answers one of them."""

import asyncio
from typing import Any

import pytest

from synapsectl.inbox.model import NOTICED_S
from synapsectl.top.drawing import (
    BELOW_LIST,
    BESIDE,
    ENOUGH,
    FRAME,
    LIST_LEAST,
    LIST_MOST,
    below_each_other,
    question_most,
)
from synapsed.model.agent import Activity
from tests.synapsectl.fake_daemon import FakeDaemon, agent
from tests.synapsectl.test_top import Table, at_table, given, item
from tests.synapsectl.test_whole_question import EDIT, HEREDOC, SEEN, UNSEEN

Q = pytest.mark.asyncio


async def read_to_the_end(table: Table) -> str:
    """Turns the pages; returns all that stood there."""
    await table.sees("more rows: Space shows them", "n no  b no")
    await table.until(lambda: table.desk.inbox._stands)
    shown = table.shown()
    for _ in range(40):
        before = table.desk.inbox._stands
        assert before is not None
        await table.pilot.press("space")
        await table.until(lambda end=before.end: (now := table.desk.inbox._stands) and now.end > end)
        shown += "\n" + table.shown()
        stands = table.desk.inbox._stands
        if stands is not None and stands.read == len(stands.rows):
            return shown
    raise AssertionError(table.shown())


@pytest.mark.parametrize("size", [(80, 24), (40, 24), (130, 16)], ids=str)
@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({"command": HEREDOC}, ["heredoc line 0", "heredoc line 10", "heredoc line 19", "$ cat > /etc/motd"]),
        ({"command": None, "diff": EDIT}, ["src/app.py", "- edited line 0", "+ edited line 31", "+ edited line 59"]),
    ],
)
@Q
async def test_a_long_one_is_answered_once_its_end_was_shown(
    daemon: FakeDaemon, size: tuple[int, int], asked: dict[str, Any], lines: list[str]
) -> None:
    daemon.inbox = [item("claude", task=None, **asked)]
    async with at_table(size) as table:
        await table.sees("more rows: Space shows them", "n no  b no")
        assert lines[-1] not in table.shown() or lines[0] in table.shown(), "it begins with its beginning"
        await table.pilot.press("y")
        await table.sees("see its end first")
        await table.pilot.press("1")
        assert not table.desk.inbox.held
        shown = await read_to_the_end(table)
        assert all(line in shown for line in lines)
        assert all(row.strip() in shown for row in table.desk.inbox._stands.rows[1:] if "\x1b" not in row)
        assert not given(daemon)
        await table.sees("y yes")
        await table.pilot.press("y")
        await table.until(lambda: given(daemon))
    assert given(daemon) == [{"input": "1", "prompt_id": "p-claude"}]


@Q
async def test_no_is_said_to_a_long_one_at_once(daemon: FakeDaemon) -> None:
    daemon.inbox = [item("claude", task=None, command=None, diff=EDIT)]
    async with at_table((80, 24)) as table:
        await table.sees("n no  b no")
        await table.pilot.press("n")
        await table.until(lambda: given(daemon))
    assert given(daemon) == [{"input": "2", "prompt_id": "p-claude"}]


@Q
async def test_among_many_agents_it_is_not_cut_below(daemon: FakeDaemon) -> None:
    """The list, the tasks and the screen leave it less than its half of the window."""
    for number in range(9):
        daemon.agents[f"a{number}"] = agent(f"a{number}", port=8200 + number)
    daemon.inbox = [item("claude", task=None, command="\n".join(f"step {n}" for n in range(9)))]
    async with at_table((80, 24)) as table:
        shown = await read_to_the_end(table)
        assert all(f"step {n}" in shown for n in range(9))
        await table.sees("y yes")
        await table.pilot.press("y")
        await table.until(lambda: given(daemon))


@pytest.mark.parametrize("size", [(80, 10), (80, 12), (80, 14)], ids=str)
@Q
async def test_a_low_window_that_became_narrow_still_shows_the_question(
    daemon: FakeDaemon, size: tuple[int, int]
) -> None:
    """The tasks below the list took its rows, and no yes was possible there."""
    daemon.inbox = [item("claude", task=None)]
    async with at_table((130, size[1])) as table:
        await table.sees("May claude do it?", "n no  b no")
        await table.pilot.resize_terminal(*size)
        await table.until(lambda: table.has_size(size))
        if size[1] < 12:
            await read_to_the_end(table)
        else:
            await table.sees("May claude do it?", "1  Yes")
        await table.sees("y yes")
        await table.pilot.press("y")
        await table.until(lambda: given(daemon))
    assert given(daemon) == [{"input": "1", "prompt_id": "p-claude"}]


@pytest.mark.parametrize("rows", range(5, 60))
@pytest.mark.parametrize("agents", [0, 1, 2, 20])
def test_a_question_has_room_before_the_list_and_what_is_below_it(rows: int, agents: int) -> None:
    unasked = below_each_other(rows, agents, below=True, asks=False)
    assert unasked == (min(LIST_MOST, agents + 1), True)
    listed, below = below_each_other(rows, agents, below=True, asks=True)
    room = rows - FRAME - listed - BELOW_LIST * below - BESIDE
    assert room >= min(ENOUGH, question_most(rows)) or (listed, below) == (LIST_LEAST, False)
    assert LIST_LEAST <= listed <= LIST_MOST or agents == 0


@Q
async def test_a_window_without_room_answers_nothing(daemon: FakeDaemon) -> None:
    daemon.inbox = [item("claude", task=None, command=HEREDOC)]
    async with at_table((80, 24)) as table:
        await table.sees("more rows: Space shows them", "n no  b no")
        await table.pilot.resize_terminal(30, 5)
        await table.until(lambda: table.has_size((30, 5)))
        await table.pilot.pause(NOTICED_S + 0.3)
        await table.pilot.press("space", "y", "space", "1", "y")
        assert not table.desk.inbox.held
    assert not given(daemon)


@Q
async def test_another_size_between_showing_and_the_key(daemon: FakeDaemon) -> None:
    daemon.inbox = [item("claude", task=None, command="make " + "target " * 60)]
    async with at_table((110, 40)) as table:
        await table.sees("y yes")
        await table.pilot.resize_terminal(40, 24)
        await table.sees("more rows: Space shows them")
        await table.pilot.press("y")
        assert not table.desk.inbox.held
        await read_to_the_end(table)
        await table.sees("y yes")
        await table.pilot.press("y")
        await table.until(lambda: given(daemon))


@Q
async def test_another_prompt_under_the_finger(daemon: FakeDaemon) -> None:
    daemon.inbox = [item("claude", task=None)]
    async with at_table((80, 24)) as table:
        await table.sees("y yes")
        daemon.inbox = [item("claude", task=None, prompt_id="p-other", command="rm -rf /")]
        await table.sees("$ rm -rf /")
        await table.pilot.press("y")
        assert not table.desk.inbox.held
        await table.sees("press again")
    assert not given(daemon)


@Q
async def test_a_click_on_yes_waits_for_the_end_too(daemon: FakeDaemon) -> None:
    options = [{"key": "1", "label": "Yes"}, {"key": "2", "label": "No, " + "because " * 120}]
    daemon.inbox = [item("claude", task=None, options=options)]
    async with at_table((80, 24)) as table:
        await table.sees("1  Yes", "n no  b no")
        row = next(number for number, line in enumerate(table.shown().splitlines()) if "1  Yes" in line)
        await table.pilot.click(offset=(5, row))
        await table.sees("see its end first")
        assert not table.desk.inbox.held
        await read_to_the_end(table)
        await table.sees("y yes")
        row = next(number for number, line in enumerate(table.shown().splitlines()) if "because because" in line)
        await table.pilot.click(offset=(5, row))
        await table.until(lambda: given(daemon))
    assert given(daemon) == [{"input": "2", "prompt_id": "p-claude"}]


@Q
async def test_a_held_key_answers_one_of_three(daemon: FakeDaemon) -> None:
    for number, name in enumerate(("one", "two", "three")):
        daemon.agents[name] = agent(name, port=8300 + number, activity=Activity.WAITING, asks="May I?")
    daemon.inbox = [item(name, task=None) for name in ("one", "two", "three")]
    async with at_table((80, 24)) as table:
        await table.sees("y yes")
        for _ in range(40):
            await table.pilot.press("y", "tab")
        assert len(given(daemon)) + len(table.desk.inbox.held) <= 1
        await table.until(lambda: given(daemon))
    assert len(given(daemon)) == 1


@Q
async def test_a_key_that_is_held_over_the_help_answers_nothing(daemon: FakeDaemon) -> None:
    daemon.inbox = [item("claude", task=None)]
    async with at_table((80, 24)) as table:
        await table.sees("y yes")
        await table.pilot.press("question_mark")
        await table.sees("the next rows of a long question")
        await table.pilot.press("y", "y", "y")
        assert not table.desk.inbox.held
        await asyncio.sleep(0)
    assert not given(daemon)


@Q
async def test_unseen_signs_are_shown(daemon: FakeDaemon) -> None:
    options = [{"key": "1", "label": f"Yes {UNSEEN}"}, {"key": "2", "label": "No"}]
    daemon.inbox = [
        item("claude", task=None, question=f"Q {UNSEEN}", command=f"C {UNSEEN}", diff=f"D {UNSEEN}", options=options)
    ]
    async with at_table((120, 40)) as table:
        await table.sees(f"$ C {SEEN}", f"Q {SEEN}", f"D {SEEN}", f"1  Yes {SEEN}")
        assert not any(character in table.shown() for character in "\u202e\u2066\u200b")
