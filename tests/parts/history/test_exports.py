"""The history in the forms in which it is given on, and the times that it is asked for by."""

import argparse
import csv
import io
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from synapsectl.colours import DIM
from synapsectl.output import TableCell
from synapsectl.times import moment
from synapsed.parts.history.ctl.exports import COLUMNS, as_csv, as_markdown, as_transcript
from synapsed.parts.history.ctl.history import _row

NAMES = {"synapse-claude-8100": "claude"}


@pytest.fixture(autouse=True)
def far_east(monkeypatch: pytest.MonkeyPatch):
    """Nine hours ahead of UTC."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def item(text: str = "hello", **changes: Any) -> dict[str, Any]:
    facts = {
        "id": 4, "time": "2026-01-02T20:00:00.000Z", "kind": "message", "agent": "synapse-claude-8100",
        "task": "11111111-2222", "context": "c", "thread": "c", "by": None, "to": "synapse-claude-8100", "tool": None,
        "state": None, "snippet": text, "text": text, "truncated": False,
    }  # fmt: skip
    return facts | changes


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " \r\n =1"),
        *("＝1+1", "＋1", "－1", "＠SUM(A1)", "\n＝1", "\u3000＝1", "\ufeff=1", "\u200b=1", "\x00=1"),
    ],
)
def test_no_cell_is_a_formula(text: str) -> None:
    (row,) = csv.DictReader(io.StringIO(as_csv([item(text)]), newline=""))
    assert row["text"] == f"'{text}"


def test_csv_is_read_back_as_it_was() -> None:
    items = [item('quotes " and, commas\nlines; 議事録'), item("a=b -c", truncated=True)]
    rows = list(csv.DictReader(io.StringIO(as_csv(items), newline="")))
    assert [row["text"] for row in rows] == [one["text"] for one in items]
    assert list(rows[0]) == list(COLUMNS)


def test_instructions_are_one_line_behind_the_first_message() -> None:
    told = item("You are claude\nand this is all", by="synapse-system")
    heard = item("OK", kind="answer", by="synapse-claude-8100", to="synapse-system", state="completed")
    lines = as_transcript([told, heard, item("hello")], NAMES).splitlines()
    assert [line for line in lines if line.startswith("  ")] == [
        "  hello",
        "  (instructions from synapsed: --format markdown has them)",
        "  OK",
    ]
    assert as_transcript([told], NAMES).count("instructions from synapsed") == 1
    assert "and this is all" in as_markdown([told], NAMES, title="Thread")


@pytest.mark.parametrize(("folds", "cell"), [(True, TableCell("instructions from synapsed", DIM)), (False, "You are")])
def test_a_row_has_words_for_instructions(cell: object, *, folds: bool) -> None:
    told = item("You are", by="synapse-system")
    assert _row(told, NAMES, short=True, folds=folds)[-1] == cell


def test_markdown_is_a_document() -> None:
    called = item("sh\n```\nx\n```", kind="tool", by="synapse-claude-8100", to=None, tool="sh", state="failed")
    answer = item("It **works**.", kind="answer", by="synapse-claude-8100", to=None, state="completed", truncated=True)
    assert as_markdown([item(), called, answer], NAMES, title="Thread\nc") == (
        "# Thread c\n\n## 2026-01-03 05:00:00 person → claude (message, task 11111111)\n\nhello\n\n"
        "## 2026-01-03 05:00:00 claude ran sh (tool, failed, task 11111111)\n\n````\nsh\n```\nx\n```\n````\n\n"
        "## 2026-01-03 05:00:00 claude → person (answer, task 11111111)\n\nIt **works**.\n\n"
        "*(only the beginning is kept in the history)*\n"
    )


def test_a_transcript_has_all_lines_indented() -> None:
    told = as_transcript([item("one\n\ntwo", by="synapse-gone-1", task=None)], NAMES)
    assert told == "2026-01-03 05:00:00 synapse-gone-1 → claude (message)\n  one\n\n  two\n"


def test_times_are_of_the_local_zone() -> None:
    assert moment("2026-01-02") == "2026-01-01T15:00:00.000Z"
    assert moment("2026-01-02 14:00") == "2026-01-02T05:00:00.000Z"
    assert moment("2026-01-02T14:00+00:00") == "2026-01-02T14:00:00.000Z"
    assert moment("today").endswith("T15:00:00.000Z")
    assert moment("yesterday") < moment("today") <= moment("0s")
    ago = datetime.now(UTC) - datetime.fromisoformat(moment("2h"))
    assert 7200 <= ago.total_seconds() < 7200 + 600


@pytest.mark.parametrize("text", ["", "someday", "2h30m", "-1h", "999999w", "2026-13-01", "٣h", "0001-01-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no time"):
        moment(text)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_no_output_of_a_tool_ends_its_own_fence(end: str) -> None:
    called = item(f"50%{end}```{end}# heading", kind="tool", tool="Bash")
    assert f"\n````\n{called['text']}\n````\n" in as_markdown([called], NAMES, title="Thread")
