"""A part of another distribution: the example of docs/parts.md, built, installed, and at work in a daemon."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from synapsectl.checkup.finding import Finding
from synapsectl.checkup.surroundings import _of_part
from synapsectl.context import CommandContext
from synapsectl.dispatch import _check_parts
from synapsectl.parsing import parse
from synapsectl.service.settings import ServiceSettings
from synapsectl.verbs import all_verbs
from synapsed import __version__
from synapsed.config.config import ApiConfig
from synapsed.kernel import Face
from synapsed.parts import loading, outside
from tests.support.daemon import ANY_PORTS, Daemon, eventually

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "parts.md"

VERBS = '''"""Its verbs."""

from synapsectl.verbs import Verb

VERBS = {"greet": Verb("greet", "greet an agent", "what they do", after="diff")}
'''
GREET = '''"""`synapsectl greet`."""

EXAMPLES = (("synapsectl greet", "greets"),)


def configure(parser):
    pass


def run(args, ctx):
    ctx.out.line("hello")
    return 0
'''


def example(kind: str, indent: str = "") -> list[str]:
    """The blocks of the page in one language."""
    found = re.findall(rf"^{indent}```{kind}\n(.*?)^{indent}```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for block in found]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example, and with a part that takes a name which is not its own."""
    folder = tmp_path_factory.mktemp("outside")
    face, following = example("python", "   ")
    (project,) = example("toml")
    source = folder / "source"
    files = {
        "pyproject.toml": project,
        "synapsed_greetings/__init__.py": "",
        "synapsed_greetings/face.py": face.replace("synapsed.parts.greetings", "synapsed_greetings"),
        "synapsed_greetings/following.py": following,
        "synapsed_greetings/ctl/__init__.py": "",
        "synapsed_greetings/ctl/verbs.py": VERBS,
        "synapsed_greetings/ctl/greet.py": GREET,
    }
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=source, check=True)
    (wheel,) = (source / "dist").glob("*.whl")
    into = folder / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", into]
    subprocess.run([*pip, wheel], check=True)
    broken = into / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[synapsed.parts]\nbroken = synapsed_greetings\nhooks = acme_hooks\n")
    return into


@pytest.fixture
def daemon(installed: Path, tmp_path: Path) -> Iterator[Daemon]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)])}
    daemon = Daemon(tmp_path, environ, config=f'{ANY_PORTS}[greetings]\nwords = "good morning"\n', source=ROOT)
    daemon.start()
    yield daemon
    assert daemon.end() == 0


@pytest.mark.slow
def test_a_part_that_is_installed_as_a_package_is_at_work(daemon: Daemon) -> None:
    daemon.start_agent()
    eventually(lambda: "good morning" in daemon.ctl("events", "--after", "0", "--json").out, "it greets the agent")
    clash, alert = [one for one in daemon.get("/control/status").json["alerts"] if "part" in one]
    assert "the part acme_hooks is left out: its part has the name of one of synapsed's own, 'hooks'" in clash
    assert "the part broken is left out: ValueError: its face is called 'greetings'" in alert
    assert "ValueError: its face is called 'greetings'" in daemon.log()
    _, left_out = checked(daemon)["missing"]
    assert "the part broken is left out: ValueError: its face is called 'greetings'" in left_out
    assert daemon.ctl("greet").out == "hello\n"
    assert "greet       greet an agent" in daemon.ctl("--help").out
    daemon.config_file.write_text(f'{ANY_PORTS}[greetings]\nwords = ["no text"]\n')
    assert "greetings.words" in daemon.ctl("reload").err


