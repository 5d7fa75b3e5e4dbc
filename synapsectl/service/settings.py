"""Inputs of an installation: this interpreter, this package, the configuration, the login shell."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from synapsectl.errors import CtlError
from synapsectl.service.login import Login, ask_login_shell
from synapsed import own_python
from synapsed.config.paths import Paths
from synapsed.own_python import PACKAGES

_TEMPLATES = (Path(PACKAGES, "synapsed", "_packaging"), Path(PACKAGES, "packaging"))
"""Folders of templates, in a wheel, and in a checkout."""

CHECK_TIMEOUT_S = 60.0

CARRIED = ("SYNAPSED_HOME", "SYNAPSED_A2A_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
"""Variables that decide the places of files, and must be the same for the service and for the person's tool."""

LOCALE = ("LANG", "LC_ALL", "LC_CTYPE")


class ConfiguredAgent(NamedTuple):
    """An agent of the configuration, with its configured program."""

    name: str
    profile: str
    command: str
    autostart: bool
    version: Mapping[str, Any] | None = None
    """Way to ask its program for its version, and the known ones: `args`, `pattern`, `since`, `verified`."""


class Configuration(NamedTuple):
    """The configuration in the form of `synapsed check-config`, and in that of `ServiceSettings`."""

    listen: str | None
    agents: tuple[ConfiguredAgent, ...]
    missing: tuple[str, ...]
    proxy: tuple[str, int] | None
    api: Mapping[str, Any]
    findings: tuple[tuple[str, str, str, str], ...]


class ServiceSettings(NamedTuple):
    paths: Paths
    python: str
    listen: str | None
    """Address and port that can be bound ahead; None if any free port is wanted."""
    agents: tuple[ConfiguredAgent, ...]
    login: Login
    variables: Mapping[str, str]
    """The service's environment, besides that of the service manager."""
    missing: tuple[str, ...] = ()
    """Configured features that are not installed, in sentences."""
    proxy: tuple[str, int] | None = None
    """Host and port of the used proxy, if any."""
    api: Mapping[str, Any] = MappingProxyType({})
    """`[api]` of the configuration, whole."""
    findings: tuple[tuple[str, str, str, str], ...] = ()
    """Findings of parts about their files, each in the form of `checkup.finding`."""


def env_file(paths: Paths) -> Path:
    """Returns the file with variables of the service that an installation writes."""
    return paths.config / "service.env"


def user_env_file(paths: Paths) -> Path:
    """Returns the file with variables of the service that only the person writes."""
    return paths.config / "environment"


def gather(paths: Paths, environ: Mapping[str, str]) -> ServiceSettings:
    """Gathers the settings. Raises CtlError if the configuration cannot be read."""
    told = read_configuration(environ)
    login = ask_login_shell([agent.command for agent in told.agents], environ)
    variables = {"PATH": login.path}
    variables |= {key: login.environ[key] for key in LOCALE if login.environ.get(key)}
    variables |= {key: environ[key] for key in CARRIED if environ.get(key)}
    rest = (told.missing, told.proxy, told.api, told.findings)
    return ServiceSettings(paths, sys.executable, told.listen, told.agents, login, variables, *rest)


def read_configuration(environ: Mapping[str, str]) -> Configuration:
    """Returns the daemon's own judgement of its configuration; reading it needs imports that this tool avoids."""
    try:
        done = subprocess.run(
            own_python.command("synapsed.cli", "check-config", "--json"),
            env=dict(environ),
            cwd=PACKAGES,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CHECK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CtlError(f"the configuration cannot be checked: {error}") from None
    if done.returncode != 0:
        raise CtlError(done.stderr.strip().removeprefix("synapsed: ") or "the configuration cannot be read")
    told = json.loads(done.stdout)
    address, port = told["listen"]["address"], told["listen"]["port"]
    listen = (f"[{address}]:{port}" if ":" in address else f"{address}:{port}") if port else None
    agents = tuple(ConfiguredAgent(**agent) for agent in told["agents"])
    findings = tuple(tuple(found) for found in told["findings"])
    proxy = told["proxy"] and tuple(told["proxy"])
    return Configuration(listen, agents, tuple(told["missing"]), proxy, told["api"], findings)


def template(name: str, values: Mapping[str, str]) -> str:
    """Returns the text of `packaging/<name>`, `filled` with the values."""
    directory = next((place for place in _TEMPLATES if place.is_dir()), None)
    if directory is None:
        raise CtlError("this installation of synapsed is incomplete: the service's files are not in it")
    return filled(directory / name, values)


def filled(file: Path, values: Mapping[str, str]) -> str:
    """Returns the text of a file of a service with every `@KEY@` replaced."""
    text = file.read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text
