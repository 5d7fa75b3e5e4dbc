"""Mutants: what is drawn, where nothing is, and how the lines that a run executes are told."""

import ast
import contextlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mutants import lines
from tests.mutants.draw import Mutant, applied, draw, mutants
from tests.mutants.judge import TIME_LIMIT, Ran, Stage, Tree, stages, table
from tests.runs.reach import ROOT, Reach

BARRED = '''
"""A docstring: 1 + 2."""
import structlog
__all__ = ["a" if True else "b"]
log = structlog.get_logger()
Short = Literal[1, True]
if TYPE_CHECKING:
    MAX = 1

@dataclass(frozen=True)
class Spot:
    """A docstring: 1 < 2."""
    __slots__ = ("x",) * 2
    place: Annotated[int, 5]

    def tell(self, n: Annotated[int, 1 + 2], *more: "1 < 2") -> Literal[3]:
        """A docstring: return 1."""
        log.info("it is", of=n + 1)
        self.log.warning("it is", of=n < 1)
        f(help=n + 1)(f"{n + 1}", n=cast(Literal[1], n))
'''
MUTANT = Mutant("synapsed/a/b.py", 3, 1, "call", "f()", "pass")
CALL = 'f(help=n + 1)(f"{n + 1}", n=cast(Literal[1], n))'


def drawn(text: str) -> list[tuple[str, str, str]]:
    return [(one.kind, one.before, one.after) for one in mutants("a.py", text)]


@pytest.mark.parametrize(
    ("text", "kind", "after"),
    [
        ("f = a < b", "comparison", "f = (a <= b)"),
        ("f = a is not b", "comparison", "f = (a is b)"),
        ("f = a not in b < c", "comparison", "f = (a in b < c)"),
        ("f = é + b", "arithmetic", "f = (é - b)"),
        ("f = é, a % b", "arithmetic", "f = é, (a * b)"),
        ("f = a and b", "and/or", "f = (a or b)"),
        ("if a:\n    b = c", "condition", "if (not (a)):\n    b = c"),
        ("f = a if b() else c", "condition", "f = a if (not (b())) else c"),
        ("f = [a for a in b if a]", "condition", "f = [a for a in b if (not (a))]"),
        ("f = 41", "constant", "f = 42"),
        ("f = True", "constant", "f = False"),
        ("def f():\n    return (\n        a\n    )", "return", "def f():\n    return None"),
        ("async def f():\n    a = await b", "await", "async def f():\n    a = (b)"),
        ("f(\n)\ng = 'é'", "call", "pass\ng = 'é'"),
    ],
)
def test_a_mutant_is_what_its_kind_says(text: str, kind: str, after: str) -> None:
    assert [applied(text, one) for one in mutants("a.py", text) if one.kind == kind] == [after]


def test_an_awaited_call_loses_its_await_or_itself() -> None:
    found = drawn("async def f():\n    await g()")
    assert found == [("call", "await g()", "pass"), ("await", "await g()", "(g())")]


def test_nothing_is_drawn_in_what_no_test_is_to_see() -> None:
    assert drawn(BARRED) == [("call", CALL, "pass")]


@pytest.mark.parametrize(
    "text",
    ["def f():\n    return None", "def f():\n    return 'a' + b", "while a:\n    b = c", "if a == b:\n    c = d"],
)
def test_a_mutant_that_tells_nothing_is_left_out(text: str) -> None:
    assert {kind for kind, _, _ in drawn(text)} <= {"return", "comparison"}
    assert ("return", "return None", "return None") not in drawn(text)


def texts() -> dict[str, str]:
    folders = ("parts/moods", "parts/schedules", "tasks")
    return {f"synapsed/{a}/{p.name}": p.read_text() for a in folders for p in (ROOT / "synapsed" / a).glob("*.py")}


def test_a_draw_is_the_same_for_everybody() -> None:
    found = texts()
    covered = {name: range(1, text.count("\n") + 1) for name, text in found.items()}
    first = draw(found, covered, seed=1, count=8)
    assert first == draw(dict(reversed(found.items())), covered, seed=1, count=8)
    assert first != draw(found, covered, seed=2, count=8)
    assert len(first) == 8
    assert max(Counter(one.file for one in first).values()) <= 2
    for one in first:
        ast.parse(applied(found[one.file], one))


def test_a_draw_is_among_the_lines_that_are_covered() -> None:
    text = "\n".join(f"a{n} = b + {n}" for n in range(40))
    covered = {"synapsed/a/one.py": [7], "synapsed/a/two.py": [2, 3, 4], "synapsed/b/one.py": [], "synapsed/c.py": [9]}
    found = draw(dict.fromkeys(covered, text), covered, seed=1, count=60)
    assert [(one.file, one.line) for one in found][:1] == [("synapsed/a/one.py", 7)]
    assert [one.file for one in found] == ["synapsed/a/one.py", *["synapsed/a/two.py"] * 2, "synapsed/c.py"]


def test_a_text_that_has_changed_is_refused() -> None:
    one = next(mutants("a.py", "f = a < b"))
    with pytest.raises(ValueError, match=r"a\.py is not what it was drawn from"):
        applied("f = b < a", one)


