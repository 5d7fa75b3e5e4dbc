"""The start of a daemon with an empty home: what it loads, and that no module compiles a pattern at import."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import synapsed
import synapsed_fleet
from synapsed.kernel import Face
from synapsed.parts.loading import faces
from tests.support.daemon import Daemon

NEVER = (
    *("a2a", "cryptography", "google", "httpx", "jeepney", "markdown_it", "mcp", "nats", "opentelemetry", "PIL"),
    *("prometheus_client", "smtplib", "textual"),
    *(
        "synapsed.a2a_types",
        "synapsed.keepers.client",
        "synapsed.keepers.launchers",
        "synapsed.parts.app_server.channel",
    ),
    *(
        "synapsed.parts.answer_blocks.blocks",
        "synapsed.parts.hooks.channel",
        "synapsed.pipes",
        "synapsed.pty.link_factory",
    ),
    *("synapsed.pty.readiness", "synapsed.screens", "synapsed.terminal.prompts"),
)
"""Packages and modules that come with the first agent, section or request that needs them."""
OURS_MAX = 270
"""Our own modules that a start loads. The number only falls."""
ALL_MAX = 800
"""All modules; what is installed beside ours adds a few."""

OPENED = {"elsewhere", "fleet", "telemetry", "web"}
"""Parts that a start without agents opens: metrics are counted by default (tests/parts/test_wanted.py)."""

OF_FACES = "import sys; from synapsed.parts.loading import faces; faces(); print(*sys.modules)"
BUILD_ALL = """
import gc, importlib, pkgutil, synapsed, synapsed_fleet
from synapsed.shared.regex import LateRegex

for package in (synapsed, synapsed_fleet):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__") and ".ctl" not in module.name and ".keeper" not in module.name:
            importlib.import_module(module.name)
patterns = [one for one in gc.get_objects() if isinstance(one, LateRegex)]
for pattern in patterns:
    pattern.groups
print(len(patterns))
"""
PACKAGES = (synapsed, synapsed_fleet)
BUILT = ("re.compile('\\\\d+(?:\\\\.\\\\d+)+",)
"""A default of a model, whose text is in its schema."""
EARLY = ("keeper", "documents")
"""Folders below the room of what is shared, where `regex` cannot be imported."""


@pytest.mark.cold
def test_it_loads_only_what_it_needs(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, environ={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"})
    daemon.start()
    loaded = set(re.findall(r"^import time: .* \| +([\w.]+)$", daemon.log(), re.MULTILINE))
    daemon.end()
    assert "synapsed.daemon" in loaded
    assert [
        name for name in sorted(loaded) if name.startswith(tuple(f"{one}." for one in NEVER)) or name in NEVER
    ] == []
    command = [sys.executable, "-c", OF_FACES]
    of_faces = set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    opened = loaded - of_faces
    assert {face.name for face in faces() if any(name.startswith(_package(face)) for name in opened)} == OPENED
    ours = [name for name in loaded if name.startswith("synaps")]
    assert len(ours) <= OURS_MAX
    assert len(loaded) <= ALL_MAX


def _package(face: Face) -> str:
    return "synapsed_fleet." if face.name == "fleet" else f"synapsed.parts.{face.name}."


def test_no_module_compiles_a_pattern() -> None:
    found = [f"{path}:{line}" for path in _sources() for line in _compiled_at_import(ast.parse(path.read_text()))]
    assert found == [], "use regex"


def _sources() -> Iterator[Path]:
    for package in PACKAGES:
        (folder,) = map(Path, package.__path__)
        for path in sorted(folder.rglob("*.py")):
            inside = path.relative_to(folder).parts
            if inside[0] not in EARLY and "ctl" not in inside and len(inside) > 1 and path.stem != "base":
                yield path


def _compiled_at_import(tree: ast.AST) -> Iterator[int]:
    """Yields the lines of what is compiled when the module is imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        compiles = isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
        if compiles and not ast.unparse(node).startswith(BUILT):
            yield node.lineno
        yield from _compiled_at_import(node)


def test_each_pattern_can_be_compiled() -> None:
    """At a start nobody would find a wrong one."""
    done = subprocess.run([sys.executable, "-c", BUILD_ALL], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200
