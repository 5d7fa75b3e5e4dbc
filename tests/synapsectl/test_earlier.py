"""Looking back: what the process that draws it says is text with colours, whatever it says."""

import json
from pathlib import Path

import pytest

from synapsectl import earlier
from synapsectl.earlier import Pieces, checked, lines
from tests.support.begun import begins_with


def test_what_is_drawn() -> None:
    one, two = lines(Pieces(20, 3, [b"\x1b[31mtwo", b"one\r\ntwo"]))
    assert one == "one"
    assert "\x1b[" in two
    assert "mtwo\x1b" in two
    assert two.endswith("\x1b[m")


def test_only_text_and_colours_pass() -> None:
    said = ["\x1b[1;31mred\x1b[m", "\x1b]52;c;aGk=\x07a", "\x9b6n\x00b\r\n", "\x1b[2Jc\x1b", 7, "\x1b\x1b[m"]
    assert checked(json.dumps(said).encode()) == ["\x1b[1;31mred\x1b[m", "]52;c;aGk=a", "6nb", "[2Jc", "\x1b[m"]


@pytest.mark.parametrize("said", [b"{}", b"[", b'"text"'])
def test_what_is_no_list_is_refused(said: bytes) -> None:
    with pytest.raises(ValueError, match=r"no lines|Expecting"):
        checked(said)


@pytest.mark.parametrize(
    "program",
    ["import os; os.abort()", "import time; time.sleep(600)", "import sys\nwhile True: sys.stdout.write('[' * 999)"],
)
def test_a_process_that_does_something_else_is_ended(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "it.py").write_text(program)
    monkeypatch.setattr("synapsed.own_python.FILE", begins_with(tmp_path / "it.py"))
    monkeypatch.setattr(earlier, "TIME_LIMIT", 1.0)
    monkeypatch.setattr(earlier, "SAID_MAX", 100_000)
    with pytest.raises((OSError, ValueError)):
        lines(Pieces(20, 3, [b"two", b"one"]))
