"""What is typed for a message, and what goes into files."""

import base64
import errno
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.agents import message_files
from synapsed.errors import InvalidRequest, TooLarge
from synapsed.model.task import DataPart, FileContent, FilePart, Message, Part, Task, TextPart
from synapsed.profiles.screen_spec import DeliverySpec
from synapsed.tasks import prompt_text
from synapsed.tasks.prompt_text import Letter, compose, safe_name

INBOX = Path("/state/inbox")
ID = "0123abcd-0000-4000-8000-000000000000"
T8 = "0123abcd"


def letter(*parts: Part, spec: DeliverySpec | None = None, **metadata: Any) -> Letter:
    task = Task(
        id=ID, agent_id="a", message=Message(parts=list(parts)), metadata=metadata, created_at="", updated_at=""
    )
    return compose(task, spec or DeliverySpec(), INBOX)


def file(name: str | None, content: bytes, mime: str | None = None) -> FilePart:
    return FilePart(file=FileContent(name=name, mime_type=mime, bytes=base64.b64encode(content).decode()))


def test_text_is_typed_as_it_is_and_marked() -> None:
    assert letter(TextPart(text="a\n"), TextPart(text="b")) == Letter("a\n\nb")
    marked = letter(TextPart(text="a"), sender={"sender_id": "synapse-x-1[]\n"})
    assert marked.text == f"[A2A:{T8}:synapse-x-1] a"


def test_48_kib_are_typed_more_is_a_file() -> None:
    typed = "x" * (48 << 10)
    assert letter(TextPart(text=typed), sender="synapse-codex-8120").enclosures == ()
    assert letter(TextPart(text=typed)).text == typed
    text = "é" * (48 << 10)
    long = letter(TextPart(text=text), sender="peer")
    (enclosure,) = long.enclosures
    assert enclosure.content == text.encode()
    assert long.text.startswith(f"[A2A:{T8}:peer] ")
    assert str(INBOX / f"{T8}-message.txt") in long.text
    assert str(2 * (48 << 10)) in long.text


def test_a_megabyte_is_taken_and_no_more() -> None:
    assert len(letter(TextPart(text="x" * prompt_text.TEXT_MAX)).enclosures[0].content) == prompt_text.TEXT_MAX
    with pytest.raises(TooLarge):
        letter(TextPart(text="x" * prompt_text.TEXT_MAX), TextPart(text="x"))
    with pytest.raises(TooLarge):  # nothing looks through it for a character that can be seen
        letter(TextPart(text="\u200b" * (prompt_text.TEXT_MAX + 1)))


@pytest.mark.parametrize(("texts", "blank"), [(["", " \t"], True), (["\n\u2028", "x"], False)])
def test_blank_is_what_has_white_space_only(texts: list[str], blank: bool) -> None:
    message = Message(parts=[TextPart(text=text) for text in texts])
    assert message.blank is blank


def test_a_message_of_megabytes_is_not_copied_to_see_whether_it_is_blank() -> None:
    message = Message(parts=[TextPart(text=text * (4 << 20)) for text in ("x\n", "y ")])
    tracemalloc.start()
    try:
        assert not message.blank
        assert tracemalloc.get_traced_memory()[1] < 1 << 16
    finally:
        tracemalloc.stop()


def test_words_are_the_profile_s() -> None:
    spec = DeliverySpec(max_bytes=10, long_text="Lies {path}!", file_text="Datei {path}, {bytes} Bytes")
    found = letter(TextPart(text="longer than that"), file("f", b"xyz"), spec=spec)
    assert found.text == f"Lies {INBOX}/{T8}-message.txt!"
    assert found.enclosures[1].content.decode() == f"longer than that\nDatei {INBOX}/{T8}-f, 3 Bytes"


def test_data_is_json_typed_or_in_a_file() -> None:
    assert letter(DataPart(data={"ä": [1]})).text == '```json\n{\n  "ä": [\n    1\n  ]\n}\n```'
    large = {"list": list(range(5000))}
    found = letter(TextPart(text="t"), DataPart(data=large))
    assert found.text == f"t\nAttached file: {INBOX}/{T8}-data.json"
    assert json.loads(found.enclosures[0].content) == large


def test_files_are_named_and_never_mixed_up() -> None:
    found = letter(file("a.txt", b"1"), file("a.txt", b"2"), file("../a.txt", b"3"))
    assert [(e.name, e.content) for e in found.enclosures] == [
        (f"{T8}-a.txt", b"1"),
        (f"{T8}-2-a.txt", b"2"),
        (f"{T8}-3-a.txt", b"3"),
    ]
    assert found.text == "\n".join(f"Attached file: {INBOX / e.name}" for e in found.enclosures)


