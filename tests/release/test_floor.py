"""A Python that is too old: every way to synapsed says so in one sentence, and says the same."""

import ast
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "scripts/backend/synapsed_build.py"
FLOOR = "3.13"


def test_there_is_one_floor() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["requires-python"] == f">={FLOOR}"
    assert project["build-system"]["requires"] == [], (
        "what is installed first would refuse an old Python in its own words"
    )
    five_minutes = (ROOT / "README.md").read_text().partition("## Five minutes")[2].partition("```")[0]
    assert f"{FLOOR} or newer" in five_minutes
    assert f"{FLOOR} or newer" in (ROOT / "scripts/setup").read_text()
    for path in ("synapsed/__init__.py", "docs/trouble.md"):
        assert f"synapsed needs Python {FLOOR} or newer" in (ROOT / path).read_text()


@pytest.mark.parametrize("version", [(3, 12), (3, 7), (2, 7)])
def test_the_build_ends_with_a_sentence_before_anything_is_installed(version: tuple[int, int]) -> None:
    backend = loaded()
    with pytest.raises(SystemExit) as ended:
        backend.check(version)
    assert re.fullmatch(rf"synapsed needs Python {FLOOR} or newer, and this is Python [\d.]+: .*", str(ended.value))
    backend.check((3, 13))
    backend.check((3, 14))


def test_every_build_looks_at_the_python_first_and_then_wants_hatchling() -> None:
    backend = loaded()
    asks = [name for name in vars(backend) if name.startswith("get_requires_for_build_")]
    assert len(asks) == 3
    assert all(getattr(backend, name)()[0].startswith("hatchling") for name in asks)


@pytest.mark.parametrize("path", [BACKEND, *(ROOT / "synapsed").glob("__*.py"), *(ROOT / "synapsectl").glob("__*.py")])
def test_an_older_python_can_read_what_says_so(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 7))


def loaded():
    spec = importlib.util.spec_from_file_location("synapsed_build", BACKEND)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
