"""The recipes in `packaging`: marked as untried, of this project's facts, and Debian's as far as it is built here."""

import email
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from synapsectl.parsing import parse
from tests.support.daemon import PATIENCE_S

ROOT = Path(__file__).parents[2]
DEBIAN = ROOT / "packaging/debian"
HOMEBREW = ROOT / "packaging/homebrew"
WHEEL = "synapsed-1.2.3-py3-none-any.whl"


def test_what_was_not_tried_is_marked() -> None:
    for text in (DEBIAN / "README.md", HOMEBREW / "README.md", HOMEBREW / "synapsed.rb"):
        assert re.search(r"\buntried\b", "\n".join(text.read_text().splitlines()[:4]), re.IGNORECASE), text


def test_they_say_what_the_project_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    formula = (HOMEBREW / "synapsed.rb").read_text()
    assert f'license "{project["license"]}"' in formula
    python = re.search(r'depends_on "python@([\d.]+)"', formula)
    assert python is not None
    assert f"Programming Language :: Python :: {python[1]}" in project["classifiers"]
    for verb in re.findall(r'bin/"synapsectl", "(\w+)"', formula):
        assert callable(parse([verb, *{"start": ["dummy"], "completion": ["bash"]}.get(verb, [])])[1])


@pytest.mark.skipif(shutil.which("ruby") is None, reason="NOT TRIED: there is no ruby")
def test_the_formula_is_ruby(tmp_path: Path) -> None:
    """Ruby's parser has no warning about it, and it defines what Homebrew calls."""
    formula = HOMEBREW / "synapsed.rb"
    assert _run(["ruby", "-wc", str(formula)]) == "Syntax OK\n"
    stand_in = tmp_path / "formula.rb"
    stand_in.write_text(FORMULA)
    told = json.loads(_run(["ruby", "-r", str(stand_in), "-r", str(formula), "-e", "puts JSON.dump(Synapsed.told)"]))
    assert told["calls"] == ["desc", "url", "version", "sha256", "license", "depends_on", "test"]
    assert told["install"] is True


FORMULA = """
require "json"
class Formula
  def self.told = { calls: @calls, install: instance_methods(false).include?(:install) }
  def self.method_missing(name, *_given, **_named) = (@calls ||= []) << name
  def self.respond_to_missing?(*) = true
  def self.test = (@calls ||= []) << :test
end
"""
"""What stands for Homebrew's own class: it notes what the formula says of itself."""


def test_the_scripts_of_the_debian_package_are_shell() -> None:
    for shell, script in (("bash", "build"), ("sh", "prerm")):
        assert _run([shell, "-n", str(DEBIAN / script)]) == ""
    control = email.message_from_string((DEBIAN / "control.in").read_text())
    assert {"Package", "Version", "Architecture", "Maintainer", "Depends", "Description"} <= {*control}
    left = set(re.findall(r"@[A-Z]+@", (DEBIAN / "control.in").read_text()))
    assert left == set(re.findall(r"@[A-Z]+@", (DEBIAN / "build").read_text())), "each is filled in"


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")
def test_a_debian_package_has_the_tools_at_their_places(tmp_path: Path) -> None:
    """Of a wheel in small, without what it needs: nothing is asked of an index."""
    with zipfile.ZipFile(tmp_path / WHEEL, "w") as wheel:
        wheel.write(ROOT / "synapsed/own_python.py", "synapsed/own_python.py")
        wheel.writestr("synapsed/__main__.py", "")
        wheel.writestr("synapsed/__init__.py", "")
        wheel.writestr("synapsectl/__init__.py", "")
        wheel.writestr(
            "synapsectl/__main__.py", "import sys\ndef main() -> int:\n    print(sys.argv[1:])\n    return 0\n"
        )
        wheel.writestr("synapsed-1.2.3.dist-info/METADATA", "Metadata-Version: 2.4\nName: synapsed\nVersion: 1.2.3\n")
        wheel.writestr(
            "synapsed-1.2.3.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("synapsed-1.2.3.dist-info/licenses/LICENSE", "MIT")
        wheel.writestr("synapsed-1.2.3.data/data/share/man/man1/synapsectl.1", ".TH")
        wheel.writestr("synapsed-1.2.3.dist-info/RECORD", "".join(f"{name},,\n" for name in wheel.namelist()))
    built = _run([str(DEBIAN / "build"), str(tmp_path / WHEEL), str(tmp_path)])
    package = Path(built.strip())
    assert package.name == "synapsed_1.2.3_all.deb"
    minor = sys.version_info[1]
    assert f"python3 (>= 3.{minor}), python3 (<< 3.{minor + 1})" in _run(["dpkg-deb", "-f", str(package), "Depends"])
    root = tmp_path / "root"
    _run(["dpkg-deb", "-x", str(package), str(root)])
    found = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    lib = "usr/lib/synapsed"
    assert {"usr/bin/synapsectl", "usr/bin/synapsed", "usr/share/man/man1/synapsectl.1.gz"} <= found
    assert "usr/share/doc/synapsed/copyright" in found
    assert (root / lib / "synapsed-1.2.3.dist-info/INSTALLER").read_text() == "debian\n"
    assert not [name for name in found if name.endswith(("direct_url.json", ".pyc"))]
    script = (root / "usr/bin/synapsectl").read_text()
    assert f"exec {sys.executable} -P -E /{lib}/synapsed/own_python.py synapsectl.__main__ " in script
    moved = tmp_path / "synapsectl"
    moved.write_text(script.replace(f"/{lib}/", f"{root}/{lib}/"))
    assert _run(["sh", str(moved), "list", "a b"]) == "['list', 'a b']\n"


def test_another_wheel_makes_no_package(tmp_path: Path) -> None:
    (tmp_path / "other-1.0-py3-none-any.whl").touch()
    done = subprocess.run(
        [str(DEBIAN / "build"), str(tmp_path / "other-1.0-py3-none-any.whl")],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (2, "build: other-1.0-py3-none-any.whl is no wheel of synapsed\n")


def _run(command: list[str]) -> str:
    env = os.environ | {"PYTHON": sys.executable, "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout
