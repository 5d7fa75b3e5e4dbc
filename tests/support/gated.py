"""Cases of a test of which the gate runs some, and the night all."""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

__all__ = ["chosen", "first_of", "one_each"]

CHOSEN = Path(__file__).parents[1] / "recordings" / "gate.json"


def chosen[T](values: Sequence[T], name: Callable[[T], str]) -> list[Any]:
    """Returns parameters for `values`, of which the gate plays the chosen recordings, or else the first.

    `name` gives the recording's (`claude-2.1.330/turn`), or a name without a folder if a value is no recording.
    """
    kept = [value for value in values if "/" not in name(value) or name(value) in _gate()] or list(values[:1])
    return _marked(values, [any(value is one for one in kept) for value in values])


def one_each[T](values: Sequence[T], kind: Callable[[T], object]) -> list[Any]:
    """Returns parameters for `values`, of which the gate runs the first of each `kind`."""
    seen = set[object]()
    first = []
    for value in values:
        first.append(kind(value) not in seen)
        seen.add(kind(value))
    return _marked(values, first)


def first_of[T](values: Sequence[T], several: int = 1) -> list[Any]:
    """Returns parameters for `values`, of which the gate runs the first, or the first `several`."""
    return _marked(values, [n < several for n in range(len(values))])


def _marked[T](values: Iterable[T], kept: Iterable[bool]) -> list[Any]:
    several = [value if isinstance(value, tuple) else (value,) for value in values]
    return [
        pytest.param(*parameters, marks=() if keep else pytest.mark.night)
        for parameters, keep in zip(several, kept, strict=True)
    ]


@cache
def _gate() -> frozenset[str]:
    return frozenset(json.loads(CHOSEN.read_text())["recordings"])
