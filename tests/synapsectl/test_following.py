"""Text that is printed as it is said."""

import io
import json

import pytest

from synapsectl.following import TaskPrinter
from synapsectl.output import CommandOutput
from synapsed.shared.sse_parser import SseEvent


def told(text: str, *, append: bool = False, last: bool = False) -> SseEvent:
    artifact = {"artifact_id": "answer", "parts": [{"type": "text", "text": text}]}
    return SseEvent("artifact", json.dumps({"artifact": artifact, "append": append, "lastChunk": last}), "1")


@pytest.mark.parametrize(
    ("events", "printed"),
    [
        ([], ""),
        ([told("a"), told("b", append=True), told("abc", last=True)], "abc\n"),
        ([told("one\n"), told("one"), told("one", last=True)], "one\n"),
        ([told("wrong\n"), told("right", last=True)], "wrong\nright\n"),
        ([told("wrong"), told("right", last=True)], "wrong\nright\n"),
    ],
)
def test_what_was_said_is_not_said_again(events, printed):
    stdout = io.StringIO()
    follower = TaskPrinter(CommandOutput(stdout, io.StringIO(), columns=None))
    for event in events:
        follower.event(event)
    follower.end()
    assert stdout.getvalue() == printed
