"""The pure parts: event streams, plain text, widths, ages; and the client against what is no daemon."""

import io
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsectl.ages import age
from synapsectl.client import Client
from synapsectl.errors import ApiError, BadAnswer, NoDaemon, TimedOut
from synapsectl.output import CommandOutput, as_json, clip, display_width, fit, harmless, pad
from synapsectl.plain import PlainText
from synapsed.shared.sse_parser import SseEvent, SseParser

STREAM = b": hi\r\nid: 1\nevent: status\ndata: {}\n\ndata: a\rdata:b\r\r: ka\n\nid: 2\n\ndata: \xc3\xa9\n\nretry: 5\n\n"
EVENTS = [SseEvent("status", "{}", "1"), SseEvent("message", "a\nb", "1"), SseEvent("message", "é", "2")]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_in_any_chunking(cuts: list[int]) -> None:
    parser = SseParser()
    edges = [0, *sorted(cuts), len(STREAM)]
    events = [event for a, b in pairwise(edges) for event in parser.feed(STREAM[a:b])]
    assert events == EVENTS
    assert parser.last_id == "2"


RAW = (
    "\x1b]0;title\x07\x1b[1mHéllo\x1b[0m\r\n\x1b[2J\x1b[H⠋ busy\x1b[5;1H"
    "Héllo\x1b[3Cworld\r\n\r\n\x1bP+q\x1b\\done\x1b(B\r\n"
    "●\x1b[3GThe\x1b[7G\x1b[8Ganswer\x1b[1G⠙ busy\x1b[7;3Hone\x1b[7;7Htwo\x1b[8;1Hthree\x1b[8;1Hfour\r\n"
    "sql> \x1b[7mselect\x1b[27m\b\b\b\b\b\bselect 1\r\n"
)
LINES = [
    "Héllo",
    "⠋ busy",
    "Héllo   world",
    "done",
    "● The answer",
    "⠙ busy",
    "one two",
    "three",
    "four",
    "sql> select 1",
]


@pytest.mark.parametrize("digits", ["9" * 4301, "0" * 5000 + "7"])
@pytest.mark.parametrize("sequence", ["\x1b[{}C", "\x1b[{}G", "\x1b[1;{}H", "\x1b[{};{}H"])
def test_plain_text_with_numbers_of_any_length(sequence: str, digits: str) -> None:
    (text,) = PlainText().feed(f"\x1b[Hone{sequence.replace('{}', digits)}two\n".encode())[-1:]
    assert text.endswith("two")
    assert len(text) < 1000


@given(st.lists(st.integers(0, len(RAW.encode())), max_size=12))
def test_plain_text_in_any_chunking(cuts: list[int]) -> None:
    plain, raw = PlainText(), RAW.encode()
    edges = [0, *sorted(cuts), len(raw)]
    lines = [line for a, b in pairwise(edges) for line in plain.feed(raw[a:b])]
    assert lines + plain.flush() == LINES


@given(st.binary())
def test_plain_text_of_any_bytes_has_no_control_characters(data: bytes) -> None:
    plain = PlainText()
    for line in plain.feed(data + b"\r\n") + plain.flush():
        assert harmless(line) == line


@pytest.mark.parametrize("columns", [80, None])
def test_bytes_of_a_program_are_filtered_for_a_terminal(columns: int | None) -> None:
    written = io.BytesIO()
    out = CommandOutput(io.TextIOWrapper(written), io.StringIO(), columns=columns)
    pieces = b"\x1b[1mone\x1b]5\x002;c;", b"cm0=\x07\x1b[\x006n two"
    for piece in pieces:
        out.raw(piece)
    assert written.getvalue() == (b"".join(pieces) if columns is None else b"\x1b[1mone two")


def test_widths() -> None:
    assert [display_width(text) for text in ("abc", "日本", "e\u0301", "🎉", "")] == [3, 4, 1, 2, 0]
    assert clip("日本語", 4) == "日…"
    assert clip("日本語", 6) == "日本語"
    assert pad("日", 4) == "日  "


@given(st.text(), st.integers(0, 40))
def test_what_is_clipped_fits(text: str, columns: int) -> None:
    assert display_width(clip(text, columns)) <= columns


def test_tables_give_way_where_it_hurts_least() -> None:
    assert fit([10, 40, 10], 70, 1) == [10, 40, 10]
    assert fit([10, 40, 10], 54, 1) == [10, 30, 10]
    assert sum(fit([30, 60, 40], 50, 1)) + 4 == 50


def test_ages() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    for delta, expected in [(5, "5s"), (65, "1m"), (7200, "2h"), (3 * 86400, "3d"), (-4, "0s")]:
        assert age((now - timedelta(seconds=delta)).isoformat(), now) == expected
    assert age("2026-01-02T03:04:00.000Z", now) == "5s"
    assert age("?", now) == "?"


@contextmanager
def answering(home: Path, answer: bytes | None) -> Iterator[Client]:
    """A socket that takes a request and answers so; not at all for None."""
    path = home / "s.sock"
    done = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(BrokenPipeError):  # it may have heard enough
                connection.recv(65536)
                if answer is None:
                    done.wait(20)
                else:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Client(str(path))
        finally:
            done.set()
            thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\n\r\n<html>",
        b"HTTP/1.1 500 Oops\r\n\r\n500: Internal",
        b'HTTP/1.1 404 No\r\n\r\n{"detail": "x"}',
        b"HTTP/1.1 200 OK\r\n" + b"X" * 100_000,
    ],
)
def test_what_is_no_daemon_is_said_to_be_none(home: Path, answer: bytes) -> None:
    with answering(home, answer) as client, pytest.raises(BadAnswer):
        client.get("/agents")
    assert BadAnswer.exit_code == NoDaemon.exit_code == 3


def test_an_error_document_is_the_daemons(home: Path) -> None:
    body = b'{"error": {"code": "QUEUE_FULL", "message": "later", "details": {"limit": 100}}}'
    answer = b"HTTP/1.1 429 Many\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with answering(home, answer) as client, pytest.raises(ApiError) as caught:
        client.post("/x")
    assert (caught.value.exit_code, caught.value.status, caught.value.details) == (6, 429, {"limit": 100})


def test_a_daemon_that_says_nothing_is_a_timeout(home: Path) -> None:
    with answering(home, None) as client, pytest.raises(TimedOut):
        client.get("/agents", timeout=0.05)


def test_a_refusal_before_the_body_was_read_is_heard(home: Path) -> None:
    body = b'{"error": {"code": "TOO_LARGE", "message": "too much", "details": {}}}'
    with answering(home, b"HTTP/1.1 413 Big\r\n\r\n" + body) as client, pytest.raises((ApiError, BadAnswer)) as caught:
        client.post("/x", {"text": "x" * 3_000_000})
    assert caught.value.exit_code in (2, 3)


def test_json_that_a_terminal_is_shown_has_nothing_that_it_obeys() -> None:
    told = {"text": "\x1b[31m\x9b31m\x9d52;c;x\x9c\x7f\u202egnp.exe\u2066\u3164\U000e0041", "name": "日本 é 🙂\u200d🙂"}
    text = as_json(told, indent=2)
    assert json.loads(text) == told
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u3164\U000e0000-\U000e0fff]", text)
    assert "日本 é 🙂\u200d🙂" in text
    assert json.loads(as_json("\ud800")) == "\ud800"


def test_text_that_a_terminal_is_shown_stands_in_its_own_order() -> None:
    assert harmless("a\u202egnp\x9b1m") == "a\\u202egnp\\x9b1m"
    assert harmless("שלום é 🙂\n") == "שלום é 🙂\n"
