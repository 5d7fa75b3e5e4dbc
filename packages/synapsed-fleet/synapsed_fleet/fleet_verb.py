"""`synapsed fleet WHAT`: reads a JSON request from stdin, calls `operations`, and writes the JSON answer to stdout."""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from synapsed.errors import InvalidRequest

if TYPE_CHECKING:
    from synapsectl.verbs import Surroundings


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what")


def run(args: argparse.Namespace, around: "Surroundings") -> None:
    """Performs one operation of a fleet. Raises SynapsedError."""
    from synapsed_fleet.member_files import Home
    from synapsed_fleet.operations import OPERATIONS, perform

    if args.what not in OPERATIONS:
        raise InvalidRequest(f"{args.what!r} is nothing that is done for a fleet")
    body = json.loads(sys.stdin.read() or "{}")
    sys.stdout.write(f"{json.dumps(perform(Home(around.paths), around.configuration(), args.what, body))}\n")
