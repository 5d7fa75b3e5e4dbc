"""Events as a person reads them."""

import time
from datetime import date
from typing import Any

import pytest

from synapsectl.eventlines import Lines

TODAY = date(2026, 1, 2)


@pytest.fixture(autouse=True)
def far_east(monkeypatch: pytest.MonkeyPatch):
    """Nine hours ahead of UTC."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def event(name: str = "activity", /, time: str = "2026-01-02T03:04:05.000Z", **data: Any) -> dict[str, Any]:
    return {"id": 7, "event": name, "data": data, "time": time, "agent": "synapse-a-1", "task": None, "context": None}


def plain() -> Lines:
    return Lines(on_terminal=False, environ={}, today=TODAY)


def test_a_line_has_the_time_here_and_what_happened():
    told = event(activity="busy", evidence="hook", prompt=None) | {"task": "11111111-2222"}
    assert plain().of(told) == "7 12:04:05 synapse-a-1 11111111 activity activity=busy evidence=hook"


def test_the_day_stands_where_it_changes():
    lines = plain()
    times = ["2026-01-02T14:59:59.000Z", "2026-01-02T15:00:00.000Z", "2026-01-02T15:00:01.000Z"]
    told = [lines.of(event(time=one)).split(" synapse")[0] for one in times]
    assert told == ["7 23:59:59", "7 2026-01-03 00:00:00", "7 00:00:01"]


def test_what_concerns_nobody_and_what_has_no_id():
    gap = event("gap", **{"from": 1, "to": 3}) | {"id": None, "agent": None}
    assert plain().of(gap) == "- 12:04:05 gap from=1 to=3"


@pytest.mark.parametrize("value", ["\x1b]0;title\x07", "a\nb", "a\x9b31mb", "left \u202eright", "\x7f"])
@pytest.mark.parametrize("nested", [False, True])
def test_hostile_text_is_made_visible(value: str, nested: bool):
    hostile = event(message={"deep": [value], value: 1} if nested else value, **{value: value}) | {"agent": value}
    for on_terminal in (False, True):
        line = Lines(on_terminal=on_terminal, environ={"NO_COLOR": "1"}).of(hostile)
        assert not any(ord(one) < 32 or 127 <= ord(one) < 160 or one == "\u202e" for one in line), line


def test_colours_stand_on_a_terminal_only():
    told = event("attention", state="opened", kind="permission")
    coloured = Lines(on_terminal=True, environ={}, today=TODAY).of(told)
    assert "\x1b[33mattention\x1b[0m" in coloured
    for environ in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in Lines(on_terminal=True, environ=environ).of(told)
    assert "\x1b" not in plain().of(told)


def test_large_things_are_said_in_a_few_words():
    told = event("toolExecution", tool_name="Bash", output={"truncated": True, "size": 90_000}, error="e" * 500)
    line = plain().of(told)
    assert "output=(90000 characters)" in line
    assert len(line) < 300
    artifact = event("taskArtifact", artifact={"artifact_id": "answer", "parts": [{"type": "text", "text": "Hello"}]})
    assert plain().of(artifact).endswith("artifact=Hello")
