"""A Python that is too old: every way to synapsed says so in one sentence, and says the same."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.runs.pythons import PYTHONS, chosen

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "scripts/backend/synapsed_build.py"
FLOOR = "3.12"


def test_there_is_one_floor() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    fleet = tomllib.loads((ROOT / "packages/synapsed-fleet/pyproject.toml").read_text())
    for told in (project["project"], fleet["project"]):
        assert told["requires-python"] == f">={FLOOR}"
        assert [one.rpartition(" ")[2] for one in told["classifiers"] if " Python :: " in one] == list(PYTHONS)
    tools = project["tool"]
    assert (tools["mypy"]["python_version"], tools["ruff"]["target-version"]) == (FLOOR, f"py{FLOOR.replace('.', '')}")
    assert f"--python-version {FLOOR} " in (ROOT / "Makefile").read_text()
    assert project["build-system"]["requires"] == [], (
        "what is installed first would refuse an old Python in its own words"
    )
    five_minutes = (ROOT / "README.md").read_text().partition("## Five minutes")[2].partition("```")[0]
    assert f"{FLOOR} or newer" in five_minutes
    assert f"{FLOOR} or newer" in (ROOT / "scripts/setup").read_text()
    assert f"a Python of {FLOOR} or newer" in (ROOT / "docs/upgrading.md").read_text()
    for path in ("synapsed/__init__.py", "docs/trouble.md"):
        assert f"synapsed needs Python {FLOOR} or newer" in (ROOT / path).read_text()


@pytest.mark.parametrize("version", [(3, 11), (3, 7), (2, 7)])
def test_the_build_ends_with_a_sentence_before_anything_is_installed(version: tuple[int, int]) -> None:
    backend = loaded()
    with pytest.raises(SystemExit) as ended:
        backend.check(version)
    assert re.fullmatch(rf"synapsed needs Python {FLOOR} or newer, and this is Python [\d.]+: .*", str(ended.value))
    backend.check((3, 12))
    backend.check((3, 14))


def test_every_build_looks_at_the_python_first_and_then_wants_hatchling() -> None:
    backend = loaded()
    asks = [name for name in vars(backend) if name.startswith("get_requires_for_build_")]
    assert len(asks) == 3
    assert all(getattr(backend, name)()[0].startswith("hatchling") for name in asks)


@pytest.mark.parametrize("path", [BACKEND, *(ROOT / "synapsed").glob("__*.py"), *(ROOT / "synapsectl").glob("__*.py")])
def test_an_older_python_can_read_what_says_so(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 7))


def test_the_gates_own_version_is_taken_before_others(tmp_path: Path) -> None:
    for name in ("python3.12", "python3.13", "python3.14"):
        (tmp_path / name).symlink_to(sys.executable)
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    told = subprocess.check_output([ROOT / "scripts/setup", "--list"], env=environ, text=True).splitlines()
    here = [name for name in told if name.startswith(str(tmp_path))]
    assert here == [str(tmp_path / name) for name in ("python3.13", "python3.14", "python3.12")]


def test_setup_with_old_pythons_only_ends_with_a_sentence(tmp_path: Path) -> None:
    """Each of them says so itself: `suitable` asks by a program on its standard input."""
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("python", "python3", "python3.11", "python3.12", "python3.13"):
        (path / name).write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.11.9\nexit 1\n')
        (path / name).chmod(0o755)
    for tool in ("bash", "env", "dirname", "awk", "find", "sort", "id", "make", "sh", "cat"):
        (path / tool).symlink_to(str(shutil.which(tool)))
    environ = {"PATH": str(path), "HOME": str(tmp_path), "PYENV_ROOT": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    made = tmp_path / "venv"
    script = (ROOT / "scripts/setup").read_text().replace('$(eval echo "~$(id -un)")', str(tmp_path))
    script = script.replace("/opt/homebrew/bin", str(tmp_path)).replace("/usr/local/bin", str(tmp_path))
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/setup").write_text(script)
    done = subprocess.run(
        [path / "bash", tmp_path / "scripts/setup", made], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.startswith(f"setup: synapsed needs CPython {FLOOR} or newer, and none was found")
    assert len(done.stderr.splitlines()) == 1
    assert not made.exists()


def test_each_version_is_tried_with_the_first_that_will_do() -> None:
    short, whole = "{}.{}".format(*sys.version_info), "{}.{}.{}".format(*sys.version_info)
    assert chosen([sys.executable, sys.executable]) == {short: (whole, sys.executable)}


def loaded():
    spec = importlib.util.spec_from_file_location("synapsed_build", BACKEND)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _hidden(tree: ast.AST) -> list[str]:
    """The names in annotations of fields that a field of the same class hides by its default."""
    return [
        f"{one.name}.{name.id}"
        for one in ast.walk(tree)
        if isinstance(one, ast.ClassDef)
        for fields in [[field for field in one.body if isinstance(field, ast.AnnAssign)]]
        for field in fields
        for name in ast.walk(field.annotation)
        if isinstance(name, ast.Name) and name.id in {ast.unparse(each.target) for each in fields if each.value}
    ]


def test_no_field_hides_a_type_of_its_class() -> None:
    """Python 3.14 reads annotations when the class is done: there a field `list = None` is what `list[str]` means."""
    assert _hidden(ast.parse("class A:\n  a: list[str] = []\n  list: str = ''")) == ["A.list"]
    for folder in ("synapsed", "synapsectl", "packages"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not _hidden(ast.parse(path.read_text())), path
