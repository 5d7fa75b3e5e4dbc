"""A part is removed by removing its folder: the rest starts, takes a message, and has every line of its own surface."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

from scripts.folders import OUTSIDE
from scripts.surface import FOLDER, ROOT, written
from synapsectl.errors import REFUSED
from synapsectl.verbs import NEEDS, OPTIONS, RELEASED
from synapsed.cli import EXIT_CONFIG
from synapsed.model.released_names import ADDRESSES, CONFIG_FILES, CONFIG_KEYS, DAEMON_VERBS, installing
from synapsed.parts.list import NAMES
from tests.support.daemon import Daemon

COPIED = ("synapsed", "synapsectl", "packages", "profiles", "scripts", "docs", "examples", "packaging")

GONE = {
    "a2a": {"alert-codes.txt", "config-errors.txt", "config-keys.txt", "openapi.txt", "routes.txt"},
    "attention": {
        "alert-codes.txt",
        "config-errors.txt",
        "config-keys.txt",
        "environment.txt",
        "openapi.txt",
        "routes.txt",
        "synapsectl.txt",
    },
    "elsewhere": {"config-errors.txt", "config-keys.txt", "openapi.txt", "routes.txt", "synapsectl.txt"},
    "moods": {"config-errors.txt", "config-keys.txt"},
    "fleet": {
        "config-errors.txt",
        "config-keys.txt",
        "environment.txt",
        "exit-codes.txt",
        "openapi.txt",
        "routes.txt",
        "synapsectl.txt",
        "synapsed.txt",
    },
    "answer_blocks": set(),
    "work_events": set(),
    "approvals": {"config-errors.txt", "config-keys.txt"},
    "person_settings": set(),
    "usage_limits": {"config-errors.txt", "config-keys.txt"},
    "pictures": set(),
    "profile_tools": {
        "alert-codes.txt",
        "config-errors.txt",
        "config-keys.txt",
        "exit-codes.txt",
        "synapsectl.txt",
        "synapsed.txt",
    },
    "openapi": {"openapi.txt", "routes.txt"},
    "registry": set(),
    "hooks": set(),
    "live_screens": {"openapi.txt", "routes.txt"},
    "mentions": {"config-errors.txt", "config-keys.txt"},
    "app_server": set(),
    "session_server": set(),
    "editors": {"synapsectl.txt"},
    "worktrees": {"environment.txt", "exit-codes.txt", "synapsectl.txt"},
    "history": {"config-errors.txt", "config-keys.txt", "databases.txt", "openapi.txt", "routes.txt", "synapsectl.txt"},
    "rules": {"alert-codes.txt", "config-errors.txt", "config-keys.txt"},
    "schedules": {"config-errors.txt", "config-keys.txt", "openapi.txt", "routes.txt", "synapsectl.txt"},
    "telemetry": {"config-errors.txt", "config-keys.txt", "metrics.txt", "openapi.txt", "routes.txt"},
    "web": {"config-errors.txt", "config-keys.txt", "environment.txt", "openapi.txt", "routes.txt", "synapsectl.txt"},
}
"""The files of the surface that have lines of the part."""

WORDS = {
    "a2a": "a2a|A2A|well-known|PUSH_GIVEN_UP|tag host",
    "attention": "notify|NOTIFY_FAILING|DBUS|[Ii]nbox|answers/|[Pp]ush|Answered|Attention|HostSaid|Sink|sink",
    "elsewhere": "hosts|[Hh]ost |[Ee]xternal|schema (Host|Discover)",
    "moods": "moods",
    "fleet": "[Ff]leet|[Bb]roker|BROKER|GOM|LANG|OTHER_HOME|schema File",
    "answer_blocks": "answer_blocks",
    "work_events": "work_events",
    "approvals": "approval",
    "person_settings": "person_settings",
    "usage_limits": "usage_limit",
    "pictures": "pictures",
    "profile_tools": r"profiles?\b|BUNDLE_\w+|bundles|NOT_CONFIRMED|report\b|NOT_LOOKED_AT|FILE_EXISTS",
    "mentions": "mentions",
    "registry": "registry",
    "hooks": "hooks",
    "live_screens": "screen/live",
    "openapi": "",  # the whole of openapi.txt
    "app_server": "app.server",
    "session_server": "session.server",
    "editors": "acp",
    "worktrees": "worktree|diff|SYNAPSE_(REPOSITORY|WORKTREE)|6 for its own",
    "history": "history|usage|Usage|History",
    "rules": r"rule|webhooks|WEBHOOK_GIVEN_UP",
    "schedules": r"schedule|Schedule|schema (LastTime|Missed|Outcome)\b",
    "telemetry": "metrics|traces|synapse_|histograms|telemetry",
    "web": "[ /]web|tls_|DISPLAY|WSL|[Dd]evice|[Tt]oken|pairing|GET /[ :]|[Pp]age|Session|Certificate|Code|Serve"
    "|MeAnswer|schema Right",
}
"""One of them is in each such line."""

WITH_OPTION = {"fleet": ("list", "--fleet"), "worktree": ("start", "dummy", "--worktree", "login")}


IN_THE_GATE = {"schedules", "session_server"}
"""One with tables and routes, and an adapter. The others are for the night."""


def params() -> list[Any]:
    return [pytest.param(name, marks=() if name in IN_THE_GATE else pytest.mark.night) for name in (*NAMES, *OUTSIDE)]


@pytest.fixture(scope="module", params=params())
def part(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def source(part: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package without the part's folder."""
    source = copied(tmp_path_factory.mktemp(part) / "source")
    shutil.rmtree(source / "packages" / f"synapsed-{part}" if part in OUTSIDE else source / "synapsed" / "parts" / part)
    return source


