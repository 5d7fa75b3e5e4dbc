"""What a person installs: the wheel in an empty environment, with the locked dependencies and no checkout."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from scripts import sbom
from synapsectl.manual import page
from synapsed.process.installed import COMMIT_FILE, commit
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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, str(ROOT / "scripts/dist"), "--once", "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    lock = folder / "runtime.lock"
    lock.write_text(sbom.lock_text(sbom.locked()))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-compile"]
    done = subprocess.run(
        [*pip, "--require-hashes", "-r", str(lock)],
        capture_output=True,
        text=True,
        timeout=INSTALLING_S,
        check=False,
    )
    if done.returncode != 0 and any(words in done.stderr for words in UNREACHED):
        pytest.skip(f"NOT TRIED: no registry, so nothing can be installed: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    subprocess.run([*pip, "--no-index", str(wheel)], check=True, capture_output=True, timeout=PATIENCE_S)
    return python


def tracked(*folders: str) -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_every_file_that_should_be_in_it_and_no_other(wheel: Path) -> None:
    wanted = tracked("synapsed", "synapsectl")
    wanted |= {f"synapsed/_{path}" for path in tracked("profiles", "packaging")} | {"synapsed/_examples/dummy_agent.py"}
    about = f"synapsed-{sbom.version()}.dist-info"
    wanted.add(f"synapsed-{sbom.version()}.data/data/share/man/man1/synapsectl.1")
    wanted |= {f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    wanted |= {f"synapsed/{COMMIT_FILE}"} if commit() else set()
    assert set(zipfile.ZipFile(wheel).namelist()) == wanted


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
        refused = subprocess.run([ctl, "mcp"], env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (refused.returncode, "pip install 'synapsed[mcp]'" in refused.stderr) == (6, True)
        refused = subprocess.run([ctl, "top"], env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (refused.returncode, "pip install 'synapsed[tui]'" in refused.stderr) == (6, True)
        assert f'"version": "{sbom.version()}"' in run([ctl, "version", "--json"], env)
    finally:
        run([ctl, "shutdown"], env)
    demo = tmp_path / "demo.py"
    demo.write_bytes((ROOT / "examples/demo.py").read_bytes())
    assert "and waits for the answer" in run(
        [str(installed), str(demo)], own | {"TMPDIR": os.environ.get("TMPDIR", "/tmp")}
    )
