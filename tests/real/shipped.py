"""Programs whose profiles are shipped, besides the four of `programs`: pinned, installed into caches, and configured as
a user would have configured them.

    python -m tests.real.shipped install    # as `npm/shipped` and `pypi/shipped.lock` say
    python -m tests.real.shipped check      # exit code 0 if all are there

The caches are ``npm`` and ``pypi`` below ``$SYNAPSED_SHIPPED_CACHE``, by default
``${XDG_CACHE_HOME:-~/.cache}/synapsed/shipped``. Some want a newer Node than a system may have: npm brings one.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real.programs import API_KEY, Prepared
from tests.support.npm import MissingProgramsError, NpmCache, cache_root
from tests.support.pypi import PypiCache

__all__ = ["PROGRAMS", "Program", "install", "missing", "prepare", "version"]

_HERE = Path(__file__).parent
_COMMAND = "python -m tests.real.shipped install"
_FOLDER = Path(os.environ.get("SYNAPSED_SHIPPED_CACHE") or cache_root() / "shipped")

NPM = NpmCache(locked=_HERE / "npm" / "shipped", folder=_FOLDER / "npm", what="shipped programs", command=_COMMAND)
PYPI = PypiCache(
    locked=_HERE / "pypi" / "shipped.lock",
    folder=_FOLDER / "pypi",
    what="shipped programs from PyPI",
    command=_COMMAND,
)


@dataclass(frozen=True, kw_only=True)
class Program:
    """`configure` writes what a person would have set up into the home, and returns what they have in their shell."""

    package: str
    configure: Callable[[Path, str], Mapping[str, str]]
    cache: NpmCache | PypiCache = NPM
    asks: bool = True
    """Before it runs a command."""
    terminal: bool = False
    """It has a terminal of its own, in which a person may leave a draft."""
    repeats: bool = False
    """It gives its model a message that was never answered once more, in front of the next one."""
    deaf: bool = False
    """It hears a cancel only while its model speaks: until then it is ended for one, and started again."""
    folder: str = ".bin"
    """Below `node_modules`, where its command is of that name: `.bin` may have it under the package's."""


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def _qwen(home: Path, model_url: str) -> Mapping[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    _write(home / ".qwen" / "settings.json", settings)
    return {"OPENAI_API_KEY": API_KEY, "OPENAI_BASE_URL": f"{model_url}/v1", "OPENAI_MODEL": "scripted"}


def _copilot(_home: Path, model_url: str) -> Mapping[str, str]:
    provider = {"BASE_URL": f"{model_url}/v1", "TYPE": "openai", "API_KEY": API_KEY}
    told = {f"COPILOT_PROVIDER_{key}": value for key, value in provider.items()}
    return told | {"COPILOT_MODEL": "scripted", "COPILOT_OFFLINE": "true"}


def _cline(home: Path, model_url: str) -> Mapping[str, str]:
    """As `cline auth` writes it; by ACP it takes a provider of one's own from its variables alone."""
    kind = "openai-compatible"
    settings = {"provider": kind, "apiKey": API_KEY, "model": "scripted", "baseUrl": f"{model_url}/v1"}
    known = {"settings": settings, "updatedAt": "2026-11-01T00:00:00.000Z", "tokenSource": "manual"}
    providers = {"version": 1, "lastUsedProvider": kind, "modes": {}, "providers": {kind: known}}
    _write(home / ".cline" / "data" / "settings" / "providers.json", providers)
    return {"CLINE_API_KEY": API_KEY, "CLINE_PROVIDER": kind, "CLINE_MODEL": "scripted"}


def _vibe(home: Path, model_url: str) -> Mapping[str, str]:
    config = f"""\
active_model = "scripted"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false

[[providers]]
name = "scripted"
api_base = "{model_url}/v1"
api_key_env_var = "SCRIPTED_API_KEY"

[[models]]
name = "scripted"
provider = "scripted"
alias = "scripted"
"""
    _write(home / ".vibe" / "config.toml", config)
    return {"SCRIPTED_API_KEY": API_KEY}


def _kimi(home: Path, model_url: str) -> Mapping[str, str]:
    config = f"""\
default_model = "scripted"
telemetry = false

[models.scripted]
provider = "scripted"
model = "scripted"
max_context_size = 131072

[providers.scripted]
type = "openai"
base_url = "{model_url}/v1"
api_key = "{API_KEY}"
"""
    _write(home / ".kimi-code" / "config.toml", config)
    return {}


def _goose(home: Path, model_url: str) -> Mapping[str, str]:
    """As `goose configure` writes it, without a keyring; it begins in a mode in which it asks."""
    config = f"""\
GOOSE_PROVIDER: openai
GOOSE_MODEL: scripted
GOOSE_MODE: approve
GOOSE_TELEMETRY_ENABLED: false
OPENAI_HOST: {model_url}
OPENAI_BASE_PATH: v1/chat/completions
extensions:
  developer:
    bundled: true
    display_name: Developer
    enabled: true
    name: developer
    timeout: 300
    type: builtin
"""
    _write(home / ".config" / "goose" / "config.yaml", config)
    return {"OPENAI_API_KEY": API_KEY, "GOOSE_DISABLE_KEYRING": "1"}


def _pi(home: Path, model_url: str) -> Mapping[str, str]:
    provider = {
        "baseUrl": f"{model_url}/v1",
        "api": "openai-completions",
        "apiKey": API_KEY,
        "models": [{"id": "scripted", "name": "Scripted"}],
    }
    _write(home / ".pi" / "agent" / "models.json", {"providers": {"scripted": provider}})
    _write(home / ".pi" / "agent" / "settings.json", {"defaultProvider": "scripted", "defaultModel": "scripted"})
    return {"PI_OFFLINE": "1"}


PROGRAMS: Mapping[str, Program] = {
    "qwen": Program(package="@qwen-code/qwen-code", configure=_qwen),
    "copilot": Program(package="@github/copilot", configure=_copilot),
    "cline": Program(package="cline", configure=_cline),
    "vibe": Program(package="mistral-vibe", configure=_vibe, cache=PYPI),
    "kimi": Program(package="@moonshot-ai/kimi-code", configure=_kimi),
    "goose": Program(
        package="@aaif/goose-binary-linux-x64",
        configure=_goose,
        repeats=True,
        deaf=True,
        folder="@aaif/goose-binary-linux-x64/bin",
    ),
    "pi": Program(package="@earendil-works/pi-coding-agent", configure=_pi, asks=False, terminal=True),
}


def missing(*names: str) -> str | None:
    """Why the programs of those names, or any, cannot be run from the caches, in a sentence, or None if they can."""
    caches = [PROGRAMS[name].cache for name in names] or [NPM, PYPI]
    return next((reason for cache in caches if (reason := cache.missing())), None)


def version(name: str) -> str:
    """The pinned version of a program from npm."""
    told = json.loads((NPM.locked / "package.json").read_text())
    pinned: dict[str, str] = told["dependencies"] | told["optionalDependencies"]
    return pinned[PROGRAMS[name].package]


def install() -> None:
    """Installs what is not there. subprocess.CalledProcessError, MissingProgramsError."""
    NPM.install()
    PYPI.install()


def prepare(name: str, home: Path, project: Path, model_url: str) -> Prepared:
    """Writes the configuration of `name` into `home`, and returns the shell of a person who has the program on PATH."""
    for folder in (home, project):
        folder.mkdir(parents=True, mode=0o700)
    modules = NPM.folder / "node_modules"
    programs = [modules / PROGRAMS[name].folder, modules / ".bin", PYPI.folder / "bin"]
    path = os.pathsep.join([*dict.fromkeys(map(str, programs)), "/usr/local/bin", "/usr/bin", "/bin"])
    common = {"HOME": str(home), "PATH": path, "TERM": "xterm-256color", "LANG": "C.UTF-8", "SHELL": "/bin/sh"}
    own = PROGRAMS[name].configure(home, model_url)
    return Prepared(cli=name, argv=(name,), env={**common, **own}, home=home, cwd=project)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.real.shipped", description="The caches of programs whose profiles are shipped."
    )
    parser.add_argument("verb", choices=["install", "check"])
    if parser.parse_args(arguments).verb == "install":
        try:
            install()
        except (MissingProgramsError, subprocess.CalledProcessError) as error:
            print(f"\n*** SHIPPED PROGRAMS NOT INSTALLED: {error} ***\n", file=sys.stderr)
            return 1
    reason = missing()
    print(reason or f"shipped programs in {_FOLDER}")
    return 0 if reason is None else 1


if __name__ == "__main__":
    sys.exit(main())
