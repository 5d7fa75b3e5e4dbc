"""Calls that are read off a screen: each is told once, whatever the screen does."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.interfaces import NewEvent
from synapsed.model.events import Event, ToolExecution
from synapsed.model.facts import ShownCall, ToolBegan, ToolOver, ToolsShown
from synapsed.model.masking import mask
from synapsed.parts.work_events.shown_calls import ShownCalls
from synapsed.parts.work_events.tool_calls import ToolCalls

TASK = "task-1"
MARKS = {"?": "started", "+": "completed", "-": "failed"}


def call(text: str) -> ShownCall:
    """`+ls`: completed, `?ls`: runs, `-ls`: failed; `+` alone: the end of one that is out of sight."""
    tool = "Shell" if text[1:] else ""
    return ShownCall(status=MARKS[text[0]], tool=tool, input={"command": text[1:]} if tool else {})  # type: ignore[arg-type]


def shown(*calls: str, whole: bool = False, task: str = TASK, leg: int = 0, at: int = 1) -> ToolsShown:
    return ToolsShown(
        channel="screen", at_ns=at, turn=task, leg=leg, whole=whole, calls=tuple(call(text) for text in calls)
    )


def told(facts: list[ToolBegan | ToolOver]) -> list[str]:
    return [
        ("?" if isinstance(fact, ToolBegan) else "+" if fact.error is None else "-")
        + f"{(fact.call or '').rpartition('.')[2]}:{fact.input.get('command')}"
        for fact in facts
    ]


STORIES: dict[str, list[tuple[list[str], bool, list[str]]]] = {
    "a line changes in place": [
        (["?ls"], True, ["?0:ls"]),
        (["?ls"], True, []),
        (["+ls"], True, ["+0:ls"]),
        (["+ls"], True, []),
    ],
    "one that was too quick to be seen": [
        (["+ls"], True, ["?0:ls", "+0:ls"]),
        (["+ls", "-rm"], True, ["?1:rm", "-1:rm"]),
    ],
    "the same twice": [
        (["?ls"], True, ["?0:ls"]),
        (["+ls", "?ls"], True, ["+0:ls", "?1:ls"]),
        (["+ls", "+ls"], True, ["+1:ls"]),
        (["+ls", "+ls", "+ls"], True, ["?2:ls", "+2:ls"]),
    ],
    "two at once, the later one ends first": [
        (["?a", "?b"], True, ["?0:a", "?1:b"]),
        (["?a", "+b"], True, ["+1:b"]),
        (["-a", "+b"], True, ["-0:a"]),
    ],
    "the screen scrolls": [
        (["+a", "?b"], True, ["?0:a", "+0:a", "?1:b"]),
        (["+b", "?c"], False, ["+1:b", "?2:c"]),
        (["+c", "?a"], False, ["+2:c", "?3:a"]),
        (["+a", "?b"], False, ["+3:a", "?4:b"]),
        ([], False, []),
        (["?d"], False, ["?5:d"]),
    ],
    "all is drawn again, from the top": [
        (["+a", "+b", "?c"], True, ["?0:a", "+0:a", "?1:b", "+1:b", "?2:c"]),
        ([], True, []),
        (["+a"], True, []),
        (["+a", "+b", "+c"], True, ["+2:c"]),
    ],
    "what scrolled away comes back to the screen": [
        (["+a", "+b"], True, ["?0:a", "+0:a", "?1:b", "+1:b"]),
        (["?c"], False, ["?2:c"]),
        (["+a", "+b", "?c"], False, []),
        (["+a"], False, []),
    ],
    "its end is out of sight": [(["?a"], True, ["?0:a"]), (["+", "?b"], False, ["+0:None", "?1:b"])],
    "a command that is written as it comes": [
        (["?ec"], True, ["?0:ec"]),
        (["?echo hi"], True, []),
        (["+echo hi"], True, ["+0:echo hi"]),
    ],
    "a narrower screen cuts what it shows": [
        (["+a long command", "?b"], True, ["?0:a long command", "+0:a long command", "?1:b"]),
        (["+a lon…", "+b"], True, ["+1:b"]),
        (["+a lon..."], False, []),
    ],
    "older calls are drawn as one": [
        (["+a", "+b"], True, ["?0:a", "+0:a", "?1:b", "+1:b"]),
        (["+b", "?c"], True, ["?2:c"]),
        (["+c"], True, ["+2:c"]),
    ],
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_each_call_is_told_once(story: list[tuple[list[str], bool, list[str]]]) -> None:
    calls = ShownCalls()
    for screen, whole, news in story:
        assert told(calls.seen(shown(*screen, whole=whole))) == news, screen


def test_calls_of_an_earlier_turn_that_come_back_are_not_told_again() -> None:
    calls = ShownCalls()
    calls.seen(shown("+ls", "+pwd", whole=True))
    assert told(calls.seen(shown("+pwd", task="task-2"))) == []
    assert told(calls.seen(shown("+pwd", "?ls", task="task-2"))) == ["?0:ls"]
    assert told(calls.seen(shown("+pwd", whole=True, task="task-3"))) == ["?0:pwd", "+0:pwd"]


def test_what_follows_a_note_is_of_the_same_turn_and_has_ids_of_its_own() -> None:
    calls = ShownCalls()
    calls.seen(shown("+ls", "-rm", whole=True))
    assert told(calls.seen(shown("+ls", whole=True, leg=1))) == ["?2:ls", "+2:ls"]


class Told:
    """What the log has."""

    def __init__(self) -> None:
        self.log: list[Event] = []
        self.restart()

    def restart(self) -> None:
        """The daemon is killed: only the log is left."""
        self.calls, self.shown = ToolCalls("a"), ShownCalls()
        self.calls.restore(self.log)
        self.shown.restore(self.log)

    def seen(self, fact: ToolsShown) -> None:
        for one in self.shown.seen(fact):
            news = self.calls.began(one, None) if isinstance(one, ToolBegan) else self.calls.over(one, None)
            for new in news:
                self.log.append(logged(len(self.log) + 1, new))

    @property
    def told(self) -> list[tuple[str, Any]]:
        data = [event.data for event in self.log]
        return [(one.status, one.input) for one in data if isinstance(one, ToolExecution)]


def logged(number: int, new: NewEvent) -> Event:
    """As the store has it, its secrets masked."""
    assert isinstance(new.data, ToolExecution)
    data = new.data.model_copy(update={"input": mask(new.data.input)})
    return Event(id=number, at=0, agent_id="a", task_id=TASK, data=data)


@pytest.mark.parametrize("secret", ["ls", "curl -H 'Authorization: Bearer abcdefghijklmnop'"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_new_daemon_tells_nothing_twice(secret: str, *, whole: bool) -> None:
    """Also of commands that the log has with their secrets masked."""
    now = Told()
    now.seen(shown("+a", f"?{secret}", whole=True))
    now.restart()
    now.seen(shown("+a", f"?{secret}", whole=whole))
    assert [status for status, _ in now.told] == ["started", "completed", "started"]
    now.restart()
    now.seen(shown(f"+{secret}", "+a", whole=False))
    assert [status for status, _ in now.told][3:] == ["completed", "started", "completed"]
    assert now.calls.open == 0


@given(st.data())
def test_any_screens_any_restarts(data: st.DataObject) -> None:
    """Calls run one after the other; looks come at any height of the screen, and the daemon dies at will."""
    commands = data.draw(st.lists(st.sampled_from(["a", "b", "c d"]), min_size=1, max_size=8))
    now = Told()
    for number, command in enumerate(commands):
        above = [f"+{one}" for one in commands[:number]]
        for last in (f"?{command}", f"+{command}"):
            height = data.draw(st.integers(2, 9))
            screen = [*above, last]
            now.seen(shown(*screen[-height:], whole=len(screen) < height))
            if data.draw(st.booleans()):
                now.restart()
    starts = [given_ for status, given_ in now.told if status == "started"]
    assert [one["command"] for one in starts] == commands
    assert sum(status == "completed" for status, _ in now.told) == len(commands)


def test_the_time_between_two_looks_is_its_duration_and_one_look_tells_none() -> None:
    now = Told()
    now.seen(shown("?a", whole=True, at=5_000_000))
    now.seen(shown("+a", "+b", whole=True, at=30_000_000))
    ends = [event.data for event in now.log if isinstance(event.data, ToolExecution) and event.data.status != "started"]
    assert [(one.duration_ms, one.exact, one.source) for one in ends] == [
        (25, False, "screen"),
        (None, False, "screen"),
    ]
