"""`synapsed broker`: runs this host's broker, which carries the messages between the hosts of a fleet, until SIGTERM or
SIGINT. Service units call it."""

import argparse
import asyncio
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synapsectl.verbs import Surroundings


def configure(_: argparse.ArgumentParser) -> None:
    """Adds no option of its own: `synapsed` adds those that all its serving verbs have."""


def run(_: argparse.Namespace, around: "Surroundings") -> None:
    """Runs the broker of this host. Raises SynapsedError."""
    from synapsed_fleet.broker import serve
    from synapsed_fleet.member_files import Home

    asyncio.run(serve(Home(around.paths), around.configuration().fleet, os.environ, around.notifier))
