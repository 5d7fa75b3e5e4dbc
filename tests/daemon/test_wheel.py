"""What is installed from a wheel works outside the checkout: profiles and the scripted agent are inside it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.support.daemon import NO_PORTS, PATIENCE_S

ROOT = Path(__file__).parents[2]


def test_a_daemon_from_the_wheel(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE_S)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    installed = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(installed)
    inside = {path.relative_to(installed).as_posix() for path in installed.rglob("*") if path.is_file()}
    assert {f"synapsed/_profiles/{path.name}" for path in (ROOT / "profiles").glob("*.toml")} <= inside
    assert {
        f"synapsed/_{path.relative_to(ROOT)}" for path in (ROOT / "packaging").rglob("*") if path.is_file()
    } <= inside

    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text(NO_PORTS)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "SYNAPSED_HOME": str(home),
        "SYNAPSED_A2A_HOME": str(home / "a2a"),
        "PYTHONPATH": str(installed),
    }

    def ctl(*arguments: str) -> str:
        command = [sys.executable, "-m", "synapsectl", *arguments]
        done = subprocess.run(
            command, env=env, cwd=home, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done
        return done.stdout

    try:
        ctl("start", "dummy")
        assert ctl("send", "dummy", "reverse abc", "--wait") == "cba\n"
        assert str(installed) in ctl("profiles", "list")
    finally:
        ctl("shutdown")
