"""Loads the faces of the parts, which are their descriptions: of the parts in the list whose folders exist, and of
parts in other distributions."""

import importlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from synapsed.config.config import Config
from synapsed.config.paths import Paths
from synapsed.kernel import Face
from synapsed.model.released_names import CONFIG_FILES
from synapsed.parts import outside
from synapsed.parts.config import added_keys, config_with
from synapsed.parts.list import NAMES
from synapsed.profiles.library import StandIn

if TYPE_CHECKING:
    from synapsed.channels import Adapter

LINKS = ("synapsed.keepers.systemd_launcher", "synapsed.pipes.acp_link_factory", "synapsed.pty.link_factory")
"""Modules that load the rooms of links."""

LEFT_OUT: dict[str, str] = {}
"""Parts of other distributions whose faces cannot be loaded, with the reasons."""

_FAULTS: dict[str, Exception] = {}
"""Errors of the parts whose faces could not be loaded."""

log = structlog.stdlib.get_logger("synapsed.parts")


@cache
def faces() -> tuple[Face, ...]:
    """Returns the faces of all parts."""
    there = (name for name in NAMES if find_spec(f"synapsed.parts.{name}") is not None)
    found = [importlib.import_module(f"synapsed.parts.{name}.face").FACE for name in there]
    LEFT_OUT.update({name: f"it {outside.missing(name)}" for name in outside.unfit()} | outside.clashing())
    for name, package in outside.packages().items():
        try:
            face = importlib.import_module(f"{package}.face").FACE
            _check(name, face)
        except Exception as error:  # noqa: BLE001 - reported by `log_left_out`
            LEFT_OUT[name], _FAULTS[name] = f"{type(error).__name__}: {error}", error
        else:
            found.append(face)
    return tuple(found)


def log_left_out() -> None:
    """Logs the parts that are left out. No other function logs: a program that reads faces may write JSON to stdout."""
    for name, why in LEFT_OUT.items():
        log.error("a part is left out", part=name, why=why, exc_info=_FAULTS.get(name))


def _check(name: str, face: Face) -> None:
    """Raises ValueError for a part of another distribution that uses a name which is not its own, or that guards agents
    but opens nothing."""
    if face.name != name:
        raise ValueError(f"its face is called {face.name!r}, its entry point {name!r}")
    for key in (*face.sections, *face.agent_settings, *added_keys(face)):
        if key != name and not key.startswith(f"{name}_"):
            raise ValueError(f"its key {key!r} does not begin with its name: call it {name}_{key}")
    if face.guards and not face.opens:
        raise ValueError("it has 'guards', but no 'opens': nothing would keep its rules")


@cache
def config_model() -> type[Config]:
    """Returns the model of the whole configuration."""
    return config_with(faces())


def load_late() -> None:
    """Loads the modules of parts and of the kernel that agents need, and a start without agents does not. Blocks."""
    for module in (*LINKS, *(module for face in faces() for module in face.late)):
        importlib.import_module(module)
    adapters()


@cache
def adapters() -> "dict[str, Adapter]":
    """Returns the adapters of side channels, by their names in profiles."""
    found: dict[str, Adapter] = {}
    for face in (face for face in faces() if face.adapters_in):
        found |= importlib.import_module(face.adapters_in).ADAPTERS
    return found


def stand_ins(state: Path) -> dict[str, StandIn]:
    """Returns the files of parts that replace built-in profiles. Blocks."""
    found: dict[str, StandIn] = {}
    for face in (face for face in faces() if face.profiles_in):
        found |= {
            name: StandIn(*each) for name, each in importlib.import_module(face.profiles_in).stand_ins(state).items()
        }
    return found


def lacking(config: Config, paths: Paths) -> list[str]:
    """Returns the missing extras of configured features, in sentences for people."""
    told = (importlib.import_module(face.extras_in).missing(config) for face in faces() if face.extras_in)
    left_out = [f"the part {name} is left out: {why}" for name, why in LEFT_OUT.items()]
    return [*left_out, *unread_files(paths), *(sentence for sentence in told if sentence is not None)]


def unread_files(paths: Paths) -> list[str]:
    """Returns, in sentences for people, which files beside config.toml belong to a part that is not there."""
    there = {face.name for face in faces()}
    files = {paths.config / name: part for name, part in CONFIG_FILES.items() if part not in there}
    return [
        f"{file} belongs to the part {part}, which {outside.missing(part)}"
        for file, part in files.items()
        if file.exists()
    ]


def findings(config: Config, state: Path) -> list[tuple[str, str, str, str]]:
    """Returns the findings of parts about their files, for `doctor`. Blocks."""
    modules = (importlib.import_module(face.findings_in) for face in faces() if face.findings_in)
    return [found for module in modules for found in module.findings(config, state)]
