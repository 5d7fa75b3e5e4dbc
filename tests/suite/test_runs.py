"""What runs where: no test function runs nowhere, and what no import shows is written down."""

import ast
import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.runs import costs, night, pythons
from tests.runs.costs import Cost
from tests.runs.gate import rooms
from tests.runs.reach import FILES, LATENT, ROOT, Reach, tracked
from tests.runs.table import FAST, GATE_MARKS, OWN_COMMAND, SECTIONS, Section, gate_paths, section


@pytest.fixture(scope="module")
def reach() -> Reach:
    return Reach()


# --- what runs where ---


def test_every_python_gets_what_make_test_runs() -> None:
    seen = {path.removeprefix("tests/") for path in gate_paths(rooms(), around=False)}
    assert seen <= set(section("pythons").runs_too)


def test_an_environment_of_a_python_is_made_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pythons, "cache_root", lambda: tmp_path)
    (left := tmp_path / "pythons" / "3.12" / "left").mkdir(parents=True)
    ran: list[list[str]] = []

    def run(step: list[str], **_: object) -> SimpleNamespace:
        assert not left.exists()
        ran.append(step)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(pythons.subprocess, "run", run)
    assert pythons._passes("3.12", "/usr/bin/python3.12")
    assert [step[1:] for step in ran[1:]] == [["examples/demo.py"], ["-m", "tests.runs.gate"]]


def marks_of(nodes: list[ast.expr]) -> set[str]:
    """The names behind `pytest.mark.`; those of single cases (`pytest.param`) say nothing of the function."""
    found = set[str]()
    for node in nodes:
        target = node.func if isinstance(node, ast.Call) else node
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "pytest.mark":
            found.add(target.attr)
    return found


@cache
def functions() -> list[tuple[str, set[str]]]:
    """Returns every test function, as `path::name`, with its marks and those of its module."""
    return list(_functions())


def _functions() -> Iterator[tuple[str, set[str]]]:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        module = set[str]()
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
                module = marks_of(node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value])
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield f"{path.relative_to(ROOT)}::{node.name}", module | marks_of(node.decorator_list)


def takes(expression: str, marks: set[str]) -> bool:
    return bool(eval(expression, {}, defaultdict(bool, dict.fromkeys(marks, True))))  # as pytest reads -m


def runs_at_night(test: str, marks: set[str]) -> list[str]:
    return [one.name for one in SECTIONS if one.paths and test.startswith(one.paths) and takes(one.marks, marks)]


def test_no_test_function_runs_nowhere() -> None:
    nowhere = [
        test
        for test, marks in functions()
        if not takes(GATE_MARKS, marks) and not runs_at_night(test, marks) and marks.isdisjoint(OWN_COMMAND)
    ]
    assert nowhere == []


def test_the_gate_repeats_at_night() -> None:
    """Each function of the gate runs at night too, with every case and every drawn example."""
    assert [test for test, marks in functions() if takes(GATE_MARKS, marks) and not runs_at_night(test, marks)] == []


def test_every_room_is_in_one_section() -> None:
    at = {room: [one.name for one in SECTIONS if room in one.rooms] for room in rooms()}
    assert {room: names for room, names in at.items() if len(names) != 1} == {}
    assert set(FAST) <= set(rooms())


def test_the_documents_have_the_table() -> None:
    text = (ROOT / "docs" / "development.md").read_text()
    assert [one.name for one in SECTIONS if f"| `{one.name}` |" not in text] == []


# --- what can be reached ---


def test_every_file_has_its_readers(reach: Reach) -> None:
    for file in tracked():
        reach.readers(file)
    assert [room for room in LATENT if room not in reach.modules] == []
    used = {pattern for pattern in FILES if any(Path(file).match(pattern) or file == pattern for file in tracked())}
    assert {pattern for pattern in FILES if "*" not in pattern} <= used


def test_a_file_of_a_new_kind_has_to_be_told(reach: Reach) -> None:
    with pytest.raises(KeyError, match=r"new/kind\.bin: tests/runs/reach\.py"):
        reach.readers("new/kind.bin")


