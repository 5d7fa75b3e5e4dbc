"""Every Python of ours runs our code: by one way to start it, whatever lies in the folder and stands in PYTHONPATH."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from scripts.folders import FOLDERS, modules
from synapsed import own_python
from synapsed.channels.launch_additions import LaunchContext, plan, with_companion
from synapsed.profiles.library import ProfileLibrary
from tests.support.shadows import Shadows

ROOT = Path(own_python.__file__).parents[1]
SOURCES = [path for _, path in modules()]
MAY_MAKE = re.compile(r"python|executable|-mb?[\"']")
"""A sign that stands in any text that makes such a command line: the others need not be parsed."""
PYTHON = re.compile(r"\bsys\.executable$|(^|[._])python$|^python3?$")


def _made_by_hand(tree: ast.AST) -> Iterator[ast.AST]:
    """Displays and calls in which a word is followed by a word that has Python run a module or a text, and displays
    that begin with an interpreter."""
    for node in ast.walk(tree):
        display = isinstance(node, ast.List | ast.Tuple)
        words = node.elts if display else node.args if isinstance(node, ast.Call) else []
        if display and len(words) > 1 and PYTHON.search(ast.unparse(words[0]).strip("'\"")):
            yield node
        if any(isinstance(word, ast.Constant) and word.value in ("-m", "-mb") for word in words):
            yield node


def test_no_command_line_of_a_python_is_made_elsewhere() -> None:
    texts = {path: path.read_text() for path in SOURCES if path.name != "own_python.py"}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"  # type: ignore[attr-defined]
        for path, text in texts.items()
        if MAY_MAKE.search(text)
        for node in _made_by_hand(ast.parse(text))
    ]
    assert not found, "synapsed.own_python makes these"


def test_what_would_be_found_is_found() -> None:
    texts = ["run([sys.executable, *words])", "run(['python3', 'x.py'])", "('-m', 'synapsed')", "run(a, '-m', b)"]
    texts += ["[self.python, '-c', x]", "[context.python, x]"]
    assert all(list(_made_by_hand(ast.parse(text))) and MAY_MAKE.search(text) for text in texts)
    assert not list(_made_by_hand(ast.parse("platform(sys.executable, x)")))


def test_no_unit_makes_one_either() -> None:
    for path in (path for folder in (ROOT / "packaging", FOLDERS["synapsed_fleet"]) for path in folder.rglob("*")):
        if path.suffix in (".service", ".plist"):
            text = path.read_text()
            assert "@PYTHON@" not in text
            assert "@SYNAPSED@" in text
            assert "-m" not in text.split()


def _words(value: object) -> Iterator[list[str]]:
    """Every list of words in a document, each with the word that its neighbour `command` is."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name == "args" and isinstance(item, list) and isinstance(value.get("command"), str):
                yield [value["command"], *item]
            else:
                yield from _words(item)
    elif isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            yield value
        for item in value:
            yield from _words(item)
    elif isinstance(value, str) and value.count(" ") > 1:
        yield value.split()


def _pythons(profile: str, folder: Path) -> Iterator[list[str]]:
    """The command lines of a Python in all that a launch of the profile is given."""
    built_in = ProfileLibrary.builtin().get(profile)
    context = LaunchContext(
        agent_id="a" * 32,
        agent_dir=folder,
        hooks_socket=folder / "hooks.sock",
        conversation="c",
        home=folder,
        port=1,
        python=sys.executable,
        companion=any(channel.companion for channel in built_in.channels.values()),
    )
    launch = plan(built_in, context, resume=False, instructions="be kind")
    argv, files = with_companion(context, launch, launch.argv[0])
    told: list[object] = [list(argv), list(launch.argv), *launch.env.values()]
    told += [json.loads(content) for path, content in {**launch.files, **files}.items() if path.suffix == ".json"]
    for word in launch.argv:  # codex: KEY=VALUE, where VALUE is TOML that JSON's readers know
        if "args=[" in word:
            told.append([sys.executable, *json.loads(word.partition("args=")[2])])
    for words in _words(told):
        if words[0].strip("'\"") == sys.executable:
            yield words


@pytest.mark.parametrize("profile", sorted(path.stem for path in (ROOT / "profiles").glob("*.toml")))
def test_every_python_of_a_profiles_launch_is_started_that_way(profile: str, tmp_path: Path) -> None:
    for words in _pythons(profile, tmp_path):
        good = own_python.command(words[4] if len(words) > 4 else "")[:4], own_python.alone()
        assert any(words[: len(one)] == one for one in good), words


def _runs(environ: dict[str, str], folder: Path, command: Sequence[str], given: bytes = b"") -> None:
    done = subprocess.run(
        command,
        env=environ,
        cwd=folder,
        input=given,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()


PROBED = json.dumps({"cols": 20, "rows": 3, "drawn": 0, "cpu_s": 30}).encode() + b"\nhello"
LINES = json.dumps({"cols": 20, "rows": 3, "shown": 2}).encode() + b"\nhihello"
OTHER_VERBS = (
    ("synapsed.cli", "version", "--json"),
    ("synapsed.cli", "profile", "show", "claude"),
    ("synapsed.cli", "profile", "check", str(ROOT / "profiles" / "dummy.toml")),
    ("synapsed.cli", "repair"),
    ("synapsed.cli", "fleet", "status"),
    ("synapsectl.__main__", "mcp"),
)
COMMANDS = (
    *(pytest.param(command, marks=pytest.mark.night, id=" ".join(command)) for command in OTHER_VERBS),
    ("synapsed.cli", "check-config", "--json"),
    ("synapsed.process.sandbox",),
    ("synapsed.screens.worker", "1"),
    ("synapsed.terminal.probe",),
    ("synapsed.terminal.scrollback_lines",),
)
GIVEN = {"synapsed.terminal.probe": PROBED, "synapsed.terminal.scrollback_lines": LINES, "synapsed.cli": b"{}"}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SYNAPSE", "XDG_", "PYTHON"))}
    return {**kept, "SYNAPSED_HOME": str(tmp_path / "home")}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_none_imports_what_lies_in_its_folder_or_in_pythonpath(
    command: tuple[str, ...], tmp_path: Path, environ: dict[str, str]
) -> None:
    shadows = Shadows(tmp_path / "folder")
    begun = own_python.command(*command)
    _runs({**environ, "PYTHONPATH": f":{shadows.folder}"}, shadows.folder, begun, GIVEN.get(command[0], b""))
    assert shadows.imported() == []


def test_the_shadows_are_seen(tmp_path: Path, environ: dict[str, str]) -> None:
    shadows = Shadows(tmp_path / "folder")
    subprocess.run([sys.executable, "-m", "synapsed"], env=environ, cwd=shadows.folder, check=False)
    assert shadows.imported()


def test_a_source_tree_runs_its_own_package(tmp_path: Path, environ: dict[str, str]) -> None:
    """Neither installed there nor linked from there."""
    (tmp_path / "synapsed").mkdir()
    (tmp_path / "synapsed" / "__init__.py").touch()
    (tmp_path / "synapsed" / "own_python.py").write_text(Path(own_python.FILE).read_text())
    (tmp_path / "synapsed" / "it.py").write_text("def main(): return __file__\n")
    begun = [sys.executable, "-P", "-E", "-S", str(tmp_path / "synapsed" / "own_python.py"), "synapsed.it"]
    done = subprocess.run(begun, env=environ, cwd="/", capture_output=True, text=True, check=False)
    assert done.stderr.strip() == str(tmp_path / "synapsed" / "it.py")
