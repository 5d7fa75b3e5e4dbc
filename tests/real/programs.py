"""The real agent programs: pinned, installed into a cache, and configured as a user would have configured them.

    python -m tests.real.programs install    # from npm, as `npm/package-lock.json` says; nothing to do if it is there
    python -m tests.real.programs check      # exit code 0 if all are there in the pinned versions

The cache is ``$SYNAPSED_CLI_CACHE``, by default ``${XDG_CACHE_HOME:-~/.cache}/synapsed/cli``. `prepare` gives a program
a home of its own, with the scripted model as its provider, a key, no updates, no telemetry and a project folder that is
trusted: what a person has in their configuration. What synapsed adds on its own (hooks, permission mode, server ports)
is the business of its profiles and is not here.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.npm import MissingProgramsError, NpmCache, cache_root

__all__ = [
    "PROGRAMS",
    "MissingProgramsError",
    "Prepared",
    "cache_dir",
    "install",
    "missing",
    "of_folder",
    "prepare",
    "run_install_script",
    "version",
]

_LOCKED = Path(__file__).with_name("npm")

PROGRAMS: Mapping[str, str] = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
}

# Install scripts that matter, run by hand: npm may be configured to run none. The others are optional.
_INSTALL_SCRIPTS = {"@anthropic-ai/claude-code": "install.cjs", "opencode-ai": "postinstall.mjs"}

API_KEY = "sk-scripted-model-key-000000000000000000"  # claude wants 28 characters and more


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A program ready to be started: `env` is its whole environment, `cwd` its project folder."""

    cli: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    home: Path
    cwd: Path


def version(cli: str) -> str:
    """The pinned version."""
    pinned: dict[str, str] = json.loads((_LOCKED / "package.json").read_text())["dependencies"]
    return pinned[PROGRAMS[cli]]


def cache_dir() -> Path:
    return Path(os.environ.get("SYNAPSED_CLI_CACHE") or cache_root() / "cli")


def _cache() -> NpmCache:
    command = "python -m tests.real.programs install"
    return NpmCache(locked=_LOCKED, folder=cache_dir(), what="agent programs", command=command)


def missing() -> str | None:
    """Why the programs cannot be run from the cache, in a sentence, or None if they can."""
    return _cache().missing()


def install() -> Path:
    """Installs the pinned programs into the cache, unless they are there. Returns the cache. Needs npm and a registry.

    subprocess.CalledProcessError where npm fails; MissingProgramsError where there is no npm.
    """
    return _cache().install(_run_install_scripts)


def _run_install_scripts(cache: Path) -> None:
    for package in _INSTALL_SCRIPTS:
        run_install_script(cache, package)


def run_install_script(cache: Path, package: str) -> None:
    """Runs what `package` needs to have run after its installation in `cache`; older versions had no such script."""
    folder = cache / "node_modules" / package
    script = _INSTALL_SCRIPTS.get(package)
    if script is not None and (folder / script).is_file():
        subprocess.run(["node", script], cwd=folder, check=True)


def prepare(cli: str, home: Path, project: Path, model_url: str) -> Prepared:
    """Writes the configuration of `cli` into `home`, makes `project`, and says how to start it there.

    `home` must be private (0700 down from its first own folder): gemini refuses configuration below a folder that
    others may write to. MissingProgramsError where the cache does not have the program.
    """
    if reason := missing():
        raise MissingProgramsError(reason)
    for folder in (home, project):
        _make_private(folder)
    own = _CONFIGURERS[cli](home, project.resolve(), model_url)
    bin_dir = cache_dir() / "node_modules" / ".bin"
    node_dir = str(Path(shutil.which("node") or "/usr/bin/node").parent)
    path = os.pathsep.join(dict.fromkeys([str(bin_dir), node_dir, "/usr/local/bin", "/usr/bin", "/bin"]))
    common = {"HOME": str(home), "PATH": path, "TERM": "xterm-256color", "LANG": "C.UTF-8", "SHELL": "/bin/sh"}
    return Prepared(cli=cli, argv=(str(bin_dir / cli),), env={**common, **own}, home=home, cwd=project)


def of_folder(prepared: Prepared, folder: Path) -> Prepared:
    """Returns `prepared` with the program of its name in `folder` in the place of the pinned one."""
    path = os.pathsep.join([str(folder), prepared.env["PATH"]])
    return replace(prepared, argv=(str(folder / prepared.cli),), env={**prepared.env, "PATH": path})


def _make_private(folder: Path) -> None:
    """Makes the folder and all missing ones above it 0700 (`Path.mkdir` would give its mode to the last alone)."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _write(path: Path, text: str) -> None:
    _make_private(path.parent)
    path.touch(mode=0o600)
    path.write_text(text)


def _claude(home: Path, project: Path, model_url: str) -> dict[str, str]:
    config = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [API_KEY[-20:]], "rejected": []},
        "projects": {str(project): {"hasTrustDialogAccepted": True}},
    }
    _write(home / ".claude.json", json.dumps(config))
    return {
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": API_KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _codex(home: Path, project: Path, model_url: str) -> dict[str, str]:
    config = f"""\
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "Scripted"
base_url = "{model_url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"

[analytics]
enabled = false

[projects."{project}"]
trust_level = "trusted"
"""
    _write(home / ".codex" / "config.toml", config)
    return {"SCRIPTED_API_KEY": API_KEY}


def _gemini(home: Path, project: Path, model_url: str) -> dict[str, str]:
    config = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    _write(home / ".gemini" / "settings.json", json.dumps(config))
    return {
        "GEMINI_API_KEY": API_KEY,
        "GOOGLE_GEMINI_BASE_URL": model_url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _opencode(home: Path, project: Path, model_url: str) -> dict[str, str]:
    config = {
        "$schema": "https://opencode.ai/config.json",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"bash": "ask"},
        "provider": {
            "scripted": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Scripted",
                "options": {"baseURL": f"{model_url}/v1", "apiKey": API_KEY},
                "models": {"scripted": {"name": "Scripted", "tool_call": True}},
            }
        },
    }
    _write(home / ".config" / "opencode" / "opencode.json", json.dumps(config))
    return {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }


_CONFIGURERS: Mapping[str, Callable[[Path, Path, str], dict[str, str]]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real.programs", description="The cache of agent programs.")
    parser.add_argument("verb", choices=["install", "check"])
    parser.add_argument(
        "--optional", action="store_true", help="install: say so loudly, but do not fail, where it cannot"
    )
    options = parser.parse_args(arguments)
    if options.verb == "install":
        try:
            print(f"agent programs in {install()}")
        except (MissingProgramsError, subprocess.CalledProcessError) as error:
            print(f"\n*** AGENT PROGRAMS NOT INSTALLED: {error} ***\n", file=sys.stderr)
            return 0 if options.optional else 1
        return 0
    reason = missing()
    print(reason or f"agent programs in {cache_dir()}: " + ", ".join(f"{cli} {version(cli)}" for cli in PROGRAMS))
    return 0 if reason is None else 1


if __name__ == "__main__":
    sys.exit(main())
