"""A section that a file of its own completes."""

from pathlib import Path
from typing import Any

import pytest

from synapsed.config.config import ConfigKey, Section, SectionFile
from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError
from synapsed.kernel import Face
from synapsed.parts.config import config_with


class Inner(Section):
    one: int = 1
    two: int = 2


class Outer(Section):
    name: str = ""
    words: tuple[str, ...] = ()
    inner: Inner = Inner()


def lacking(section: Any, file: Path) -> str | None:
    return None if section.name else f"greetings.name is missing: {file.name} has it"


FILE = SectionFile("greetings.toml", Outer, lacking)
MODEL = config_with(
    [Face(name="greetings", opens="", sections={"greetings": ConfigKey(Outer | None, None, restart=True, file=FILE)})]
)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    found = Paths.from_environ({"SYNAPSED_HOME": str(tmp_path), "HOME": str(tmp_path)})
    found.config.mkdir(parents=True)
    return found


def loaded(paths: Paths, *, written: str | None = None, config: str = "") -> Any:
    paths.config_file.write_text(config)
    if written is not None:
        (paths.config / "greetings.toml").write_text(written)
    found: Any = load_config(paths, MODEL)
    return found.greetings


def test_neither_file_has_it(paths: Paths) -> None:
    assert loaded(paths) is None


def test_config_toml_wins_key_by_key(paths: Paths) -> None:
    written = 'name = "a"\nwords = ["x"]\n[inner]\none = 3\n'
    assert loaded(paths, written=written) == Outer(name="a", words=("x",), inner=Inner(one=3))
    config = "[greetings]\nwords = []\n[greetings.inner]\ntwo = 4\n"
    assert loaded(paths, config=config) == Outer(name="a", words=(), inner=Inner(one=3, two=4))


@pytest.mark.parametrize(
    ("config", "written", "told"),
    [
        ("[greetings]\n", None, r"config\.toml: greetings\.name is missing: greetings\.toml has it$"),
        ("", "\nnam = 1\n", r"greetings\.toml:2: unknown key 'nam'; did you mean 'name'"),
        ("", "name = \n", r"greetings\.toml:1"),
    ],
)
def test_what_is_wrong_is_told_by_file_and_line(paths: Paths, config: str, written: str | None, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        loaded(paths, config=config, written=written)
