"""Recordings: what is in them, and when."""

import json
from typing import Any

from synapsed.agents.agent_screen import asciicast


def cast(output: bytes, start: int, marks: list[tuple[int, float]]) -> tuple[dict[str, Any], list[list[Any]]]:
    head, *events = (json.loads(line) for line in asciicast(output, start, marks, cols=80, rows=24, title="a"))
    return head, events


def test_pieces_come_at_their_times() -> None:
    head, events = cast(b"onetwothree", 100, [(40, 9.0), (100, 10.5), (103, 11.0), (106, 13.25), (500, 20.0)])
    assert head == {
        "version": 3, "term": {"cols": 80, "rows": 24, "type": "xterm-256color"}, "timestamp": 10, "title": "a",
    }  # fmt: skip
    assert events == [[0.0, "o", "one"], [0.5, "o", "two"], [2.25, "o", "three"]]


def test_what_is_older_than_the_first_mark_comes_at_once() -> None:
    assert cast(b"abc", 0, [(2, 5.0)])[1] == [[0.0, "o", "ab"], [0.0, "o", "c"]]
    assert cast(b"abc", 0, []) == (
        {"version": 3, "term": {"cols": 80, "rows": 24, "type": "xterm-256color"}, "timestamp": 0, "title": "a"},
        [[0.0, "o", "abc"]],
    )
    assert cast(b"", 0, [])[1] == []


def test_a_clock_that_was_set_back_makes_no_time_run_backwards() -> None:
    events = cast(b"abc", 0, [(0, 5.0), (1, 2.0), (2, 6.0)])[1]
    assert events == [[0.0, "o", "a"], [0.0, "o", "b"], [1.0, "o", "c"]]


def test_characters_are_whole() -> None:
    events = cast("é\x1b[1m".encode() + b"\xff", 0, [(0, 1.0), (1, 2.0), (2, 3.0)])[1]
    assert events == [[1.0, "o", "é"], [1.0, "o", "\x1b[1m\ufffd"]]
