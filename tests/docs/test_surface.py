"""The committed `surface/` is the product's outside, wherever it is made; what is changed there is noticed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.surface import differences
from scripts.surface.verbs import synapsectl
from synapsectl.verbs import all_verbs

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"COLUMNS": "40", "LANG": "ja_JP.EUC-JP", "LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}


def checked(root: Path, home: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """`--check` at `root`, in a shell that has nothing of this one."""
    return subprocess.run(
        [sys.executable, "-m", "scripts.surface", "--check", *files],
        cwd=root,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONIOENCODING": "utf-8", **ELSEWHERE},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.slow
def test_it_is_what_the_product_shows(tmp_path: Path) -> None:
    told = checked(ROOT, tmp_path)
    assert told.returncode == 0, f"run 'make surface':\n{told.stdout}{told.stderr}"


@pytest.mark.slow
def test_an_option_that_was_added_is_noticed(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for name in ("scripts", "synapsectl", "surface"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("synapsed", "profiles", "packaging", "examples"):
        (copy / name).symlink_to(ROOT / name)
    verb = copy / "synapsectl" / "commands" / "reload.py"
    before = "def configure(parser: argparse.ArgumentParser) -> None:\n"
    text = verb.read_text()
    assert before in text
    verb.write_text(text.replace(before, f'{before}    parser.add_argument("--planted", help="grown here")\n'))

    told = checked(copy, tmp_path, "synapsectl.txt")

    assert told.returncode == 1
    assert told.stdout.splitlines()[3:] == ['+synapsectl reload option --planted: {"help": "grown here"}']
    assert "'make surface'" in told.stderr


def test_a_schema_whose_names_have_a_pattern_takes_no_others() -> None:
    """OpenAPI lets all other names pass, and the daemon refuses them."""
    lines = (ROOT / "surface" / "openapi.txt").read_text().splitlines()
    named = [line for line in lines if '"patternProperties"' in line]
    assert named
    assert [line for line in named if '"additionalProperties": false' not in line] == []


def test_what_is_removed_takes_its_own_lines_along(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = set(synapsectl())
    monkeypatch.delitem(all_verbs(), "schedule")
    assert {line for line in whole if not line.startswith("synapsectl schedule")} == set(synapsectl())


def test_a_file_that_is_made_no_more_is_told() -> None:
    assert differences({"a.txt": "one\n"}, {"b.txt": "two\n"}) == [
        "--- surface/a.txt\tas committed",
        "+++ surface/a.txt\tas it is",
        "@@ -1 +0,0 @@",
        "-one",
        "--- surface/b.txt\tas committed",
        "+++ surface/b.txt\tas it is",
        "@@ -0,0 +1 @@",
        "+two",
    ]