def test_lines_are_told_of_functions_and_after_an_end_by_force(tmp_path: Path) -> None:
    package = tmp_path / "synapsed"
    package.mkdir()
    (package / "__init__.py").write_text("import os\n\n\ndef f():\n    os.kill(os.getpid(), 9)\n    g()\n")
    environ = lines.environ(tmp_path / "lines", tmp_path)
    command = [sys.executable, "-c", "import synapsed; synapsed.f()"]
    environ = {k: v for k, v in (os.environ | environ).items() if k in ("PATH", "PYTHONPATH", lines.FOLDER)}
    subprocess.run(command, cwd=tmp_path, env=environ, check=False)
    assert lines.executed(tmp_path / "lines", tmp_path) == {"synapsed/__init__.py": [5]}


def test_a_test_is_told_with_the_wanted_lines_that_it_executes(tmp_path: Path) -> None:
    (tmp_path / "synapsed").mkdir()
    (tmp_path / "synapsed" / "__init__.py").write_text("def f(n):\n    if n:\n        return 1\n    return 2\n")
    for name, body in {"one": "f(0) == 2", "two": "f(1) == 1", "three": "True"}.items():
        (tmp_path / f"test_{name}.py").write_text(f"from synapsed import f\n\ndef test_it():\n    assert {body}\n")
    environ = lines.environ(tmp_path / "lines", tmp_path, {"synapsed/__init__.py": [2, 3]})
    environ |= {"PYTHONPATH": f"{environ['PYTHONPATH']}:{tmp_path}:{ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *lines.PLUGIN]
    subprocess.run(command, cwd=tmp_path, env=os.environ | environ, check=True, stdout=subprocess.DEVNULL)
    spots, seconds = lines.executed_by(tmp_path / "lines")
    assert spots == {
        "synapsed/__init__.py:2": ["test_one.py", "test_two.py"],
        "synapsed/__init__.py:3": ["test_two.py"],
    }
    assert seconds.keys() == {"test_one.py", "test_two.py", "test_three.py"}


def test_a_mutant_is_judged_by_the_tests_that_execute_it_those_of_its_room_first() -> None:
    reach, tests = Reach(), ["tests/daemon/test_moods.py", "tests/parts/moods/test_scorer.py"]
    room, others, night, later = stages("synapsed/parts/moods/scorer.py", tests, reach)
    assert (room.paths, others.paths) == (("tests/parts/moods/test_scorer.py",), ("tests/daemon/test_moods.py",))
    assert (night.paths, later.paths) == (room.paths, others.paths)
    assert ["night" in one.marks for one in (room, others, night, later)] == [True, True, False, False]
    assert [one.verdict for one in (room, others, night, later)] == ["new", "new, by others", "old only", "old only"]
    tests = ["tests/daemon/test_daemon.py", "tests/terminal/test_sandbox.py"]
    assert stages("synapsed/process/sandbox.py", tests, reach)[0].paths == ("tests/terminal/test_sandbox.py",)
    assert stages("synapsectl/client.py", ["tests/synapsectl/test_top.py"], reach)[0].verdict == "new"
    assert stages("synapsed/supervisor/upkeep.py", [], reach) == []


class Scripted(Tree):
    """Runs nothing: `with_it` and `without` say how each run ends, and which tests have failed."""

    def __init__(self, with_it: list[tuple[int | None, list[str]]], without: list[int | None]) -> None:
        self._with_it, self._without, self._in_it = iter(with_it), iter(without), False

    @contextlib.contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        self._in_it = True
        yield
        self._in_it = False

    def run(self, *arguments: object, **more: object) -> Ran:
        code, failed = next(self._with_it) if self._in_it else (next(self._without), [])
        return Ran(code, failed, 1.0)


@pytest.mark.parametrize(
    ("with_it", "without", "killer"),
    [
        ([(0, [])], [], None),
        ([(5, [])], [], None),  # none of them is of the gate
        ([(1, ["a"]), (1, ["a"])], [0], "a"),
        ([(1, ["a"]), (1, ["a"]), (0, [])], [1], None),  # it fails as well without the mutant
        ([(1, ["a"]), (0, []), (1, ["b"]), (1, ["b"])], [0], "b"),
        ([(1, ["a"]), (None, [])], [0], "a"),
        ([(None, [])], [0], TIME_LIMIT),
        ([(None, [])], [1], TIME_LIMIT),
        ([(3, [])], [], "pytest ended with 3"),
    ],
)
def test_what_kills_a_mutant(
    with_it: list[tuple[int | None, list[str]]], without: list[int | None], killer: str | None
) -> None:
    found = Scripted(with_it, without).killer(Stage("new", ("tests/a",), "", "gate"), MUTANT, 600.0)
    assert found == killer


def test_a_busy_machine_kills_no_mutant() -> None:
    with pytest.raises(SystemExit, match="300 s are too few without any mutant: tests/a"):
        Scripted([(None, [])], [None]).killer(Stage("new", ("tests/a",), "", "gate"), MUTANT, 600.0)


def test_the_table_names_what_lives() -> None:
    fields = {"line": 3, "column": 1, "kind": "call", "before": "f()", "after": "pass", "test": None, "executed": True}
    results = [{"file": "synapsed/a/b.py", "killed_by": one} | fields for one in ("new", "none", "none")]
    rows = table(results)
    assert rows[2:4] == ["| synapsed/a | 1 | 0 | 0 | 2 |", "| all | 1 | 0 | 0 | 2 |"]
    assert rows[4:] == [f"none: {MUTANT}"] * 2
