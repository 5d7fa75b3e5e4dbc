"""Files that are kept beside the messages that name them: how they are addressed, typed, and put into an inbox."""

from pathlib import Path

import pytest

from synapsed.agents import message_files
from synapsed.errors import InvalidRequest
from synapsed.model.kept_file import KeptFile, given_here, is_kept
from synapsed.model.task import FileContent, FilePart, Message, Task, TextPart
from synapsed.profiles.screen_spec import DeliverySpec
from synapsed.tasks.prompt_text import Enclosure, compose

ID = "0123456789abcdef" * 2


def file_at(uri: str, size: int | None = None) -> FilePart:
    metadata = None if size is None else {"size": size}
    return FilePart(file=FileContent(name="../film 1.mp4", uri=uri), metadata=metadata)


@pytest.mark.parametrize(
    "uri",
    [
        "syn-file:",
        "syn-file:x",
        f"syn-file:{ID}x",
        f"syn-file:/{ID}",
        f"syn-file:../{ID}",
        f"syn-file:Box/{ID}",
        f"syn-file:box/../{ID}",
        f"syn-file:{ID}\n",
        f"file:{ID}",
        None,
    ],
)
def test_what_is_no_address_leads_nowhere(uri: str | None) -> None:
    assert KeptFile.of(uri) is None


def test_an_address_is_a_path_below_one_folder() -> None:
    here, there = KeptFile(None, ID), KeptFile("box", ID)
    assert [KeptFile.of(one.uri) for one in (here, there)] == [here, there]
    assert [here.path, there.path] == [f"out/{ID}", f"in/box/{ID}"]
    parts = [
        TextPart(text="a"),
        file_at(here.uri),
        file_at(there.uri),
        file_at(here.uri),
        file_at("https://a.example/b"),
    ]
    assert given_here(parts) == [ID]
    assert [is_kept(part) for part in parts] == [False, True, True, True, False]


def task_with(part: FilePart) -> Task:
    message = Message(parts=[TextPart(text="look"), part])
    return Task(agent_id="a", message=message, created_at="2026-01-01T00:00:00.000Z", updated_at="")


def test_it_is_typed_as_a_file_of_the_inbox(tmp_path: Path) -> None:
    letter = compose(task_with(file_at(f"syn-file:box/{ID}", 7)), DeliverySpec(file_text="[{bytes} {path}]"), tmp_path)
    (enclosed,) = letter.enclosures
    assert enclosed.kept == f"in/box/{ID}"
    assert enclosed.name.endswith("-film_1.mp4")
    assert f"[7 {tmp_path / enclosed.name}]" in letter.text
    with pytest.raises(InvalidRequest, match="kept"):
        compose(task_with(file_at("syn-file:../../token")), DeliverySpec(), tmp_path)


def test_the_inbox_has_a_copy_of_its_own(tmp_path: Path) -> None:
    kept, inbox = tmp_path / "files", tmp_path / "inbox"
    source = kept / "in" / "box" / ID
    source.parent.mkdir(parents=True)
    source.write_bytes(b"film")
    enclosed = Enclosure("0-film.mp4", kept=f"in/box/{ID}")
    message_files.put(inbox, [enclosed], kept)
    taken = inbox / "0-film.mp4"
    assert (taken.read_bytes(), taken.stat().st_mode & 0o777) == (b"film", 0o600)
    taken.write_bytes(b"cut")
    assert source.read_bytes() == b"film"
    source.unlink()
    message_files.put(inbox, [enclosed], kept)  # after a restart: the agent has had it
    assert taken.read_bytes() == b"cut"
    with pytest.raises(FileNotFoundError):
        message_files.put(inbox, [Enclosure("1-film.mp4", kept=f"in/box/{ID}")], kept)
    assert [path.name for path in inbox.iterdir()] == ["0-film.mp4"]
