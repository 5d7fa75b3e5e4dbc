"""The page's modules are typed by JSDoc, with the events' own types: what they read of an event is sent."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.events import TYPES
from tests.web.programs import CACHE

WEB = Path(__file__).parents[2] / "synapsed" / "parts" / "web" / "static"
STRICT = [
    *("--noEmit", "--allowJs", "--checkJs", "--strict", "--skipLibCheck"),
    *("--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--noImplicitReturns"),
    *(
        "--target",
        "es2023",
        "--module",
        "esnext",
        "--moduleResolution",
        "bundler",
        "--lib",
        "es2024,dom,dom.iterable",
    ),
]
PACKAGES = {
    "preact": "preact",
    "hooks": "preact/hooks",
    "xterm": "@xterm/xterm",
    "addon-fit": "@xterm/addon-fit",
    "addon-search": "@xterm/addon-search",
    "addon-unicode-graphemes": "@xterm/addon-unicode-graphemes",
}
PATIENCE_S = 380

NODE = shutil.which("node")
MISSING = CACHE.missing() if NODE else "node is not on PATH"

pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(MISSING is not None, reason=f"*** THE PAGE'S TYPES NOT TRIED: {MISSING} ***"),
    pytest.mark.timeout(400),  # the compiler alone takes 20 s of CPU
]


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    assert NODE is not None
    web = folder / "web"
    if not web.exists():
        shutil.copytree(WEB, web, ignore=shutil.ignore_patterns("*.mjs"))
        shutil.copyfile(TYPES, web / "events.d.ts")
        for name, package in PACKAGES.items():
            (web / "vendor" / f"{name}.d.mts").write_text(f'export * from "{package}";\n')
        (folder / "node_modules").symlink_to(CACHE.folder / "node_modules")
    tsc = CACHE.folder / "node_modules" / "typescript" / "bin" / "tsc"
    modules = [str(path) for path in (*sorted(web.glob("js/*.js")), web / "sw.js")]
    return subprocess.run(
        [NODE, str(tsc), *STRICT, *modules],
        check=False,
        cwd=folder,
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def test_the_modules_are_typed(tmp_path: Path):
    done = checked(tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    events = tmp_path / "web" / "js" / "events.js"
    right = events.read_text()
    for wrong in ("event.data.activities", "event.data.verdicts"):
        changed = right.replace(wrong.removesuffix("s").replace("activitie", "activity"), wrong)
        assert changed != right
        events.write_text(changed)
        assert checked(tmp_path).returncode != 0