def copied(source: Path) -> Path:
    """Copies the package there, with what was compiled, too."""
    for name in COPIED:
        shutil.copytree(ROOT / name, source / name, copy_function=_linked)
    return source


def _linked(file: str, copy: str) -> None:
    """Links, which takes a tenth of the time, where both are in one file system."""
    try:
        os.link(file, copy)
    except OSError:
        shutil.copy2(file, copy)


@pytest.fixture(scope="module")
def python(part: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment without the part."""
    return environment(tmp_path_factory.mktemp("without") / "venv") if part in OUTSIDE else sys.executable


def environment(folder: Path) -> str:
    """Makes an environment without this project's distributions. Returns its interpreter."""
    venv.create(folder, with_pip=False)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    for place in {sysconfig.get_path(name) for name in ("purelib", "platlib")}:
        for one in Path(place).iterdir():
            if "synapsed" not in one.name:
                (own / one.name).symlink_to(one)
    return str(folder / "bin" / "python")


def tool(daemon: Daemon, *arguments: str, program: str = "synapsectl") -> "subprocess.CompletedProcess[str]":
    """`synapsectl` of the daemon's copy."""
    command = [daemon.python, "-m", program, *arguments]
    return subprocess.run(command, cwd=daemon.source, env=daemon.env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_rest_takes_a_message(part: str, source: Path, python: str, tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "home", source=source, python=python)
    how = f": {command}" if (command := installing(part)) else ""
    files = [daemon.home / "config" / name for name, of in CONFIG_FILES.items() if of == part]
    for file in files:
        file.touch()
    daemon.start()
    try:
        alerts = daemon.get("/control/status").json["alerts"]
        assert alerts == [f"{file} belongs to the part {part}, which is not installed{how}" for file in files]
        daemon.start_agent()
        done = daemon.task_in(daemon.send("echo exactly this"), "completed")
        assert done["artifacts"][0]["parts"][0]["text"].strip() == "exactly this"
        assert daemon.get("/control/automation").status == 200
        assert "send" in tool(daemon, "--help").stdout
        for verb in (name for name, of in RELEASED.items() if of == part):
            _, _, told = tool(daemon, *verb.split()).stderr.partition(": ")
            assert told.startswith(f"{verb!r} belongs to the part {part}, which is not installed{how}\n")
        for verb in (name for name, of in NEEDS.items() if of == part):
            told = tool(daemon, verb)
            words = f"synapsectl: {verb!r} needs the part {part}, which is not installed{how}\n"
            assert (told.returncode, told.stderr) == (REFUSED, words)
        for option in (name for name, of in OPTIONS.items() if of == part):
            told = tool(daemon, *WITH_OPTION[option])
            words = f"synapsectl: '--{option}' needs the part {part}, which is not installed{how}\n"
            assert (told.returncode, told.stderr) == (REFUSED, words)
        for beginning in (beginning for beginning, of in ADDRESSES.items() if of == part):
            told = tool(daemon, "send", f"{beginning}x", "hi")
            assert f"'{beginning}x' is reached by the part {part}, which is not there{how}" in told.stderr
        for verb in (name for name, of in DAEMON_VERBS.items() if of == part):
            told = tool(daemon, verb, program="synapsed")
            words = f"synapsed: {verb!r} belongs to the part {part}, which is not installed{how}\n"
            assert (told.returncode, told.stderr) == (EXIT_CONFIG, words)
        if files:
            checks = json.loads(tool(daemon, "doctor", "--json").stdout)["checks"]
            assert [one["detail"] for one in checks if one["check"] == "extras"] == alerts
    finally:
        assert daemon.end() == 0
    assert "Traceback" not in daemon.log()
    take_out = f"{command}, or take it out" if command else "take it out"
    config = daemon.home / "config" / "config.toml"
    before = config.read_text()
    for name in (name for name, of in CONFIG_KEYS.items() if of == part):
        section, _, key = name.rpartition(".")
        of_kernel = before if f"[{section}]\n" in before else f"{before}\n[{section}]\n"
        of_kernel = of_kernel.replace(f"[{section}]\n", f"[{section}]\n{key} = true\n")
        config.write_text(of_kernel if section else f"{before}\n[{name}]\nenabled = true\n")
        refused = tool(daemon, "check-config", program="synapsed")
        assert refused.returncode == EXIT_CONFIG
        assert f"'{name}' belongs to the part {part}, which is not installed: {take_out}" in refused.stderr


@pytest.mark.night
def test_the_surface_is_the_whole_one_without_its_lines(part: str, source: Path, python: str, tmp_path: Path) -> None:
    subprocess.run([python, "-m", "scripts.surface", "--folder", tmp_path], cwd=source, check=True)
    whole, left = written(FOLDER, []), written(tmp_path, [])
    for name, text in whole.items():
        lines, rest = text.splitlines(), left[name].splitlines()
        gone = [line for line in lines if line not in set(rest)]
        assert [line for line in rest if line not in set(lines)] == [], name
        assert bool(gone) == (name in GONE[part]), (name, gone)
        assert [line for line in gone if not re.search(WORDS[part], line)] == [], name