@pytest.mark.parametrize(
    ("file", "seen", "unseen"),
    [
        ("synapsed/parts/moods/__init__.py", "tests/daemon/test_moods.py", "tests/daemon/test_menus.py"),
        ("synapsed/supervisor/manager.py", "tests/daemon/test_menus.py", "tests/keeper/test_spool.py"),
        ("synapsed/parts/worktrees/ctl/worktree.py", "tests/synapsectl/test_manual.py", "tests/store/test_tasks.py"),
        ("profiles/claude.toml", "tests/golden/test_golden.py", "tests/keeper/test_spool.py"),
        ("synapsed/parts/web/static/app.css", "tests/web/test_files.py", "tests/terminal/test_answer.py"),
        ("synapsed/parts/web/static/app.css", "tests/web/test_files.py", "tests/daemon/test_menus.py"),
        ("synapsed/terminal/probe.py", "tests/terminal/test_sandbox.py", "tests/parts/schedules/test_cron.py"),
        ("tests/conftest.py", "tests/parts/schedules/test_cron.py", ""),
    ],
)
def test_a_change_reaches_its_tests(reach: Reach, file: str, seen: str, unseen: str) -> None:
    assert {file, seen} <= set(tracked()), "the example is there"
    found = reach.tests_of([file])
    assert seen in found
    assert unseen not in found


def test_a_fingerprint_changes_with_what_can_be_reached(reach: Reach, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: reach.fingerprint(section(name).paths) for name in ("browser", "service")}
    read = Path.read_bytes

    def planted(path: Path) -> bytes:
        return read(path) + (b"\n" if path.name == "test_files.py" else b"")

    monkeypatch.setattr(Path, "read_bytes", planted)
    after = {name: reach.fingerprint(section(name).paths) for name in before}
    assert (after["browser"] != before["browser"], after["service"] == before["service"]) == (True, True)


# --- the night's records ---


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> night.Record:
    """One that was written by a run of a section whose only test passes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    one = Section(
        name="soak",
        about="",
        command=("pytest", "-q", "-p", "no:cacheprovider", str(tmp_path), "--maxfail", "{MINUTES}"),
    )
    night.run(dataclasses.replace(one, options={"MINUTES": 20}), {"MINUTES": 20}, "f" * 64)
    return night.records()[0]


def test_a_result_counts_where_all_that_it_reaches_is_the_same(record: night.Record) -> None:
    soak = section("soak")
    assert (record.passed, record.told.startswith("1 passed")) == (True, True)
    assert record.counts(soak, "f" * 64)
    assert not record.counts(soak, "e" * 64)
    assert not record.counts(section("faults"), "f" * 64)
    assert dataclasses.replace(record, options={"MINUTES": 60}).counts(soak, "f" * 64)
    assert not dataclasses.replace(record, options={"MINUTES": 5}).counts(soak, "f" * 64)
    assert not dataclasses.replace(record, passed=False).counts(soak, "f" * 64)


def test_the_table_has_every_section(record: night.Record) -> None:
    rows = night.table({one.name: "f" * 64 for one in SECTIONS}, [record, dataclasses.replace(record, passed=False)])
    assert len(rows) == 2 + len(SECTIONS)
    assert "| soak MINUTES=20 | yes | 1 passed" in "\n".join(rows)
    assert "| faults | no | never run here |" in "\n".join(rows)


def test_options_that_a_section_does_not_have_are_refused() -> None:
    assert night.settings(section("fleet"), {"KILLS": 100}) == {"KILLS": 100, "MESSAGES": 10_000}
    with pytest.raises(SystemExit, match="soak has no KILLS: it takes MINUTES"):
        night.settings(section("soak"), {"KILLS": 1})


# --- costs ---


def test_a_function_that_takes_too_much_fails_the_gate(tmp_path: Path) -> None:
    told = {f"tests/a/test_a.py::test_{n}": [1.0, 2.0] for n in range(40)}
    told |= {f"tests/b/test_b.py::test_dear[{n}]": [0.1, 0.1] for n in range(20)}
    (tmp_path / "costs.json").write_text(json.dumps(told))
    assert costs.tell([tmp_path / "costs.json"]) == ["tests/b/test_b.py::test_dear"]
    found = costs.by_function(told)
    assert costs.by_room(found)["b"] == Cost(20, pytest.approx(2.0), pytest.approx(2.0))
    assert costs.too_dear(found, {"tests/b/test_b.py::test_dear": "a reason"}) == []


def test_few_functions_may_be_dear() -> None:
    assert len(costs.ALLOWED) <= 10
    names = {test for test, _ in functions()}
    assert [name for name in costs.ALLOWED if name not in names] == []