def checked(daemon: Daemon) -> dict[str, Any]:
    """What 'check-config' says, from which `doctor` has it: it is all that stands on stdout."""
    command = [sys.executable, "-m", "synapsed", "check-config", "--json"]
    done = subprocess.run(command, cwd=ROOT, env=daemon.env, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_checks_of_another_distribution_that_fail_are_a_finding() -> None:
    def found(package: str) -> list[Finding]:
        return list(_of_part(package, cast("CommandContext", None), cast("ServiceSettings", None)))

    (finding,) = found("synapsed_greetings.ctl")
    assert finding.detail.startswith("synapsed_greetings.ctl.checks fails: ModuleNotFoundError")
    with pytest.raises(ModuleNotFoundError):
        found("synapsed.parts.greetings.ctl")


def test_an_entry_point_is_read_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two with one name the first on the path counts, and no one takes a name that is here already."""
    texts = {
        "first/one-1.0.dist-info": "[scripts]\nx = y:z\n\n[synapsed.parts]\n# none\n; nor this\nb=two \n a = one\n",
        "second/two-1.0.egg-info": "[synapsed.parts]\na = another\nrules = another\n[other]\nc = three\n",
        "second/three-1.0.dist-info": "[other]\nsynapsed.parts = four\n",
    }
    for name, text in texts.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "entry_points.txt").write_text(text)
    (tmp_path / "second" / "none-1.0.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / name) for name in ("first", "gone", "second")])
    monkeypatch.setattr(outside, "_found", outside._found.__wrapped__)
    assert list(outside.packages.__wrapped__().items()) == [("a", "one"), ("b", "two")]
    assert outside.clashing.__wrapped__() == {
        "another": "its part has the name of one of synapsed's own, 'rules': its entry point needs another name"
    }


@pytest.mark.parametrize(
    ("requires", "pinned"),
    [
        ("synapsed==0.0.9", "0.0.9"),
        ("synapsed[mcp] (==0.0.9)", "0.0.9"),
        (f"synapsed=={__version__}", None),
        ("synapsed>=0.0.9", None),
        ("synapsed==0.*", None),
        ("synapsed==0.0.9; extra == 'all'", None),
        ("synapsed-others==0.0.9", None),
    ],
)
def test_one_that_is_pinned_to_another_version_is_left_out(
    requires: str, pinned: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described(tmp_path, requires)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(outside, "_found", outside._found.__wrapped__)
    assert outside.packages.__wrapped__() == ({"fleet": "synapsed_fleet"} if pinned is None else {})
    why = {"fleet": f"is for synapsed {pinned}, and this is {__version__}"}
    assert outside.unfit.__wrapped__() == (why if pinned else {})


def described(folder: Path, requires: str) -> None:
    """Writes down a fleet that is installed there, but for its modules."""
    about = folder / "synapsed_fleet-0.0.9.dist-info"
    about.mkdir(parents=True)
    headers = ["Name: synapsed-fleet", "Version: 0.0.9", "Requires-Dist: nats-py", f"Requires-Dist: {requires}"]
    (about / "METADATA").write_text("\n".join([*headers, "", "Requires-Dist: synapsed==0.0.1", ""]))
    (about / "entry_points.txt").write_text("[synapsed.parts]\nfleet = synapsed_fleet\n")


@pytest.mark.night
@pytest.mark.slow
def test_a_fleet_of_another_version_says_what_brings_the_right_one(tmp_path: Path) -> None:
    """As after 'pip install -U synapsed': pip tells of the conflict, and leaves the old one."""
    described(tmp_path / "older", "synapsed==0.0.9")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "older"), str(ROOT)])}
    daemon = Daemon(tmp_path / "home", environ, config=ANY_PORTS, source=ROOT)
    file = daemon.home / "config" / "fleet.toml"
    file.touch()
    why = f"is for synapsed 0.0.9, and this is {__version__}: pip install 'synapsed[fleet]'"
    daemon.start()
    try:
        assert daemon.get("/control/status").json["alerts"] == [
            f"the part fleet is left out: it {why}; the daemon's log says more",
            f"{file} belongs to the part fleet, which {why}",
        ]
        assert checked(daemon)["missing"] == [
            f"the part fleet is left out: it {why}",
            f"{file} belongs to the part fleet, which {why}",
        ]
        assert "'any:x' is reached by the part fleet, which is not there" in daemon.ctl("send", "any:x", "hi").err
        assert f"'--fleet' needs the part fleet, which {why}" in daemon.ctl("list", "--fleet").err
        for program, verb in (("synapsectl", "fleet"), ("synapsed", "broker")):
            command = [sys.executable, "-m", program, verb]
            refused = subprocess.run(command, cwd=ROOT, env=daemon.env, capture_output=True, text=True, check=False)
            words = f"{program}: {verb!r} belongs to the part fleet, which {why}\n"
            assert (refused.returncode, refused.stderr) == (2, words)
    finally:
        assert daemon.end() == 0


@pytest.mark.parametrize("words", [["list"], ["send", "codex", "hello"], ["attach", "codex"], ["inbox"], ["status"]])
def test_a_verb_of_ours_looks_at_no_other_distribution(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    all_verbs.cache_clear()
    monkeypatch.setattr(outside, "packages", lambda: pytest.fail("it has looked"))
    args, _ = parse(words)
    _check_parts(words[0], args)


class _Greeted(ApiConfig):
    greetings_port: int = 0
    port_of_greetings: int = 0


def test_a_key_that_it_adds_to_a_section_begins_with_its_name() -> None:
    with pytest.raises(ValueError, match="'port_of_greetings' does not begin with its name"):
        loading._check("greetings", Face(name="greetings", opens="", extends={"api": _Greeted}))


def test_one_that_guards_agents_opens_something_that_keeps_its_rules() -> None:
    with pytest.raises(ValueError, match="it has 'guards', but no 'opens'"):
        loading._check("greetings", Face(name="greetings", guards=True))
