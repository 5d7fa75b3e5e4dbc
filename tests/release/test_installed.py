"""What a person installs: the wheels in an empty environment, with the locked dependencies and no checkout."""

import os
import shlex
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from scripts import sbom
from synapsectl.manual import page
from synapsed.process.installed import COMMIT_FILE, VERSIONS_FILE, commit
from tests.support.daemon import NO_PORTS, PATIENCE_S

ROOT = Path(__file__).parents[2]
INSTALLING_S = 10 * PATIENCE_S
"""For some forty packages, over whatever network there is."""

UNREACHED = (
    "No matching distribution",
    "Could not find a version",
    "Connection",
    "Network is unreachable",
    "timed out",
)
"""What pip says where no registry answers; a hash that differs is said in other words."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Returns by distribution the wheel that was built."""
    out = tmp_path_factory.mktemp("dist")
    (out / "synapsed-0.0.1.cdx.json").touch()  # of a build before
    command = [sys.executable, str(ROOT / "scripts/dist"), "--once", "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
    assert len([*out.glob("*.cdx.json")]) == len(sbom.DISTRIBUTIONS)
    return {sbom.canonical(path.name.partition("-")[0]): path for path in out.glob("*.whl")}


def pip_for(python: Path) -> list[str]:
    return [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile"]


def install_locked(python: Path, lock: Path, name: str) -> None:
    """Installs what a distribution needs."""
    lock.write_text(sbom.lock_text(sbom.locked(name)))
    done = subprocess.run(
        [*pip_for(python), "--no-deps", "--require-hashes", "-r", str(lock)],
        capture_output=True,
        text=True,
        timeout=INSTALLING_S,
        check=False,
    )
    if done.returncode != 0 and any(words in done.stderr for words in UNREACHED):
        pytest.skip(f"NOT TRIED: no registry, so nothing can be installed: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has synapsed's wheel and what it needs."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    install_locked(python, folder / "runtime.lock", "synapsed")
    command = [*pip_for(python), "--no-deps", "--no-index", str(wheels["synapsed"])]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
    return python


def tracked(*folders: str, root: Path = ROOT) -> set[str]:
    return {
        path.relative_to(root).as_posix()
        for folder in folders
        for path in (root / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_every_file_that_should_be_in_it_and_no_other(wheels: dict[str, Path]) -> None:
    wanted = tracked("synapsed", "synapsectl")
    wanted |= {f"synapsed/_{path}" for path in tracked("profiles", "packaging")} | {"synapsed/_examples/dummy_agent.py"}
    wanted.add(f"synapsed/{VERSIONS_FILE}")
    wanted.add(f"synapsed-{sbom.version()}.data/data/share/man/man1/synapsectl.1")
    wanted |= _about("synapsed") | ({f"synapsed/{COMMIT_FILE}"} if commit() else set())
    assert set(zipfile.ZipFile(wheels["synapsed"]).namelist()) == wanted


def test_every_file_of_the_fleet_and_no_other(wheels: dict[str, Path]) -> None:
    wanted = tracked("synapsed_fleet", root=sbom.DISTRIBUTIONS["synapsed-fleet"]) | _about("synapsed_fleet")
    assert set(zipfile.ZipFile(wheels["synapsed-fleet"]).namelist()) == wanted


def _about(name: str) -> set[str]:
    about = f"{name}-{sbom.version()}.dist-info"
    return {f"{about}/{file}" for file in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}


@pytest.mark.night
@pytest.mark.timeout(INSTALLING_S + 4 * PATIENCE_S)
def test_a_daemon_and_the_demo_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text(NO_PORTS)
    own = {"HOME": str(home), "PATH": str(tmp_path / "bin"), "LANG": "C.UTF-8"}  # no agent program there
    env = own | {"SYNAPSED_HOME": str(home), "SYNAPSED_A2A_HOME": str(home / "a2a")}

    def run(command: list[str], env: dict[str, str]) -> str:
        done = subprocess.run(
            command, env=env, cwd=home, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False
        )
        assert done.returncode == 0, done
        return done.stdout

    ctl = str(installed.with_name("synapsectl"))
    assert (installed.parents[1] / "share/man/man1/synapsectl.1").read_text() == page()
    try:
        run([ctl, "start", "dummy"], env)
        assert run([ctl, "send", "dummy", "reverse abc", "--wait"], env) == "cba\n"
        assert str(installed.parents[1]) in run([ctl, "profiles", "list"], env)
        served = subprocess.run(
            [ctl, "mcp"], env=env, input="", capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert (served.returncode, served.stderr) == (0, ""), "it serves until its stdin ends"
        refused = subprocess.run([ctl, "top"], env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (refused.returncode, "top needs a terminal" in refused.stderr) == (2, True)
        assert f'"version": "{sbom.version()}"' in run([ctl, "version", "--json"], env)
    finally:
        run([ctl, "shutdown"], env)
    demo = tmp_path / "demo.py"
    demo.write_bytes((ROOT / "examples/demo.py").read_bytes())
    assert "and waits for the answer" in run(
        [str(installed), str(demo)], own | {"TMPDIR": os.environ.get("TMPDIR", "/tmp")}
    )


@pytest.mark.night
@pytest.mark.timeout(INSTALLING_S + 4 * PATIENCE_S)
def test_the_fleet_comes_by_an_extra(installed: Path, wheels: dict[str, Path], tmp_path: Path) -> None:
    """Without it a daemon whose host is in a fleet runs, says what is to be installed, and keeps what it has."""
    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text(NO_PORTS)
    member = home / "config" / "fleet.toml"
    member.write_text('name = "box"\nurls = ["tls://127.0.0.1:1"]\n')
    env = {"HOME": str(home), "PATH": str(installed.parent), "LANG": "C.UTF-8"}
    env |= {"SYNAPSED_HOME": str(home), "SYNAPSED_A2A_HOME": str(home / "a2a")}
    wheel = wheels["synapsed"]
    how = f"-m pip install --find-links {wheel.parent} {shlex.quote(f'{wheel}[fleet]')}\n"
    """The tool knows how it was installed; the daemon says what pip is told."""

    def run(*command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, env=env, cwd=home, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False
        )

    assert run("synapsectl", "start", "dummy").returncode == 0
    try:
        told = run("synapsectl", "status").stdout
        assert f"{member} belongs to the part fleet, which is not installed: {installed.parent}/python" in told
        assert how in told
        refused = run("synapsectl", "fleet")
        words = f"synapsectl: 'fleet' belongs to the part fleet, which is not installed: {installed.parent}/python"
        assert (refused.returncode, refused.stderr[: len(words)]) == (2, words)
        assert refused.stderr.endswith(how)
        refused = run("synapsed", "broker")
        words = "synapsed: 'broker' belongs to the part fleet, which is not installed: pip install 'synapsed[fleet]'\n"
        assert (refused.returncode, refused.stderr) == (2, words)
        refused = run("synapsectl", "send", "any:dummy", "hello")
        assert "'any:dummy' is reached by the part fleet, which is not there: " in refused.stderr
        assert refused.stderr.endswith(how)
    finally:
        run("synapsectl", "shutdown")

    install_locked(installed, tmp_path / "fleet.lock", "synapsed-fleet")
    where = ["--no-index", "--find-links", str(wheels["synapsed-fleet"].parent)]
    done = subprocess.run([*pip_for(installed), *where, "synapsed[fleet]"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert run("synapsectl", "start", "dummy").returncode == 0
    try:
        told = run("synapsectl", "status").stdout
        assert "not installed" not in told
        assert "this host takes no part in its fleet" in told, "its credentials are missing"
        assert run("synapsectl", "fleet", "hosts", "-h").returncode == 0
        assert "keep this host's broker" in run("synapsed", "-h").stdout
        assert member.read_text().startswith('name = "box"')
    finally:
        run("synapsectl", "shutdown")
