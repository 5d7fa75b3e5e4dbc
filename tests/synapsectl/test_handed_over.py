"""What a task handed over: named with type and size, and saved where nothing else is touched."""

import base64
import io
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsectl import handed_over
from synapsectl.errors import UsageError
from synapsectl.handed_over import NotSaved, prepare, safe, save, sized, tell
from synapsectl.output import CommandOutput


def out() -> CommandOutput:
    return CommandOutput(io.StringIO(), io.StringIO(), columns=None)


def file(name: str | None, content: bytes, kind: str | None = "text/plain") -> dict[str, Any]:
    told = {"name": name, "mimeType": kind, "bytes": base64.b64encode(content).decode(), "uri": None}
    return {"type": "file", "file": told}


def task_with(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"id": "1f0c9a2b-0000", "artifacts": [{"artifact_id": "a", "name": "report", "parts": list(parts)}]}


def said(where: CommandOutput) -> str:
    assert isinstance(where.stderr, io.StringIO)
    return where.stderr.getvalue()


def test_it_is_named_with_type_and_size() -> None:
    where = out()
    uri = {"type": "file", "file": {"name": "far.bin", "mimeType": "application/zip", "uri": "https://x.example/f"}}
    data = {"type": "data", "data": {"a": 1}}
    tell(where, task_with({"type": "text", "text": "hi"}, file("r.txt", b"x" * 2048), uri, data))
    lines = said(where).splitlines()
    assert lines == [
        "handed over: r.txt (text/plain, 2.0 KiB)",
        "handed over: far.bin (application/zip) at https://x.example/f",
        "handed over: report.json (application/json, 12 bytes)",
        "'synapsectl task 1f0c9a2b --save DIR' saves it",
    ]
    quiet = out()
    tell(quiet, task_with({"type": "text", "text": "hi"}))
    assert said(quiet) == ""


def test_it_is_saved_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    prepare(str(folder))
    data = {"type": "data", "data": {"ä": 1}}
    paths = save(
        out(), task_with(file("r.txt", b"one"), file("r.txt", b"two"), file(None, b"%PDF", None), data), str(folder)
    )
    assert [Path(path).name for path in paths] == ["r.txt", "r-2.txt", "report", "report.json"]
    assert [Path(path).read_bytes() for path in paths] == [b"one", b"two", b"%PDF", b'{\n  "\xc3\xa4": 1\n}']
    assert {stat.S_IMODE(Path(path).stat().st_mode) for path in paths} == {0o600}


def test_nothing_is_written_over_and_no_link_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("mine")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "r.txt").symlink_to(kept)
    paths = save(out(), task_with(file("r.txt", b"evil"), file("../kept", b"evil")), str(folder))
    assert [os.path.relpath(path, folder) for path in paths] == ["r-2.txt", "kept"]
    assert kept.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "is_now"),
    [
        ("../../etc/passwd", "passwd"),
        ("a/b\\c.txt", "c.txt"),
        ("/", "file"),
        ("..", "file"),
        ("", "file"),
        (".bashrc", "bashrc"),
        ("-rf", "rf"),
        ("-.zshenv", "zshenv"),
        ("--x", "x"),
        ("- .x", "x"),
        ("-.-.x", "x"),
        ("-.", "file"),
        ("x\x1b[31m.txt", "x_[31m.txt"),
        ("\u202egpj.exe", "_gpj.exe"),
        ("two\nlines.txt", "two_lines.txt"),
        ("報告.pdf", "報告.pdf"),
    ],
)
def test_a_name_is_no_path(name: str, is_now: str) -> None:
    assert safe(name) == is_now


def test_a_long_name_keeps_its_end() -> None:
    assert len(safe("ä" * 400 + ".pdf").encode()) <= handed_over.NAME_MAX
    assert safe("ä" * 400 + ".pdf").endswith(".pdf")


@pytest.mark.parametrize(
    ("name", "is_now"),
    [
        ("x" * 200, "x" * 150),
        ("x" * 149 + "é", "x" * 149),
        ("a." + "x" * 200, "a." + "x" * 148),
        ("報" * 100, "報" * 50),
        ("a" + "." * 300 + "txt", "a.txt"),
        ("x" * 145 + " " * 50 + ".txt", "x" * 145 + ".txt"),
        ("." * 300, "file"),
        ("\0" * 300, "_" * 150),
    ],
)
def test_a_long_name_is_cut(name: str, is_now: str) -> None:
    assert safe(name) == is_now


@given(st.text(st.sampled_from("./\\-~ \0\n\x1b\u202e\u200b\ud800aé報💥:"), max_size=400) | st.text(max_size=400))
def test_any_name_becomes_a_file_in_the_folder(name: str) -> None:
    now = safe(name)
    assert 0 < len(now.encode()) <= handed_over.NAME_MAX
    assert not set(now) & set("/\\\0~:")
    assert now[0] not in ".- "
    assert now[-1] not in ". "
    assert now.isprintable()


def test_files_with_hostile_names_are_saved(tmp_path: Path) -> None:
    names = ["x" * 200, "x" * 200, "報" * 100, "\0", "..", "/", "a" * 300 + "." + "b" * 300, "\ud800.txt"]
    (tmp_path / "_").mkdir()
    paths = save(out(), task_with(*(file(name, name.encode("utf-8", "replace")) for name in names)), str(tmp_path))
    assert {Path(path).parent for path in paths} == {tmp_path}
    assert [Path(path).read_bytes() for path in paths] == [name.encode("utf-8", "replace") for name in names]


def test_there_are_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed_over, "BYTES_MAX", 5)
    with pytest.raises(NotSaved, match="the rest is not saved"):
        save(out(), task_with(file("a", b"123"), file("b", b"456")), str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_is_no_base64_is_kept_as_it_came(tmp_path: Path) -> None:
    part = {"type": "file", "file": {"name": "x", "bytes": "é!"}}
    (path,) = save(out(), task_with(part), str(tmp_path))
    assert Path(path).read_text() == "é!"


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--save"):
        prepare(str(tmp_path / "file" / "folder"))


@pytest.mark.parametrize(
    ("size", "told"), [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (5 << 30, "5.0 GiB")]
)
def test_sizes_for_a_person(size: int, told: str) -> None:
    assert sized(size) == told
