"""The pictures of the pages: what is there is small, and can be made again from the program as it is now."""

import re
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts import pictures
from tests.docs.reading import PAGES, README, ROOT

PICTURE = re.compile(r"!\[[^]]+\]\((?:docs/)?pictures/([a-z0-9-]+)\.svg\)")
KEPT = ROOT / "docs" / "pictures"
SIZE_MAX = 60_000
OF_A_RUN = re.compile(
    r"/\S*?/shown|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{8}\b|\b\d\d:\d\d\b|\b\d+(?:ms|[smh])?\b"
)
"""Folders, ids of tasks, times, ages and pids: no two runs have the same."""
SHOWS = {
    "list": ["synapsectl list", "waiting", "busy", "Proceed? (y/n)"],
    "inbox": ["2 need you", "api · question · ~/api", "b no, because"],
    "top": ["4 agents · 2 need you", "Three migrations are pending", "? help"],
    "kill-9": ["kill -9", "no daemon is running", "started one", "It is there."],
}


def text_of(file: Path) -> str:
    root = ElementTree.parse(file).getroot()
    return " ".join(element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text"))


def words_of(file: Path) -> set[str]:
    """Returns the words that a picture shows: numbers and ids as `#`, without the dots of what was cut."""
    return {word.rstrip(".…") for word in OF_A_RUN.sub("#", text_of(file)).split()}


def test_the_pages_show_what_is_there() -> None:
    named = [name for page in PAGES for name in PICTURE.findall(page.read_text())]
    assert sorted(named) == sorted(SHOWS) == sorted(file.stem for file in KEPT.iterdir())
    assert len(PICTURE.findall(README.read_text())) == 3


def test_each_other_picture_is_made_by_the_script_of_the_page() -> None:
    found = {file.name for file in (ROOT / "docs").rglob("*") if file.suffix in (".svg", ".png")}
    others = found - {f"{name}.svg" for name in SHOWS}
    script = (ROOT / "scripts" / "page_pictures.py").read_text()
    assert others == set(re.findall(r'target / "(\w+\.png)"', script))
    shown = [name for page in PAGES for name in re.findall(r"!\[[^]]+\]\(web/(\w+\.png)\)", page.read_text())]
    assert sorted(shown) == sorted(others)


@pytest.mark.parametrize("name", SHOWS)
def test_a_picture_is_small_and_shows_what_it_is_for(name: str) -> None:
    file = KEPT / f"{name}.svg"
    assert file.stat().st_size < SIZE_MAX
    assert [words for words in SHOWS[name] if words not in text_of(file)] == []


@pytest.mark.night
@pytest.mark.timeout(300)
def test_made_again(tmp_path: Path) -> None:
    """All words of each picture are those of the program as it is now, but for what every run has of its own."""
    pytest.importorskip("textual")
    with tempfile.TemporaryDirectory(prefix="synapsed-", dir="/tmp") as folder:  # lines break by the length of its path
        pictures.draw(tmp_path, Path(folder))
    again = {name: words_of(tmp_path / f"{name}.svg") for name in SHOWS}
    assert again == {name: words_of(KEPT / f"{name}.svg") for name in SHOWS}


def test_a_picture_that_is_older_than_the_program_is_seen(tmp_path: Path) -> None:
    kept = (KEPT / "list.svg").read_text()
    (tmp_path / "later.svg").write_text(kept.replace(">4s<", ">17s<"))
    (tmp_path / "other.svg").write_text(kept.replace(">FOR<", ">SINCE<"))
    assert words_of(tmp_path / "later.svg") == words_of(KEPT / "list.svg")
    assert words_of(tmp_path / "other.svg") != words_of(KEPT / "list.svg")


def frame(*lines: str) -> str:
    head = '<svg xmlns="http://www.w3.org/2000/svg">\n<rect/>\n<g transform="translate(8 8)">\n'
    return head + "".join(f"<text>{line}</text>\n" for line in lines) + "</g>\n</svg>\n"


def test_a_recording_writes_once_what_stands_in_several_pictures() -> None:
    made = pictures.recording([frame("$ a"), frame("$ a", "$ b"), frame("$ a", "done")], "a & b")
    root = ElementTree.fromstring(made)
    groups = {
        group.findtext("{*}text"): (group.get("display"), animate.get("values") if animate is not None else None)
        for group in root.findall("{*}g/{*}g")
        for animate in [group.find("{*}animate")]
    }
    assert groups == {"$ a": (None, None), "$ b": ("none", "none;inline;none"), "done": (None, "none;none;inline")}
    assert root.findtext("{*}title") == "a & b"
