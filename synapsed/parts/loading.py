"""Loads the faces of the parts in the list. A part whose folder is not there is left out."""

import importlib
from functools import cache
from importlib.util import find_spec

from synapsed.config import Config, config_with
from synapsed.kernel import Face
from synapsed.parts.list import NAMES


@cache
def faces() -> tuple[Face, ...]:
    """Returns what each part says of itself."""
    there = (name for name in NAMES if find_spec(f"synapsed.parts.{name}") is not None)
    return tuple(importlib.import_module(f"synapsed.parts.{name}.face").FACE for name in there)


@cache
def config_model() -> type[Config]:
    """Returns the model of the whole configuration."""
    return config_with(faces())


def lacking(config: Config) -> list[str]:
    """Returns what has to be installed for what is configured, in sentences for people."""
    told = (importlib.import_module(face.extras_in).missing(config) for face in faces() if face.extras_in)
    return [sentence for sentence in told if sentence is not None]
