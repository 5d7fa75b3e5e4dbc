"""`synapsed bundles WHAT`: reads a JSON request from stdin, performs it, writes the JSON answer to stdout."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from synapsectl.verbs import Surroundings
from synapsed.errors import InvalidRequest

type _Done = Callable[[dict[str, Any], Surroundings], dict[str, Any]]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what")


def run(args: argparse.Namespace, around: Surroundings) -> None:
    """Performs one request. Raises SynapsedError."""
    doing: Mapping[str, _Done] = {
        "key": _key,
        "make": _make,
        "look": _look,
        "take": _take,
        "roll-back": _roll_back,
    }
    if args.what not in doing:
        raise InvalidRequest(f"{args.what!r} is nothing that is done with bundles")
    body = json.loads(sys.stdin.read() or "{}")
    sys.stdout.write(f"{json.dumps(doing[args.what](body, around))}\n")


def _key(body: dict[str, Any], *_: object) -> dict[str, Any]:
    from synapsed.parts.profile_tools.bundles.keys import make_key

    return {"file": body["file"], "key": make_key(Path(body["file"]))}


def _make(body: dict[str, Any], around: Surroundings) -> dict[str, Any]:
    from synapsed.clock import SystemClock
    from synapsed.parts.profile_tools.bundles.making import make

    return make(
        [Path(file) for file in body["files"]],
        key=Path(body["key"]),
        out=Path(body["out"]),
        needs=body["needs"],
        recordings=[Path(folder) for folder in body["recordings"]],
        expected=[Path(folder) for folder in body["expected"]],
        scratch=around.paths.state,
        now=SystemClock().wall(),
    )


def _look(body: dict[str, Any], around: Surroundings) -> dict[str, Any]:
    from synapsed.clock import SystemClock
    from synapsed.parts.profile_tools.bundles.shelf import Shelf
    from synapsed.parts.profile_tools.bundles.taking import look

    config = around.configuration()
    return look(
        body["from"],
        Shelf(around.paths.state),
        keys=config.profiles.keys,
        outgoing=config.outgoing,
        older=body["older"],
        now=SystemClock().wall(),
    )


def _take(body: dict[str, Any], around: Surroundings) -> dict[str, Any]:
    from synapsed.parts.profile_tools.bundles.shelf import Shelf
    from synapsed.parts.profile_tools.bundles.taking import take

    keys = around.configuration().profiles.keys
    shelf = Shelf(around.paths.state)
    return take(body["digest"], shelf, instead_of=body["instead_of"], keys=keys, unproved=body["unproved"])


def _roll_back(_: dict[str, Any], around: Surroundings) -> dict[str, Any]:
    from synapsed.parts.profile_tools.bundles.shelf import Shelf
    from synapsed.parts.profile_tools.bundles.taking import roll_back

    return roll_back(Shelf(around.paths.state))