def test_an_address_is_typed() -> None:
    part = FilePart(file=FileContent(name="re\nport", uri="https://example.org/a\nb"))
    assert letter(part).text == "re port: https://example.org/a b"


@pytest.mark.parametrize("parts", [[TextPart(text=" \n")], [FilePart(file=FileContent(bytes="?"))],
                                   [FilePart(file=FileContent(name="n"))]])  # fmt: skip
def test_refused(parts: list[Part]) -> None:
    with pytest.raises(InvalidRequest):
        letter(*parts)


@pytest.mark.parametrize("text", ["\x01", "\x1b\x07 \t", "\u200b\u2060", "\ufeff", "\u202e\u2066", "\x85\x9b"])
@pytest.mark.parametrize("sender", [None, "peer"])
def test_a_message_of_which_nothing_would_be_seen_is_refused(text: str, sender: str | None) -> None:
    with pytest.raises(InvalidRequest, match="empty"):
        letter(TextPart(text=text), **({"sender": sender} if sender else {}))


def test_too_many_files() -> None:
    with pytest.raises(TooLarge):
        letter(*[file("x", b"")] * (prompt_text.FILES_MAX + 1))


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\dir\\x.doc", "x.doc"),
        ("..", "file"),
        ("", "file"),
        (".bashrc", "bashrc"),
        ("-rf", "rf"),
        ("a b\x1b[31m\n;$(x).sh", "a_b_31m_x_.sh"),
        ("資料 1.txt", "資料_1.txt"),
        ("x" * 300 + ".tar.gz", "x" * 97 + ".gz"),
        ("dir/", "dir"),
    ],
)
def test_safe_names(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_a_file_without_a_name_gets_its_type_s_ending() -> None:
    assert safe_name(None, "image/png") == "file.png"


@given(st.text())
def test_every_name_is_one_short_printable_component(name: str) -> None:
    safe = safe_name(name)
    assert safe.isprintable()
    assert not set(safe) & set("/\\ \0")
    assert safe[0] not in ".-"
    assert 0 < len(safe.encode()) <= prompt_text.NAME_MAX


def test_put_replaces_whole_files_with_0600(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    found = letter(file("a", b"first"))
    message_files.put(inbox, found.enclosures, tmp_path)
    message_files.put(inbox, letter(file("a", b"second")).enclosures, tmp_path)
    (path,) = inbox.iterdir()
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o600
    assert inbox.stat().st_mode & 0o777 == 0o700


def test_a_file_that_a_full_disk_does_not_take_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        message_files.put(tmp_path, letter(file("a", b"x" * 100_000)).enclosures, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_tidy_spares_open_tasks_and_young_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10_000_000.0
    ages = {f"{T8}-open": 1e6, "aaaaaaaa-old": 1e6, "bbbbbbbb-young": 10.0, ".cccccccc-x.tmp": 1e6}
    for name, age in ages.items():
        (tmp_path / name).write_bytes(b"12345")
        os.utime(tmp_path / name, (now - age, now - age))
    assert message_files.tidy(tmp_path, [ID], now=now) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{T8}-open", "bbbbbbbb-young"]
    monkeypatch.setattr(message_files, "INBOX_MAX", 9)
    assert message_files.tidy(tmp_path, [ID], now=now) == 1
    assert [path.name for path in tmp_path.iterdir()] == [f"{T8}-open"]
    assert message_files.tidy(tmp_path / "none", [], now=now) == 0


class Listed(list[os.DirEntry[str]]):
    def __enter__(self) -> "Listed":
        return self

    def __exit__(self, *_: object) -> None: ...


def test_a_file_that_goes_while_its_folder_is_tidied_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def removing(folder: Path) -> Listed:
        with scandir(folder) as entries:
            found = Listed(sorted(entries, key=lambda entry: entry.name))
        (tmp_path / "aaaaaaaa-gone").unlink(missing_ok=True)
        return found

    for name in ("aaaaaaaa-gone", "bbbbbbbb-old"):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (0, 0))
    monkeypatch.setattr("synapsed.agents.message_files.os.scandir", removing)
    assert message_files.tidy(tmp_path, [], now=1e9) == 1
    assert list(tmp_path.iterdir()) == []
