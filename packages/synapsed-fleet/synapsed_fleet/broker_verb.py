"""`synapsed broker`: keeps this host's broker until SIGTERM or SIGINT. Installed units call it."""

import argparse
import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synapsed_fleet.broker import ReadyNotifier
    from synapsed_fleet.member_files import Places


def configure(_: argparse.ArgumentParser) -> None:
    """It has the options of every verb that serves."""


def run(_: argparse.Namespace, paths: "Places", configuration: Callable[[], Any], notifier: "ReadyNotifier") -> None:
    """Raises SynapsedError."""
    from synapsed_fleet.broker import serve
    from synapsed_fleet.member_files import Home

    asyncio.run(serve(Home(paths), configuration().fleet, os.environ, notifier))
