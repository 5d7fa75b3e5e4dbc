"""The map of modules, and the words that code and documents are written in."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from scripts import wording
from scripts.folders import modules
from scripts.modules import PAGE, documents, first_sentence


@pytest.mark.slow
def test_the_map_has_every_module_and_the_page_every_part() -> None:
    for path, text in documents().items():
        assert path.read_text() == text, "run 'python -m scripts.modules'"


def test_the_page_is_one_page() -> None:
    assert len(PAGE.read_text().splitlines()) <= 100


def test_a_module_without_a_docstring_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.modules.ROOT", tmp_path)
    (tmp_path / "silent.py").write_text("x = 1\n")
    with pytest.raises(ValueError, match=r"silent\.py has no docstring"):
        first_sentence(tmp_path / "silent.py")


def test_no_class_has_the_name_of_another() -> None:
    code = (path.read_text() for _, path in modules())
    named = Counter(name for text in code for name in re.findall(r"^class ([A-Z]\w*)", text, re.MULTILINE))
    assert [name for name, times in named.items() if times > 1] == []


def test_only_common_english() -> None:
    assert wording.found() == []


@pytest.mark.parametrize("words", ["drawn anew", "None where there is none.", "may have 12 bytes", "it is nobody's"])
def test_an_idiom_is_found(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text(f"fine\n{words}\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "README.md"], cwd=tmp_path, check=True)
    monkeypatch.setattr(wording, "ROOT", tmp_path)
    monkeypatch.setattr(wording, "PLACES", ("README.md",))
    assert [told.split(": ")[0] for told in wording.found()] == ["README.md:2"]


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    assert wording.first_words() == []


@pytest.mark.parametrize(
    "code",
    [
        '"""What is sent."""\n',
        'def f() -> None:\n    """`Whether` it is told."""\n',
        'class A:\n    a: int = 0\n    """Of the last one."""\n',
    ],
)
def test_a_docstring_that_begins_with_a_clause_is_found(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, left = tmp_path / "synapsed/done/a.py", tmp_path / "synapsed/left/a.py"
    for path in (done, left):
        path.parent.mkdir(parents=True)
        path.write_text(code)
    monkeypatch.setattr(wording, "ROOT", tmp_path)
    monkeypatch.setattr(wording, "modules", lambda: [("done", done), ("left", left)])
    monkeypatch.setattr(wording, "LEFT", {"synapsed/left": 1})
    assert [said.split(":")[0] for said in wording.first_words()] == ["synapsed/done/a.py"]


def test_only_rooms_that_are_there_are_left() -> None:
    assert [room for room in wording.LEFT if not (wording.ROOT / room).is_dir()] == []
